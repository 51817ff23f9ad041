#include "model/model.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/crc32.h"
#include "model/feature_schema.h"
#include "model/foreign_json.h"
#include "tests/model/example_models.h"
#include "tests/model/temporary_folder.h"

using namespace cgphase;
using nlohmann::json;

namespace {

// The text of a model after an edit, with a valid checksum.
std::string edited(const std::function<void(json&)>& edit) {
  json document = json::parse(serialize_model(random_model(1)));
  edit(document);
  document.erase("checksum");
  char sum[16];
  std::snprintf(sum, sizeof sum, "%08x", crc32c(std::string_view(document.dump())));
  document["checksum"] = sum;
  return document.dump();
}

std::string refusal(const std::string& text) {
  const Result<Model> model = parse_model(text, "m.json");
  REQUIRE(!model.has_value());
  CHECK(model.error().kind == ErrorKind::invalid);
  return model.error().text;
}

std::string refusal_of(const std::function<void(json&)>& edit) { return refusal(edited(edit)); }

bool passes(const std::function<void(Model&)>& edit) {
  Model model = random_model(1);
  edit(model);
  return check_model(model, "m").has_value();
}

}  // namespace

TEST_CASE("a model is saved and loaded without a change, byte for byte") {
  const TemporaryFolder folder;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const ExampleSize size{1 + static_cast<int>(seed % 9), 1 + static_cast<int>(seed),
                           static_cast<int>(seed % 4), 1 + static_cast<int>(seed % 6)};
    const Model model = random_model(seed, size);
    REQUIRE(save_model(model, folder.path("m.json")));
    const Result<Model> loaded = load_model(folder.path("m.json"));
    if (!loaded) FAIL(loaded.error().text);
    CHECK(serialize_model(*loaded) == serialize_model(model));
    CHECK(loaded->schema == model.schema);
    CHECK(loaded->scaler.mean == model.scaler.mean);
    CHECK(loaded->crbm.w == model.crbm.w);
    CHECK(loaded->crbm.a == model.crbm.a);
    CHECK(loaded->crbm.b == model.crbm.b);
    CHECK(loaded->centroids.values == model.centroids.values);
    CHECK(loaded->phases.size() == model.phases.size());
    CHECK(loaded->provenance == model.provenance);
  }
}

TEST_CASE("numbers are restored exactly, also subnormal and inexact ones") {
  Model model = random_model(2);
  model.scaler.mean = {0.1, 1e-310, -0.0, 1e300, 3, std::nextafter(1.0, 2.0)};
  const Result<Model> loaded = parse_model(serialize_model(model), "m.json");
  REQUIRE(loaded);
  CHECK(loaded->scaler.mean == model.scaler.mean);
  CHECK(std::signbit(loaded->scaler.mean[2]));
}

// rule: SEC-06
TEST_CASE("a flipped bit anywhere is refused or changes nothing") {
  const std::string text = serialize_model(random_model(1, {2, 2, 1, 2}));
  for (std::size_t i = 0; i < text.size(); ++i)
    for (const int bit : {0, 3, 5}) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      const Result<Model> model = parse_model(damaged, "m.json");
      if (model) CHECK(serialize_model(*model) == text);
    }
}

TEST_CASE("a truncated file is refused") {
  const std::string text = serialize_model(random_model(1, {2, 2, 1, 2}));
  for (std::size_t size = 0; size + 2 < text.size(); size += 7)
    CHECK(!parse_model(text.substr(0, size), "m.json"));
}

TEST_CASE("an edit without a new checksum is refused as damage") {
  std::string text = serialize_model(random_model(1));
  text.replace(text.find("\"step_seconds\": 2"), 17, "\"step_seconds\": 3");
  CHECK(refusal(text) == "m.json: checksum: does not match: the file was damaged or edited");
}

TEST_CASE("an unknown key is refused with the nearest known key") {
  CHECK(refusal_of([](json& d) { d["centroid"] = 1; }) ==
        "m.json: centroid: unknown key, did you mean \"centroids\"?");
  CHECK(refusal_of([](json& d) { d["crbm"]["zzzzzzzzzzzz"] = 1; }) ==
        "m.json: crbm.zzzzzzzzzzzz: unknown key");
}

TEST_CASE("a key above the length limit is cut in the error and has no suggestion") {
  const auto key = [](std::size_t size) { return std::string(size, 'k'); };
  CHECK(refusal_of([&](json& d) { d[key(kMaxTextBytes)] = 1; }) ==
        "m.json: " + key(kMaxTextBytes) + ": unknown key");
  CHECK(refusal_of([&](json& d) { d["crbm"][key(kMaxTextBytes + 1)] = 1; }) ==
        "m.json: crbm." + key(64) + "...: unknown key");
  CHECK(refusal_of([&](json& d) { d["provenance"][key(kMaxTextBytes + 1)] = 1; }) ==
        "m.json: provenance." + key(64) + "...: must be a string");
  CHECK(refusal_of([&](json& d) { d["provenance"][key(kMaxTextBytes + 1)] = "x"; }) ==
        "m.json: provenance: a text longer than 4096 bytes");
  CHECK(refusal_of([&](json& d) { d["features"][0] = key(kMaxTextBytes + 1); }) ==
        "m.json: features: unknown feature \"" + key(64) + "...\"");
}

