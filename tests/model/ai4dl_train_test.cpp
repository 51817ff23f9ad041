#include "model/train/ai4dl_train.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "model/ai4dl.h"
#include "model/train/train.h"
#include "tests/model/synthetic_trace.h"
#include "tests/model/test_data.h"

using namespace cgphase;
using nlohmann::json;

namespace {

double worst(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = std::max(difference, std::abs(a[i] - b[i]));
  return difference;
}

double worst(const CrbmParameters& a, const CrbmParameters& b) {
  return std::max({worst(a.w, b.w), worst(a.a, b.a), worst(a.b, b.b),
                   worst(a.visible_bias, b.visible_bias), worst(a.hidden_bias, b.hidden_bias)});
}

// The synthetic execution with the columns of the release, in several variants.
Trace columns_trace(std::uint64_t seed, int seconds) {
  Trace trace = synthetic_trace(seed, seconds);
  for (TraceRow& row : trace.executions[0].rows) {
    const auto anon = static_cast<double>(*row.sample.memory.anon_bytes);
    row.columns.assign(8, std::optional<double>(anon));
    row.columns[0] = static_cast<double>(*row.sample.cpu.usage_usec % 1000);
    row.columns[5] = 1e9;  // constant
  }
  return trace;
}

}  // namespace

TEST_CASE("training as the release does gives its weights and errors, epoch by epoch") {
  const std::string path = test_data("ai4dl/train_vector.json");
  if (path.empty()) return;
  const Result<std::string> text = read_file(path, 1U << 20);
  REQUIRE(text);
  const json vector = json::parse(*text);
  TraceOptions columns;
  columns.columns = ai4dl_columns();
  const Result<Trace> trace = read_trace(test_data("ai4dl/sample.csv"), columns);
  REQUIRE(trace);
  const std::vector<Trace> traces{*trace};
  Ai4dlTraining options;
  options.initial = parse_ai4dl_weights(*text, path).value();
  options.shuffle = false;
  const auto& errors = vector["rec_error_epoch"];
  const auto train_epochs = [&](int epochs) {
    options.epochs = epochs;
    double apart = 0;
    const Result<Model> model = train_ai4dl(options, traces, [&](const EpochReport& report) {
      const auto& known = errors[static_cast<std::size_t>(report.epoch - 1)];
      apart = std::max(apart, std::abs(report.error - known.get<double>()));
    });
    REQUIRE(model);
    CHECK(apart < 1e-6);
    return model->crbm;
  };
  for (const int epochs : {1, 10, 50}) {  // of 192 windows each
    CAPTURE(epochs);
    const json known = {{"crbm", vector["after"][std::to_string(epochs * 192)]}};
    CHECK(worst(train_epochs(epochs), parse_ai4dl_weights(known.dump(), "known").value()) < 1e-6);
  }
}

TEST_CASE("without given weights the seed decides, and --compat can use the model") {
  const std::vector<Trace> traces{columns_trace(1, 100), columns_trace(2, 100)};
  Ai4dlTraining options;
  options.epochs = 3;
  const Result<Model> one = train_ai4dl(options, traces), same = train_ai4dl(options, traces);
  options.seed = 2;
  const Result<Model> other = train_ai4dl(options, traces);
  REQUIRE((one && same && other));
  CHECK(serialize_model(*one) == serialize_model(*same));
  CHECK(one->crbm.w != other->crbm.w);
  CHECK(one->scaler.scale[5] == 1);
  CHECK(ai4dl_phases(*one, traces[0].executions[0]).size() == 100);
}

TEST_CASE("invalid input for training as the release does is refused") {
  const std::vector<Trace> traces{columns_trace(1, 50)};
  const auto refused = [&](auto change) {
    Ai4dlTraining options;
    options.epochs = 1;
    change(options);
    const Result<Model> model = train_ai4dl(options, traces);
    return !model && model.error().kind == ErrorKind::invalid;
  };
  CHECK_FALSE(refused([](Ai4dlTraining&) {}));
  CHECK(refused([](Ai4dlTraining& o) { o.history = kMaxHistory + 1; }));
  CHECK(refused([](Ai4dlTraining& o) { o.hidden = 0; }));
  CHECK(refused([](Ai4dlTraining& o) { o.clusters = kMaxPhases + 1; }));
  CHECK(refused([](Ai4dlTraining& o) { o.epochs = -1; }));
  CHECK(refused([](Ai4dlTraining& o) { o.epochs = kMaxEpochs + 1; }));
  CHECK(refused([](Ai4dlTraining& o) { o.learning_rate = 0; }));
  CHECK(refused([](Ai4dlTraining& o) { o.initial = CrbmParameters{.w = {1, 2}}; }));
  CHECK_FALSE(train_ai4dl({}, std::vector{columns_trace(1, 3)}));
  for (const char* text : {"", "[]", "{\"W\":[[1]]}", "{\"crbm\":{}}"})
    CHECK_FALSE(parse_ai4dl_weights(text, "weights.json"));
}
