#include "tests/workloads/default_model.h"

#include <doctest/doctest.h>

#include "base/file.h"

using namespace cgphase;
using namespace cgphase::workloads;

namespace {

const std::string kData = CGPHASE_SOURCE_DIR "/tests/data";
const std::string kModel = CGPHASE_SOURCE_DIR "/model/default_model.json";

}  // namespace

TEST_CASE("default model: training on the recorded traces gives the golden file") {
  const auto committed = read_file(kModel, kMaxModelFileBytes);
  REQUIRE(committed.has_value());
  const auto model = train_default_model(kData);
  REQUIRE(model.has_value());
  CHECK(serialize_model(*model) == *committed);
}

TEST_CASE("default model: its phases agree with the true ones of held-out executions") {
  const auto model = load_model(kModel);
  REQUIRE(model.has_value());
  const auto traces = read_traces(kData, TraceSet::held_out);
  REQUIRE(traces.has_value());
  CHECK(traces->size() >= 6);
  const auto score = score_model(*model, *traces);
  REQUIRE(score.has_value());
  CHECK(score->by_service.size() == 3);
  for (const auto& [service, one] : score->by_service) {
    INFO(service);
    CHECK(one.purity() > 0.75);
    CHECK(one.nmi() > 0.4);
  }
  CHECK(score->unknown * 20 < score->steps);
}

TEST_CASE("default model: every trace has rows, each with its true phase") {
  for (const TraceSet set : {TraceSet::training, TraceSet::held_out}) {
    const auto traces = read_traces(kData, set);
    REQUIRE(traces.has_value());
    for (const Trace& trace : *traces)
      for (const Execution& execution : trace.executions) {
        INFO(trace.path);
        CHECK(execution.rows.size() > 60);
        for (const TraceRow& row : execution.rows) CHECK_FALSE(row.label.empty());
      }
  }
}

TEST_CASE("default model: a directory that does not exist is an error") {
  CHECK_FALSE(read_traces("/nonexistent", TraceSet::training).has_value());
}
