#include "tests/control/writer/recording_limit_writer.h"

#include <utility>

#include "cgroupfs/knob_file.h"

namespace cgphase {
namespace {

template <class T>
void remember(std::deque<T>& all, T one) {
  if (all.size() == RecordingLimitWriter::kRemembered) all.pop_front();
  all.push_back(std::move(one));
}

int count_different(const Limits& left, const Limits& right) {
  int count = 0;
  for (const Knob knob : kKnobs)
    if (compare_knob(knob, left, right) != 0) ++count;
  return count;
}

}  // namespace

Status RecordingLimitWriter::attach(CgroupId id, const CgroupPath& path, Fd) {
  attached_[id] = path;
  return {};
}

void RecordingLimitWriter::detach(CgroupId id) {
  attached_.erase(id);
  states_.erase(id);
}

void RecordingLimitWriter::fail_next(int count, Error error) {
  failures_left_ = count;
  failure_ = std::move(error);
}

void RecordingLimitWriter::submit(LimitChange change) {
  LimitResult result;
  result.decision_id = change.decision_id;
  result.id = change.id;
  if (!attached_.contains(change.id)) {
    result.error = "this container is not attached";
    result.failed_as = ErrorKind::gone;
  } else if (failures_left_ > 0) {
    --failures_left_;
    result.error = failure_.text;
    result.failed_as = failure_.kind;
  }
  State& state =
      states_.try_emplace(change.id, State{change.old_limits, change.old_limits}).first->second;
  if (result.error.empty()) {
    result.written = true;
    for (const Knob knob : kKnobs)
      if (format_knob(knob, change.new_limits)) copy_knob(knob, change.new_limits, state.now);
    remember(changes_, std::move(change));
  }
  result.in_force = state.now;
  results_.push_back(std::move(result));
}

void RecordingLimitWriter::submit_reclaim(CgroupId id, Bytes bytes) {
  LimitResult result;
  result.id = id;
  result.written = true;
  if (const Limits* now = limits(id)) result.in_force = *now;
  remember(reclaims_, Reclaim{id, bytes});
  results_.push_back(std::move(result));
}

std::vector<LimitResult> RecordingLimitWriter::drain_results() {
  return std::exchange(results_, {});
}

const Limits* RecordingLimitWriter::limits(CgroupId id) const {
  const auto found = states_.find(id);
  return found == states_.end() ? nullptr : &found->second.now;
}

LimitWriter::RestoreReport RecordingLimitWriter::restore(CgroupId id) {
  RestoreReport report;
  const auto found = states_.find(id);
  if (found == states_.end()) return report;
  report.restored = count_different(found->second.original, found->second.now);
  states_.erase(found);
  return report;
}

LimitWriter::RestoreReport RecordingLimitWriter::restore_all() {
  RestoreReport report;
  while (!states_.empty()) report.restored += restore(states_.begin()->first).restored;
  return report;
}

}  // namespace cgphase
