#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

#include "base/fd.h"
#include "tests/workloads/far_end.h"
#include "tests/workloads/mlp.h"
#include "tests/workloads/pace.h"
#include "tests/workloads/packing.h"
#include "tests/workloads/plan.h"
#include "tests/workloads/random.h"
#include "tests/workloads/run.h"

namespace cgphase::workloads {

namespace {

constexpr double kImagesAtSizeOne = 20'000;
constexpr std::size_t kVariants = 2;  // augmented rows per image
constexpr std::size_t kPackedBytesGuess = 160;
constexpr std::size_t kBatch = 640;
constexpr std::size_t kValidationRows = 256, kEvaluationRows = 1000;
constexpr float kLearningRate = 0.02F;
constexpr std::array kWidths = {static_cast<int>(kImageBytes), 320, kClasses};
constexpr double kCheckpointRowsShare = 0.2;  // of the prepared rows go into a checkpoint
constexpr std::size_t kSyncBytes = std::size_t{1} << 20;

class TrainJob {
 public:
  TrainJob(const RunOptions& options, LabelFile& labels)
      : options_(options),
        labels_(labels),
        images_(static_cast<std::uint64_t>(kImagesAtSizeOne * options.size)),
        mlp_(kWidths, derive_seed(options.seed, 3)) {}

  Status run();
  std::uint64_t steps() const { return steps_; }
  float validation_loss() const { return validation_loss_; }
  double accuracy() const { return accuracy_; }

 private:
  Status stage(const Stage& stage);
  Status download(Milliseconds length);
  Status preprocess(Milliseconds length);
  void train(Milliseconds length);
  void validate(Milliseconds length);
  Status checkpoint(Milliseconds length);
  Status write_checkpoint(std::string_view image, Milliseconds length);
  void evaluate(Milliseconds length);

  Rows rows(std::size_t first, std::size_t count) const {
    return {rows_.data() + first * kImageBytes, static_cast<Eigen::Index>(count), kImageBytes};
  }
  std::span<const int> classes(std::size_t first, std::size_t count) const {
    return {classes_.data() + first, count};
  }
  // A place for `count` rows that moves through [begin, end) with the seed.
  std::size_t place(std::uint64_t turn, std::size_t begin, std::size_t end,
                    std::size_t count) const {
    if (end - begin <= count) return begin;
    return begin + derive_seed(options_.seed + 11, turn) % (end - begin - count);
  }
  std::size_t row_count() const { return classes_.size(); }
  std::size_t held_out() const { return row_count() - row_count() / 8; }  // rows after it

