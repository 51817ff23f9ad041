#include "model/train/training_input.h"

#include <doctest/doctest.h>

#include <limits>

#include "model/feature_schema.h"
#include "tests/model/synthetic_trace.h"

using namespace cgphase;

namespace {

Dataset dataset(const std::vector<Trace>& traces) {
  return make_dataset(traces, plain_schema(), 1, 3);
}

std::string refusal(const Dataset& data, std::size_t needed) {
  const Status status = check_training_input(data, 1, needed, "t.csv");
  REQUIRE(!status);
  CHECK(status.error().kind == ErrorKind::invalid);
  return status.error().text;
}

}  // namespace

TEST_CASE("the required number of windows is enough, one less is refused with both numbers") {
  const Dataset data = dataset({synthetic_trace(1, 100)});
  REQUIRE(data.size() == 96);
  CHECK(check_training_input(data, 1, 96, "t.csv"));
  CHECK(refusal(data, 97) == "t.csv: gives 96 windows of 4 steps of 1 s without a gap, at least 97 "
                             "are needed: record longer");
}

TEST_CASE("a trace without measurements is refused with the missing columns") {
  Trace trace = synthetic_trace(1, 100);
  for (TraceRow& row : trace.executions[0].rows) row.sample = Sample{.id = row.sample.id};
  CHECK(refusal(dataset({trace}), 20).find("have CPU use (columns cpu.usage.usec") !=
        std::string::npos);
}

TEST_CASE("one feature that varies is enough, but rounding does not count") {
  Dataset data = dataset({synthetic_trace(1, 100)});
  for (FeatureVector& step : data.steps) step.values = {0.1 + 0.2, 0.5, 0, 1, 2, std::nullopt};
  data.steps[7].values[0] = 0.3;
  data.steps[8].values[1] = std::numeric_limits<double>::quiet_NaN();
  CHECK(refusal(data, 20).starts_with("t.csv: every feature is the same in all rows"));
  data.steps[9].values[4] = 2.1;
  CHECK(check_training_input(data, 1, 20, "t.csv"));
}

TEST_CASE("traces without an optional feature give no windows, and the error names it") {
  Trace trace = synthetic_trace(1, 100);
  FeatureSchema schema = plain_schema();
  schema.entries[4] = {Feature::network_receive_log_rate, "network_receive_log_rate"};
  schema.entries[5] = {Feature::gpu_utilisation_ratio, "gpu_utilisation_ratio"};
  const auto windows = [&] { return make_dataset(std::vector{trace}, schema, 1, 3); };
  std::uint64_t received = 0;
  for (TraceRow& row : trace.executions[0].rows) row.sample.network.receive_bytes = received += 9;
  const std::string text = refusal(windows(), 20);
  CHECK(text.find("have all of network_receive_log_rate, gpu_utilisation_ratio") !=
        std::string::npos);
  for (TraceRow& row : trace.executions[0].rows) row.sample.gpu.utilisation_ratio = 0.5;
  CHECK(windows().size() == 96);
  trace.executions[0].rows[50].sample.gpu.utilisation_ratio.reset();
  CHECK(windows().size() == 96 - 4);
}
