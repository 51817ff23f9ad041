#include "cli/replay/earlier_runs.h"

#include <algorithm>
#include <utility>

#include "policy/policy.h"

namespace cgphase {

void EarlierRuns::ended(const std::string& service, double end_seconds, double length_seconds,
                        nlohmann::json learned) {
  services_[service].waiting.push_back({end_seconds, length_seconds, std::move(learned)});
}

EarlierRuns::Known EarlierRuns::before(const std::string& service, double begin_seconds) {
  Service& known = services_[service];
  std::stable_sort(known.waiting.begin(), known.waiting.end(),
                   [](const Run& a, const Run& b) { return a.end_seconds < b.end_seconds; });
  auto run = known.waiting.begin();
  for (; run != known.waiting.end() && run->end_seconds <= begin_seconds; ++run) {
    known.lengths.push_back(run->length_seconds);
    if (!run->learned.is_null()) known.learned = merge_learned(known.learned, run->learned);
  }
  known.waiting.erase(known.waiting.begin(), run);
  Known result{.learned = known.learned, .usual_seconds = {}};
  if (known.lengths.empty()) return result;
  std::vector<double> lengths = known.lengths;
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  result.usual_seconds = *middle;
  return result;
}

}  // namespace cgphase