  const RunOptions& options_;
  LabelFile& labels_;
  std::uint64_t images_;
  std::string packed_;
  std::vector<float> rows_;
  std::vector<int> classes_;
  Mlp mlp_;
  std::uint64_t steps_ = 0;
  float validation_loss_ = 0;
  double accuracy_ = 0;
};

Status receive_all(int socket, std::string& into) {
  std::array<char, 16384> part;
  while (true) {
    const ssize_t got = read(socket, part.data(), part.size());
    if (got == 0) return {};
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_failure("download", errno);
    into.append(part.data(), static_cast<std::size_t>(got));
  }
}

Status TrainJob::download(Milliseconds length) {
  packed_.reserve(images_ * kPackedBytesGuess);
  if (!options_.far_end.empty()) {
    const auto socket =
        ask_far_end(options_.far_end, ask_images(options_.seed, images_, length));
    if (!socket) return std::unexpected(socket.error());
    return receive_all(socket->get(), packed_);
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_failure("socketpair", errno);
  const Fd mine(ends[0]);
  std::thread server([this, length, theirs = Fd(ends[1])] {
    send_images(theirs.get(), options_.seed, images_, length);
  });
  const Status received = receive_all(mine.get(), packed_);
  server.join();
  return received;
}

Status TrainJob::preprocess(Milliseconds length) {
  rows_.resize(0);
  rows_.reserve(images_ * kVariants * kImageBytes);
  std::array<std::uint8_t, kImageBytes> image;
  std::array<float, kImageBytes> row;
  std::string_view rest = packed_;
  Spread spread(length, images_, Pace::Late::slip);
  for (std::uint64_t next = 0, end = 0; spread.next(next, end);)
    for (; next < end; ++next) {
      const Result<int> label = unpack_image(rest, image);
      if (!label) return std::unexpected(label.error());
      for (std::size_t variant = 0; variant < kVariants; ++variant) {
        augment(image, derive_seed(options_.seed, 2 * next + variant), row);
        rows_.insert(rows_.end(), row.begin(), row.end());
        classes_.push_back(*label);
      }
    }
  packed_ = std::string();  // the packed form is not needed any more
  return {};
}

void TrainJob::train(Milliseconds length) {
  Pace pace(kSlot, Pace::Late::slip);
  for (std::uint64_t left = slot_count(length); left > 0; --left) {
    pace.wait();
    const std::size_t count = std::min(rows_at_a_time(kBatch, options_), held_out());
    const std::size_t first = place(steps_++, 0, held_out(), count);
    mlp_.train(rows(first, count), classes(first, count), kLearningRate);
  }
}

void TrainJob::validate(Milliseconds length) {
  Pace pace(kSlot, Pace::Late::slip);
  const std::uint64_t turns = slot_count(length);
  const std::size_t count =
      std::min(rows_at_a_time(kValidationRows, options_), row_count() - held_out());
  double sum = 0;
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    pace.wait();
    const std::size_t first = place(turn, held_out(), row_count(), count);
    sum += static_cast<double>(mlp_.loss(rows(first, count), classes(first, count)));
  }
  validation_loss_ = static_cast<float>(sum / static_cast<double>(turns));
}

// Writes parameters and a part of the prepared rows, so that a restart needs no download. They are
// copied first, as by a trainer that continues while its checkpoint is written.
Status TrainJob::checkpoint(Milliseconds length) {
  const std::size_t kept =
      static_cast<std::size_t>(static_cast<double>(rows_.size()) * kCheckpointRowsShare);
  std::string image;
  image.reserve((mlp_.parameter_count() + kept) * sizeof(float));
  mlp_.serialize(image);
  Spread copying(length / 2, kept, Pace::Late::slip);
  for (std::uint64_t begin = 0, end = 0; copying.next(begin, end);)
    image.append(reinterpret_cast<const char*>(&rows_[begin]), (end - begin) * sizeof(float));
  return write_checkpoint(image, length / 2);
}

Status TrainJob::write_checkpoint(std::string_view image, Milliseconds length) {
  const std::string path = options_.work_dir + "/checkpoint";
  auto file = open_path(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (!file) return std::unexpected(file.error());
  Spread writing(length, image.size(), Pace::Late::slip);
  std::size_t synced = 0;
  for (std::uint64_t begin = 0, end = 0; writing.next(begin, end);) {
    if (auto status = write_all(file->get(), image.substr(begin, end - begin)); !status)
      return status;
    if (end - synced < kSyncBytes && end != image.size()) continue;
    if (fsync(file->get()) != 0) return errno_failure("fsync " + path, errno);
    synced = end;
  }
  return {};
}

// Accuracy on the held-out rows.
void TrainJob::evaluate(Milliseconds length) {
  Pace pace(kSlot, Pace::Late::slip);
  const std::size_t count =
      std::min(rows_at_a_time(kEvaluationRows, options_), row_count() - held_out());
  std::uint64_t right = 0, seen = 0;
  for (std::uint64_t turn = slot_count(length); turn > 0; --turn) {
    pace.wait();
    const std::size_t first = place(turn, held_out(), row_count(), count);
    const Matrix& output = mlp_.forward(rows(first, count));
    for (Eigen::Index r = 0; r < output.rows(); ++r, ++seen) {
      Eigen::Index best = 0;
      output.row(r).maxCoeff(&best);
      right += best == classes_[first + static_cast<std::size_t>(r)];
    }
  }
  accuracy_ = static_cast<double>(right) / static_cast<double>(seen);
}

Status TrainJob::stage(const Stage& stage) {
  labels_.enter(stage.phase);
  if (stage.phase == "download") return download(stage.length);
  if (stage.phase == "preprocess") return preprocess(stage.length);
  if (stage.phase == "checkpoint") return checkpoint(stage.length);
  if (stage.phase == "train") train(stage.length);
  if (stage.phase == "validate") validate(stage.length);
  if (stage.phase == "evaluate") evaluate(stage.length);
  return {};
}

Status TrainJob::run() {
  for (const Stage& next : train_plan(options_.seed, options_.seconds))
    if (auto status = stage(next); !status) return status;
  labels_.enter("end");
  return {};
}

}  // namespace

Result<RunReport> run_train(const RunOptions& options, LabelFile& labels) {
  TrainJob job(options, labels);
  if (auto status = job.run(); !status) return std::unexpected(status.error());
  return RunReport{"gradient steps",
                   job.steps(),
                   {{"loss", job.validation_loss()}, {"accuracy", job.accuracy()}}};
}

}  // namespace cgphase::workloads
