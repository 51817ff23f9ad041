#include "tests/workloads/label_file.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.h"

using namespace cgphase;
using namespace cgphase::workloads;

TEST_CASE("labels: written labels are read back") {
  char path[] = "/tmp/cgphase-labels-XXXXXX";
  const Fd placeholder(mkstemp(path));
  auto labels = LabelFile::create(path);
  REQUIRE(labels.has_value());
  labels->enter("download");
  labels->enter("train", "round 1");
  const auto text = read_file(path, 4096);
  unlink(path);
  REQUIRE(text.has_value());
  const auto parsed = parse_labels(*text, "labels");
  REQUIRE(parsed.has_value());
  REQUIRE(parsed->size() == 2);
  CHECK((*parsed)[0].phase == "download");
  CHECK((*parsed)[1].phase == "train");
  CHECK((*parsed)[1].detail == "round 1");
}

TEST_CASE("labels: a path that cannot be made is an error") {
  CHECK_FALSE(LabelFile::create("/nonexistent/labels").has_value());
}

TEST_CASE("labels: without a path nothing is written and nothing fails") {
  auto labels = LabelFile::create("");
  REQUIRE(labels.has_value());
  labels->enter("train");
}

TEST_CASE("labels: a phase lasts from its line to the next") {
  const auto labels = parse_labels("# truth\n10 a\n20.5 b x y\n", "labels");
  REQUIRE(labels.has_value());
  CHECK(phase_at(*labels, 9.99) == "");
  CHECK(phase_at(*labels, 10) == "a");
  CHECK(phase_at(*labels, 20.4) == "a");
  CHECK(phase_at(*labels, 20.5) == "b");
  CHECK(phase_at(*labels, 1e9) == "b");
}

TEST_CASE("labels: malformed lines are named by their number") {
  for (const char* text : {"1 a\nx b\n", "1 a\n2\n", "1 a\n2 \n", "1 a\n2  b\n", "2 a\n1 b\n"}) {
    const auto labels = parse_labels(text, "labels");
    REQUIRE_FALSE(labels.has_value());
    CHECK(labels.error().text.starts_with("labels:2: "));
  }
}
