// parse_model: a refusal names its cause. An accepted model passes check_model, is written and read
// back byte for byte, and can run in integers. A wrong checksum is replaced by the right one, so
// that the parser reads on.
#include "model/model.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/crc32.h"
#include "model/crbm_fixed.h"
#include "tests/fuzz/refusal.h"

using namespace cgphase;
using nlohmann::json;

namespace {

const std::string kName = "m.json";

std::string with_checksum(const std::string& text) {
  json document = json::parse(text, nullptr, false);
  if (!document.is_object()) return text;
  document.erase("checksum");
  char printed[16];
  std::snprintf(printed, sizeof printed, "%08x",
                crc32c(document.dump(-1, ' ', false, json::error_handler_t::replace)));
  document["checksum"] = printed;
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

void check_engine(const Model& model) {
  const CrbmFixed fixed(model.crbm, model.centroids);
  for (const std::int16_t value : {std::int16_t{-32767}, std::int16_t{0}, std::int16_t{32767}}) {
    const std::vector<std::int16_t> window(static_cast<std::size_t>(fixed.window_size()), value);
    const CrbmFixed::Nearest nearest = fixed.nearest(window);
    CHECK_INVARIANT(nearest.index >= 0 && nearest.index < model.centroids.count);
    CHECK_INVARIANT(nearest.distance >= 0 && nearest.margin >= 0);
    CHECK_INVARIANT(fixed.error_bound(window) >= 0);
  }
}

void check(const std::string& text) {
  const Result<Model> model = parse_model(text, kName);
  if (!model) return check_refusal(model.error(), kName, "");
  CHECK_INVARIANT(check_model(*model, kName).has_value());
  const std::string written = serialize_model(*model);
  const Result<Model> again = parse_model(written, kName);
  CHECK_INVARIANT(again.has_value());
  CHECK_INVARIANT(serialize_model(*again) == written);
  CHECK_INVARIANT(again->schema == model->schema);
  CHECK_INVARIANT(again->crbm.w == model->crbm.w && again->crbm.b == model->crbm.b);
  CHECK_INVARIANT(again->centroids.values == model->centroids.values);
  CHECK_INVARIANT(again->centroids.parents == model->centroids.parents);
  CHECK_INVARIANT(again->scaler.mean == model->scaler.mean);
  check_engine(*model);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  check(text);
  check(with_checksum(text));
  return 0;
}
