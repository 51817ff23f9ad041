#include "tests/workloads/mlp.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "base/fd.h"
#include "tests/workloads/random.h"

using namespace cgphase;
using namespace cgphase::workloads;

namespace {

constexpr std::array kSomeWidths = {4, 8, 3};

struct Batch {
  Matrix values{12, 4};
  std::array<int, 12> labels{};
  Rows rows() const { return {values.data(), values.rows(), values.cols()}; }
};

// Three classes that differ in which input is large.
Batch make_batch() {
  Batch batch;
  workloads::Random random(3);
  for (int r = 0; r < 12; ++r) {
    batch.labels[static_cast<std::size_t>(r)] = r % 3;
    for (int c = 0; c < 4; ++c)
      batch.values(r, c) = 0.1F * random.bell() + (c == r % 3 ? 1.0F : 0.0F);
  }
  return batch;
}

}  // namespace

TEST_CASE("mlp: gradient descent lowers the loss") {
  Batch batch = make_batch();
  Mlp mlp(kSomeWidths, 1);
  const float before = mlp.loss(batch.rows(), batch.labels);
  for (int step = 0; step < 50; ++step) mlp.train(batch.rows(), batch.labels, 0.1F);
  CHECK(mlp.loss(batch.rows(), batch.labels) < 0.2F * before);
}

TEST_CASE("mlp: one small step changes the loss as its gradient predicts") {
  // loss(w - e g) = loss(w) - e |g|^2 + O(e^2): two step lengths must fall in proportion.
  Batch batch = make_batch();
  Mlp small(kSomeWidths, 1), twice(kSomeWidths, 1);
  const float before = small.train(batch.rows(), batch.labels, 1e-3F);
  twice.train(batch.rows(), batch.labels, 2e-3F);
  const float fall = before - small.loss(batch.rows(), batch.labels);
  const float twice_fall = before - twice.loss(batch.rows(), batch.labels);
  CHECK(fall > 0);
  CHECK(twice_fall / fall == doctest::Approx(2).epsilon(0.05));
}

TEST_CASE("mlp: the loss is decided by the seed") {
  Batch batch = make_batch();
  Mlp first(kSomeWidths, 1), again(kSomeWidths, 1), other(kSomeWidths, 2);
  for (int step = 0; step < 5; ++step) {
    first.train(batch.rows(), batch.labels, 0.1F);
    again.train(batch.rows(), batch.labels, 0.1F);
    other.train(batch.rows(), batch.labels, 0.1F);
  }
  CHECK(first.loss(batch.rows(), batch.labels) == again.loss(batch.rows(), batch.labels));
  CHECK(first.loss(batch.rows(), batch.labels) != other.loss(batch.rows(), batch.labels));
}

namespace {

// An anonymous file with those bytes, at its beginning.
Fd file_with(std::string_view bytes) {
  Fd file(memfd_create("parameters", MFD_CLOEXEC));
  REQUIRE(write_all(file.get(), bytes).has_value());
  REQUIRE(lseek(file.get(), 0, SEEK_SET) == 0);
  return file;
}

}  // namespace

TEST_CASE("mlp: parameters survive a file") {
  Batch batch = make_batch();
  Mlp mlp(kSomeWidths, 1), back(kSomeWidths);
  std::string bytes;
  mlp.serialize(bytes);
  CHECK(bytes.size() == mlp.parameter_count() * sizeof(float));
  REQUIRE(back.read_parameters(file_with(bytes).get()).has_value());
  CHECK(back.forward(batch.rows()) == mlp.forward(batch.rows()));
}

TEST_CASE("mlp: a file of parameters that is too short or too long is invalid") {
  Mlp mlp(kSomeWidths, 1);
  std::string bytes;
  mlp.serialize(bytes);
  CHECK_FALSE(mlp.read_parameters(file_with(bytes + "four").get()).has_value());
  const std::string_view cut = std::string_view(bytes).substr(4);
  CHECK_FALSE(mlp.read_parameters(file_with(cut).get()).has_value());
}
