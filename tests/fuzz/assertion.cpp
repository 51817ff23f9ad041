// check_assertion: a refusal is one printable line. An accepted assertion names only known things
// and has an outcome for all values. If it names any values, it fails without them.
#include "lab/replay/assertion.h"

#include <cmath>

#include "base/check.h"
#include "base/text.h"

using namespace cgphase;

namespace {

const std::vector<std::string> kPolicies = {"phase", "vpa", "vpa-tuned",
                                            "hold:margin=1.05,window=9",
                                            "hold@5", "phase+rails"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(bytes), size);
  bool named = false;
  const auto nothing = check_assertion(text, kPolicies, [&](const MeasureName& name) {
    CHECK_INVARIANT(name.policy < kPolicies.size() && name.measure != nullptr);
    named = true;
    return std::nullopt;
  });
  if (!nothing) {
    CHECK_INVARIANT(nothing.error().kind == ErrorKind::invalid);
    CHECK_INVARIANT(!nothing.error().text.empty());
    CHECK_INVARIANT(printable(nothing.error().text) == nothing.error().text);
    return 0;
  }
  CHECK_INVARIANT(nothing->text == text);
  CHECK_INVARIANT(!named || !nothing->holds);
  for (const double value : {0.0, -1.0, 1e300, 1e-300}) {
    const auto known = [&](const MeasureName&) { return std::optional(value); };
    const auto outcome = check_assertion(text, kPolicies, known);
    for (const auto& side : {outcome->left, outcome->right})
      CHECK_INVARIANT(!side || std::isfinite(*side));
    CHECK_INVARIANT(!outcome->holds || (outcome->left && outcome->right));
  }
  return 0;
}
