#include "model/ai4dl.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "model/trace_features.h"
#include "tests/model/test_data.h"

using namespace cgphase;
using nlohmann::json;

namespace {

std::string content(const std::string& name) {
  const std::string path = test_data(name);
  if (path.empty()) return {};
  const Result<std::string> text = read_file(path, 8U << 20);
  if (!text) FAIL(text.error().text);
  return *text;
}

// Returns the number of compared rows, 0 without the data. With `expanded`, the parts from AI4DL's
// second notebook are compared too.
std::size_t compare_with_release(const std::string& trace_name, const std::string& expected_name,
                                 bool expanded = false) {
  const std::string parameters = content("ai4dl/model.json");
  if (parameters.empty()) return 0;
  const Result<Model> model = import_ai4dl(parameters, "model.json", expanded);
  if (!model) FAIL(model.error().text);
  TraceOptions options;
  options.columns = schema_columns(model->schema);
  const Result<Trace> trace = read_trace(test_data(trace_name), options);
  REQUIRE(trace);
  const json expected = json::parse(content(expected_name));
  REQUIRE(expected["executions"].size() == trace->executions.size());
  std::size_t rows = 0, different = 0;
  double worst = 0;
  for (std::size_t e = 0; e < trace->executions.size(); ++e) {
    const json& known = expected["executions"][e];
    CHECK(known["exec"] == trace->executions[e].id);
    const std::vector<Phase> phases = ai4dl_phases(*model, trace->executions[e]);
    const std::vector<double> activations = ai4dl_activations(*model, trace->executions[e]);
    REQUIRE(phases.size() == known["phases"].size());
    for (std::size_t k = 0; k < phases.size(); ++k, ++rows) {
      different +=
          phases[k].index != known[expanded ? "phases_sub" : "phases"][k].get<int>();
      for (std::size_t h = 0; h < 10; ++h)
        worst = std::max(worst, std::abs(activations[k * 10 + h] -
                                         known["activations"][k][h].get<double>()));
    }
  }
  CHECK(different == 0);
  CHECK(worst < 1e-14);
  return rows;
}

// Two features, two hidden units, a history of one, two phases.
json small_parameters() {
  return json::parse(R"({"features": ["cpu.usage", "mem.current"],
    "scaler": {"mean": [1, 2], "scale": [0.5, 0.5]},
    "crbm": {"n_vis": 2, "n_hid": 2, "n_his": 1, "W": [[1, 0], [0, 1]], "A": [[0, 0], [0, 0]],
             "B": [[0, 0], [0, 0]], "v_bias": [0, 0], "h_bias": [0, 0.5]},
    "kmeans": {"centroids": [[0, 0], [1, 0.5]]}})");
}

}  // namespace

TEST_CASE("compat gives the phases of the released AI4DL on all rows of its public traces") {
  const std::size_t rows =
      compare_with_release("ai4dl/sample.csv", "ai4dl/expected_sample.json") +
      compare_with_release("ai4dl/sample-vr.csv", "ai4dl/expected_sample-vr.json");
  CHECK((rows == 0 || rows == 2490));
}

TEST_CASE("compat gives the parts of the phase that the release expanded, on all rows") {
  const std::size_t rows =
      compare_with_release("ai4dl/sample.csv", "ai4dl/expected_sample.json", true) +
      compare_with_release("ai4dl/sample-vr.csv", "ai4dl/expected_sample-vr.json", true);
  CHECK((rows == 0 || rows == 2490));
}

TEST_CASE("AI4DL's parameters are refused if a part is missing or malformed") {
  const std::string parameters = content("ai4dl/model.json");
  if (parameters.empty()) return;
  json document = json::parse(parameters);
  document["crbm"]["W"].erase(0);
  const Result<Model> misshapen = import_ai4dl(document.dump(), "x.json");
  REQUIRE(!misshapen);
  CHECK(misshapen.error().text == "x.json: crbm.W: has 72 numbers, not 80");
  document.erase("scaler");
  CHECK(!import_ai4dl(document.dump(), "x.json"));
  CHECK(!import_ai4dl("{}", "x.json"));
  CHECK(!import_ai4dl("hello", "x.json"));
}

TEST_CASE("sizes that are not small integers are refused with their key") {
  json document = small_parameters();
  REQUIRE(import_ai4dl(document.dump(), "x.json"));
  for (const json& size : {json(1e300), json(-2), json(2.5), json(4'294'967'298), json("2")}) {
    document["crbm"]["n_hid"] = size;
    const Result<Model> model = import_ai4dl(document.dump(), "x.json");
    REQUIRE(!model);
    CHECK(model.error().text == "x.json: n_hid: must be a whole number of 0..1000000");
  }
}

TEST_CASE("a string in a matrix and too deep nesting are refused") {
  json document = small_parameters();
  document["crbm"]["W"][0][0] = "x";
  const Result<Model> text = import_ai4dl(document.dump(), "x.json");
  REQUIRE(!text);
  CHECK(text.error().text ==
        "x.json: these are not AI4DL's parameters: type must be number, but is string");
  const std::string deep = std::string(4'000'000, '[') + std::string(4'000'000, ']');
  CHECK(!import_ai4dl(deep, "x.json"));
  CHECK(!parse_ai4dl_weights("{\"W\": " + deep + "}", "x.json"));
}

TEST_CASE("a too long source is cut between two characters") {
  json document = small_parameters();
  std::string source = "x";
  while (source.size() < kMaxTextBytes + 10) source += "\u00e9";
  document["source"] = source;
  const Result<Model> model = import_ai4dl(document.dump(), "x.json");
  REQUIRE(model);
  CHECK(model->provenance.at("source") == source.substr(0, kMaxTextBytes - 1));
  CHECK(parse_model(serialize_model(*model), "m.json"));
}

TEST_CASE("an imported model can be saved and loaded") {
  const std::string parameters = content("ai4dl/model.json");
  if (parameters.empty()) return;
  const Result<Model> model = import_ai4dl(parameters, "model.json");
  REQUIRE(model);
  const Result<Model> loaded = parse_model(serialize_model(*model), "m.json");
  if (!loaded) FAIL(loaded.error().text);
  CHECK(loaded->crbm.w == model->crbm.w);
  CHECK(loaded->schema == model->schema);
}
