#include "control/writer/change_plan.h"

#include <string>

#include "base/check.h"

namespace cgphase {
namespace {

// Whether the change names this knob: its new value is present and differs from the old one.
bool wants(const LimitChange& change, Knob knob) {
  const auto wanted = format_knob(knob, change.new_limits);
  if (!wanted) return wanted.error().kind != ErrorKind::not_found;
  const auto old = format_knob(knob, change.old_limits);
  return !old || *old != *wanted;
}

std::string value_or_none(const Result<KnobText>& text) {
  return text ? "'" + std::string(text->view()) + "'" : "no value";
}

// A lowering needs exactly the value that was in force at the decision. A raise starts from any
// value of ours, because the fast path or a recent lowering may have been faster. A raise never
// starts from a foreign value, even if the decision was based on it. Somebody set it, and the
// safety rules have not checked it yet. Only a grant does, because it starts from the original.
Status check_start(const LimitChange& change, Knob knob, const Limits& in_file,
                   const LeasesByKnob& leased) {
  const auto found = format_knob(knob, in_file);
  const auto expected = format_knob(knob, change.old_limits);
  const LeaseValues* lease = leased.of(knob);
  const bool ours = found && lease &&
                    (lease->is_ours(knob, *found) || same_value(knob, lease->original, *found));
  const bool as_expected = found && expected && *found == *expected;
  const bool unleased_grant = change.grant && lease == nullptr;
  if (change.raise && !unleased_grant ? ours : as_expected) return {};
  return failure(ErrorKind::invalid, std::string(file_name(knob)) + " contains " +
                                         value_or_none(found) + " instead of " +
                                         value_or_none(expected) +
                                         ": somebody else changed it after the decision");
}

Status take_wanted(const LimitChange& change, const Limits& in_file, const LeasesByKnob& leased,
                   Limits& target) {
  for (const Knob knob : kKnobs) {
    if (!wants(change, knob)) continue;
    if (const auto text = format_knob(knob, change.new_limits); !text)
      return std::unexpected(text.error());
    const auto found = format_knob(knob, in_file);
    if (!found && found.error().kind == ErrorKind::not_found)
      return failure(ErrorKind::not_found,
                     std::string(file_name(knob)) + ": this cgroup has no such file");
    if (Status start = check_start(change, knob, in_file, leased); !start) return start;
    // A raise that a higher value overtook has nothing left to do.
    if (change.raise && compare_knob(knob, change.new_limits, in_file) <= 0) continue;
    copy_knob(knob, change.new_limits, target);
  }
  return {};
}

void fit_burst(const LimitChange& change, const Limits& in_file, const LeasesByKnob& leased,
               Limits& target) {
  if (!target.cpu_max || !target.cpu_max_burst || wants(change, Knob::cpu_max_burst)) return;
  const auto direction = compare_knob(Knob::cpu_max, target, in_file);
  const std::optional<Microseconds> quota = target.cpu_max->quota;
  if (direction < 0 && quota && *target.cpu_max_burst > *quota) target.cpu_max_burst = quota;
  const LeaseValues* lease = leased.of(Knob::cpu_max_burst);
  Limits original;
  const auto found = format_knob(Knob::cpu_max_burst, in_file);
  if (direction <= 0 || !lease || !found || !lease->is_ours(Knob::cpu_max_burst, *found) ||
      !parse_knob(Knob::cpu_max_burst, lease->original.view(), original))
    return;
  const bool fits = !quota || *original.cpu_max_burst <= *quota;
  if (fits && *original.cpu_max_burst > *target.cpu_max_burst)
    target.cpu_max_burst = original.cpu_max_burst;
}

}  // namespace

Result<std::vector<ChangeStep>> plan_change(const LimitChange& change, const Limits& in_file,
                                            const LeasesByKnob& leased) {
  Limits target = in_file;
  if (Status taken = take_wanted(change, in_file, leased, target); !taken)
    return std::unexpected(taken.error());
  fit_burst(change, in_file, leased, target);
  std::vector<ChangeStep> steps;
  for (const Knob knob : write_order(in_file, target)) {
    const auto from = format_knob(knob, in_file);
    const auto to = format_knob(knob, target);
    if (!from || !to || *from == *to) continue;
    steps.push_back({knob, *from, *to, compare_knob(knob, target, in_file) < 0});
    CHECK_INVARIANT(!change.raise || !steps.back().lowers);
  }
  return steps;
}

}  // namespace cgphase
