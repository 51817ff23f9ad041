// The far end in its own process, on a loopback address that only this test uses. The workloads
// must compute the same as without it.
#include "tests/workloads/far_end.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/workloads/run.h"

using namespace cgphase;
using namespace cgphase::workloads;

namespace {

class FarEnd {
 public:
  FarEnd() {
    REQUIRE(mkdtemp(path) != nullptr);
    process_ = fork();
    if (process_ == 0) {
      (void)run_far_end(address_);
      _exit(1);
    }
    REQUIRE(process_ > 0);
    while (!ask_far_end(address_, "nothing\n")) REQUIRE(waitpid(process_, nullptr, WNOHANG) == 0);
  }
  ~FarEnd() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    std::filesystem::remove_all(path);
  }
  RunOptions alone() const {
    return {.size = 0.02, .seconds = kMinSeconds, .work_dir = path, .arithmetic = 0.1};
  }
  RunOptions over_it() const {
    RunOptions options = alone();
    options.far_end = address_;
    return options;
  }

 private:
  const int own_ = getpid();  // below 2^22
  std::string address_ = "127." + std::to_string(1 + own_ / 65536) + "." +
                         std::to_string(own_ / 256 % 256) + "." + std::to_string(own_ % 256);
  pid_t process_ = -1;
  char path[32] = "/tmp/cgphase-far-XXXXXX";
};

}  // namespace

TEST_CASE_FIXTURE(FarEnd, "far end: a training job computes the same as without one") {
  LabelFile labels;
  const auto near = run_train(alone(), labels), far = run_train(over_it(), labels);
  REQUIRE(near.has_value());
  REQUIRE(far.has_value());
  CHECK(far->outcome == near->outcome);
}

TEST_CASE_FIXTURE(FarEnd, "far end: a batch job computes the same as without one") {
  LabelFile labels;
  const auto near = run_batch(alone(), labels), far = run_batch(over_it(), labels);
  REQUIRE(near.has_value());
  REQUIRE(far.has_value());
  CHECK(far->units == near->units);
  CHECK(far->outcome == near->outcome);
}

TEST_CASE_FIXTURE(FarEnd, "far end: every request of a service is sent and served") {
  LabelFile labels;
  const auto near = run_serve(alone(), labels), far = run_serve(over_it(), labels);
  REQUIRE(near.has_value());
  REQUIRE(far.has_value());
  CHECK(far->units == near->units);
  CHECK(far->outcome["hits"] == near->outcome["hits"]);
}

TEST_CASE("far end: its early end and a missing address are errors of the workload") {
  LabelFile labels;
  RunOptions options{.size = 0.02, .seconds = kMinSeconds};
  options.far_end = "nowhere";
  CHECK_FALSE(run_train(options, labels).has_value());
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const Fd reader(ends[0]);
  Fd(ends[1]).reset();
  std::string text;
  CHECK_FALSE(read_part(reader.get(), text).has_value());
}