TEST_CASE("a missing key is refused by name") {
  CHECK(refusal_of([](json& d) { d.erase("scaler"); }) == "m.json: scaler: is missing");
  CHECK(refusal_of([](json& d) { d["phases"][0].erase("count"); }) ==
        "m.json: phases.count: is missing");
}

TEST_CASE("another format or version is refused") {
  CHECK(refusal("{}") == "m.json: format: this is not a model file of cgphase");
  CHECK(refusal("[1]") == "m.json: format: this is not a model file of cgphase");
  CHECK(refusal_of([](json& d) { d["version"] = 2; }) ==
        "m.json: version: only version 1 can be read");
  CHECK(refusal_of([](json& d) { d["schema"] = "cgphase.9"; }) ==
        "m.json: schema: only \"cgphase.1\" is known");
}

TEST_CASE("text that is not JSON is refused") {
  CHECK(refusal("hello").starts_with("m.json: not well-formed JSON"));
  CHECK(refusal("").starts_with("m.json: not well-formed JSON"));
  CHECK(refusal(std::string(100'000, '[')).starts_with("m.json: not well-formed JSON"));
}

TEST_CASE("the error for invalid JSON is printable and has line and column") {
  CHECK(refusal("{\n\"\xff\"}") ==
        "m.json: not well-formed JSON: parse error at line 2, column 2: syntax error while parsing "
        "object key - invalid string: ill-formed UTF-8 byte; last read: '\"\\xff'; expected "
        "string literal");
  CHECK(refusal("[1e999]").starts_with("m.json: not well-formed JSON: number overflow"));
  const std::string endless = refusal("\"" + std::string(1'000'000, 'x'));
  CHECK(endless.starts_with("m.json: not well-formed JSON: parse error at line 1, column 1000002"));
  CHECK(endless.size() < 2 * kMaxReasonBytes);
  CHECK(endless.ends_with("..."));
}

TEST_CASE("the deepest nesting is read, and deeper nesting is refused") {
  const auto nested = [](int levels) {
    const auto count = static_cast<std::size_t>(levels);
    return std::string(count, '[') + std::string(count, ']');
  };
  CHECK(refusal(nested(kMaxJsonDepth)).starts_with("m.json: format:"));
  const std::string deep = "m.json: not well-formed JSON: deeper than 16 levels";
  CHECK(refusal(nested(kMaxJsonDepth + 1)) == deep);
  CHECK(refusal(nested(4'000'000)) == deep);
}

TEST_CASE("a parent above the integer range is refused, not wrapped around to none") {
  CHECK(refusal_of([](json& d) {
          d["parents"] = json::array({18446744073709551615U, 0, 0, 0, 0});
        }) == "m.json: parents: must be an integer of at most 1000000");
}

TEST_CASE("a wrong type is refused with its key") {
  CHECK(refusal_of([](json& d) { d["step_seconds"] = "2"; }) ==
        "m.json: step_seconds: must be a number");
  CHECK(refusal_of([](json& d) { d["scaler"]["mean"][0] = nullptr; }) ==
        "m.json: scaler.mean: must be a number");
  CHECK(refusal_of([](json& d) { d["crbm"]["hidden"] = 1.5; }) ==
        "m.json: crbm.hidden: must be an integer of at most 1000000");
  CHECK(refusal_of([](json& d) { d["crbm"]["hidden"] = 18446744073709551615U; })
            .starts_with("m.json: crbm.hidden:"));
  CHECK(refusal_of([](json& d) { d["provenance"]["a"] = 1; }) ==
        "m.json: provenance.a: must be a string");
}

TEST_CASE("an unknown feature is refused with the nearest known one") {
  CHECK(
      refusal_of([](json& d) { d["features"][0] = "cpu_usage_ration"; }) ==
      "m.json: features: unknown feature \"cpu_usage_ration\", did you mean \"cpu_usage_ratio\"?");
}

TEST_CASE("a matrix of the wrong shape is refused") {
  CHECK(refusal_of([](json& d) { d["crbm"]["W"].erase(0); }) ==
        "m.json: crbm.W: must be an array of 10 rows");
  CHECK(refusal_of([](json& d) { d["crbm"]["B"][0].push_back(1.0); }) ==
        "m.json: crbm.B: a row must have 18 numbers");
}

TEST_CASE("scales that do not match the weights are refused") {
  CHECK(refusal_of([](json& d) { d["fixed"]["weight_shift"][0] = 3; }) ==
        "m.json: fixed.weight_shift: does not match the weights");
  CHECK(refusal_of([](json& d) { d["fixed"]["input_shift"] = 11; }) ==
        "m.json: fixed.input_shift: must be 12");
}

TEST_CASE("a switch cost is kept in the file, omitted if 0 and suggested if misspelt") {
  Model model = random_model(3);
  CHECK(serialize_model(model).find("switch_cost") == std::string::npos);
  model.switch_cost = 0x1.8p-3;
  const Result<Model> loaded = parse_model(serialize_model(model), "m.json");
  REQUIRE(loaded);
  CHECK(loaded->switch_cost == 0x1.8p-3);
  CHECK(serialize_model(*loaded) == serialize_model(model));
  CHECK(parse_model(edited([](json& d) { d["switch_cost"] = 0; }), "m.json"));
  CHECK(refusal_of([](json& d) { d["switch_costs"] = 1; }) ==
        "m.json: switch_costs: unknown key, did you mean \"switch_cost\"?");
}

TEST_CASE("a switch cost that is not a number or out of bounds is refused") {
  CHECK(refusal_of([](json& d) { d["switch_cost"] = "1"; }) ==
        "m.json: switch_cost: must be a number");
  CHECK(refusal_of([](json& d) { d["switch_cost"] = -0.5; }) ==
        "m.json: switch_cost: must be from 0 to 256");
  CHECK(passes([](Model& m) { m.switch_cost = kMaxSwitchCost; }));
  CHECK(!passes([](Model& m) { m.switch_cost = std::nextafter(kMaxSwitchCost, HUGE_VAL); }));
  CHECK(!passes([](Model& m) { m.switch_cost = std::numeric_limits<double>::quiet_NaN(); }));
}

// rule: SEC-06
TEST_CASE("check_model refuses numbers that are not finite or out of range") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(passes([](Model&) {}));
  CHECK(!passes([&](Model& m) { m.crbm.a[0] = nan; }));
  CHECK(!passes([&](Model& m) { m.scaler.mean[0] = HUGE_VAL; }));
  CHECK(!passes([](Model& m) { m.scaler.scale[0] = 0; }));
  CHECK(passes([](Model& m) { m.crbm.w[0] = kMaxParameter; }));
  CHECK(!passes([](Model& m) { m.crbm.w[0] = std::nextafter(kMaxParameter, HUGE_VAL); }));
  CHECK(passes([](Model& m) { m.centroids.values[0] = 1; }));
  CHECK(!passes([](Model& m) { m.centroids.values[0] = 1.001; }));
  CHECK(passes([](Model& m) { m.step_seconds = kMaxStepSeconds; }));
  CHECK(!passes([](Model& m) { m.step_seconds = kMaxStepSeconds + 1; }));
  CHECK(!passes([](Model& m) { m.step_seconds = 0; }));
  CHECK(!passes([](Model& m) { m.phases[0].cpu_m2 = -1; }));
  CHECK(!passes([](Model& m) { m.phases.pop_back(); }));
}

TEST_CASE("the limits of a model accept the largest value and refuse one more") {
  const auto fits = [](const ExampleSize& size) {
    return check_model(random_model(1, size, 0.01), "m").has_value();
  };
  CHECK(fits({kMaxFeatures, 2, 1, 2}));
  CHECK(!fits({kMaxFeatures + 1, 2, 1, 2}));
  CHECK(fits({2, kMaxHidden, 1, 2}));
  CHECK(!fits({2, kMaxHidden + 1, 1, 2}));
  CHECK(fits({2, 2, kMaxHistory, 2}));
  CHECK(!fits({2, 2, kMaxHistory + 1, 2}));
  CHECK(fits({2, 2, 1, kMaxPhases}));
  CHECK(!fits({2, 2, 1, kMaxPhases + 1}));
}

TEST_CASE("the limits of provenance accept the largest value and refuse one more") {
  const auto entries = [](int count) {
    return [count](Model& m) {
      m.provenance.clear();
      for (int i = 0; i < count; ++i) m.provenance[std::to_string(i)] = "";
    };
  };
  CHECK(passes(entries(kMaxProvenance)));
  CHECK(!passes(entries(kMaxProvenance + 1)));
  CHECK(passes([](Model& m) { m.provenance["a"] = std::string(kMaxTextBytes, 'x'); }));
  CHECK(!passes([](Model& m) { m.provenance["a"] = std::string(kMaxTextBytes + 1, 'x'); }));
}

TEST_CASE("a file above the size limit is refused before it is parsed") {
  CHECK(refusal(std::string(kMaxModelFileBytes + 1, ' ')).find("larger than the limit") !=
        std::string::npos);
}

TEST_CASE("a model that does not pass the check is not saved") {
  const TemporaryFolder folder;
  Model model = random_model(1);
  model.step_seconds = -1;
  CHECK(!save_model(model, folder.path("m.json")));
  CHECK(!std::filesystem::exists(folder.path("m.json")));
}

TEST_CASE("the error for a missing model file is not_found and names it") {
  const Result<Model> model = load_model("/nonexistent/m.json");
  REQUIRE(!model);
  CHECK(model.error().kind == ErrorKind::not_found);
  CHECK(model.error().text.find("/nonexistent/m.json") != std::string::npos);
}

TEST_CASE("invalid UTF-8 in a string does not stop a model from being written") {
  Model model = random_model(1);
  model.provenance["input"] = "a\xff";
  CHECK(parse_model(serialize_model(model), "m.json"));
}
