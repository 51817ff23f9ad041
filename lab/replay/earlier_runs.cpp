#include "lab/replay/earlier_runs.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cgphase {

void EarlierRuns::expect(const std::string& service, double begin_seconds) {
  Service& known = services_[service];
  known.to_come += 1;
  known.last_begin = std::max(known.last_begin, begin_seconds);
}

void EarlierRuns::ended(const std::string& service, double end_seconds, double length_seconds,
                        LearnedState learned, std::shared_ptr<const MemoryCourse> course) {
  const auto known = services_.find(service);
  if (known == services_.end() || end_seconds > known->second.last_begin) return;
  auto& waiting = known->second.waiting;
  const auto later = std::upper_bound(
      waiting.begin(), waiting.end(), end_seconds,
      [](double end, const Run& run) { return end < run.end_seconds; });
  waiting.insert(later, {end_seconds, length_seconds, std::move(learned), std::move(course)});
}

EarlierRuns::Known EarlierRuns::before(const std::string& service, double begin_seconds) {
  Service& known = services_[service];
  auto run = known.waiting.begin();
  for (; run != known.waiting.end() && run->end_seconds <= begin_seconds; ++run) {
    auto& lengths = known.lengths;
    lengths.insert(std::upper_bound(lengths.begin(), lengths.end(), run->length_seconds),
                   run->length_seconds);
    known.learned = merge_learned(known.learned, run->learned);
    if (run->course) known.courses.push_back(std::move(run->course));
    if (known.courses.size() > kMostCourses) known.courses.erase(known.courses.begin());
  }
  known.waiting.erase(known.waiting.begin(), run);
  Known result{.learned = known.learned, .usual_seconds = {}, .courses = known.courses};
  if (!known.lengths.empty()) result.usual_seconds = known.lengths[known.lengths.size() / 2];
  CHECK_INVARIANT(known.to_come > 0);
  if (--known.to_come == 0) services_.erase(service);
  return result;
}

std::size_t EarlierRuns::kept() const {
  std::size_t count = 0;
  for (const auto& [name, service] : services_)
    count += service.waiting.size() + (is_empty(service.learned) ? 0 : 1);
  return count;
}

}  // namespace cgphase
