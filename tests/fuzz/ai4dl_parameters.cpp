// import_ai4dl and parse_ai4dl_weights: a refusal names the file. Accepted parameters give a model
// that its file can represent.
#include "model/ai4dl.h"

#include "tests/fuzz/refusal.h"

using namespace cgphase;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size), name = "PARAMETERS.json";
  for (const bool expanded : {false, true}) {
    const Result<Model> model = import_ai4dl(text, name, expanded);
    if (!model) {
      check_refusal(model.error(), name, "");
      continue;
    }
    CHECK_INVARIANT(check_model(*model, name).has_value());
    CHECK_INVARIANT(model->centroids.parents.empty() != expanded);
    const std::string written = serialize_model(*model);
    const Result<Model> again = parse_model(written, name);
    CHECK_INVARIANT(again.has_value() && serialize_model(*again) == written);
  }
  const Result<CrbmParameters> weights = parse_ai4dl_weights(text, name);
  if (!weights) check_refusal(weights.error(), name, "");
  return 0;
}
