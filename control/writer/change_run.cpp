#include "control/writer/change_run.h"

#include <algorithm>

#include "cgroupfs/cgroup_directory.h"
#include "cgroupfs/memory_reading.h"
#include "control/lease/reclaim.h"
#include "control/lease/restore.h"

namespace cgphase {
namespace {

std::size_t index_of(Knob knob) { return static_cast<std::size_t>(knob); }

LeasesByKnob leases_of(const LeaseTable& leases, CgroupId id) {
  LeasesByKnob result;
  for (const Knob knob : kKnobs)
    if (const auto record = leases.find(id, knob))
      if (const auto values = leases.read_values(*record, id, knob)) result.add(knob, *values);
  return result;
}

// `second` may be empty.
KnobText higher(Knob knob, const KnobText& first, const KnobText& second) {
  Limits one, other;
  if (!parse_knob(knob, first.view(), one) || !parse_knob(knob, second.view(), other)) return first;
  return compare_knob(knob, other, one) > 0 ? second : first;
}

// The kernel refuses a burst above the quota. If the quota cannot be read, the write itself fails.
bool fits_quota(int directory, const KnobText& burst) {
  const auto quota = read_knob(directory, Knob::cpu_max);
  return !quota || !cut_to_quota(burst, *quota);
}

// Not by the fast path: a weight needs no raise, and the original of a memory.max could kill or end
// the guard.
bool watched(Knob knob) { return knob != Knob::cpu_weight && knob != Knob::memory_max; }

std::string mib(Bytes bytes) { return std::to_string(bytes.value / kMiB) + " MiB"; }

}  // namespace

void settle_leases(const ChangeTools& tools, const TrackedCgroup& cgroup) {
  if (tools.lowering_elsewhere(cgroup.id)) return;
  bool any_held = false;
  for (const Knob knob : kKnobs) {
    const auto record = tools.leases.find(cgroup.id, knob);
    if (!record) continue;
    const auto values = tools.leases.read_values(*record, cgroup.id, knob);
    const auto found = read_knob(cgroup.directory.get(), knob);
    if (!found && found.error().kind == ErrorKind::gone)
      tools.leases.release(*record, cgroup.id, knob);
    else if (found && values && same_value(knob, *found, values->original))
      (void)release_restored(tools.leases, *record, cgroup.id, knob, cgroup.directory.get());
    else if (watched(knob))
      any_held = true;
  }
  if (!any_held && tools.fast_path != nullptr) tools.fast_path->drop(cgroup.id);
}

ChangeRun::ChangeRun(const ChangeTools& tools, TrackedCgroup& cgroup, const LimitChange& change,
                     std::uint64_t epoch)
    : tools_(tools), cgroup_(cgroup), change_(change), epoch_(epoch) {}

LimitResult ChangeRun::run() {
  LimitResult result;
  result.decision_id = change_.decision_id;
  result.id = change_.id;
  Status status = apply();
  if (!status) roll_back();
  settle_leases(tools_, cgroup_);
  result.written = status.has_value();
  if (!status) {
    result.program_started = program_started();
    result.overtaken = overtaken() && !result.program_started;
    result.error = status.error().text;
    result.failed_as = status.error().kind;
  }
  if (const auto limits = read_limits(cgroup_.directory.get())) result.in_force = *limits;
  return result;
}

Status ChangeRun::apply() {
  if (tools_.leases.revoked())
    return failure(ErrorKind::denied,
                   "a restore from outside revoked the leases; nothing is changed until the agent "
                   "has reread the limits");
  if (Status same = check_identity(); !same) return same;
  const auto in_file = read_limits(cgroup_.directory.get());
  if (!in_file) return std::unexpected(in_file.error());
  auto steps = plan_change(change_, *in_file, leases_of(tools_.leases, cgroup_.id));
  if (!steps) return std::unexpected(steps.error());
  steps_ = std::move(*steps);
  if (Status leased = lease_steps(); !leased) return leased;
  if (Status written = write_steps(); !written) return written;
  return check_after();
}

Status ChangeRun::check_identity() const {
  if (!directory_alive(cgroup_.directory.get()))
    return failure(ErrorKind::gone, "the cgroup was removed");
  const auto named = identify(tools_.cgroup_root + cgroup_.path);
  if (!named || *named != cgroup_.id)
    return failure(ErrorKind::gone, "the cgroup at this path was removed or replaced");
  return {};
}

Status ChangeRun::lease_steps() {
  for (const ChangeStep& step : steps_) {
    const auto record =
        tools_.leases.record(cgroup_.id, cgroup_.path, step.knob, step.from, step.to,
                             change_.reason, change_.deadline);
    if (!record) return std::unexpected(record.error());
    if (tools_.fast_path == nullptr || !watched(step.knob)) continue;
    const Status covered =
        tools_.fast_path->cover(cgroup_.id, cgroup_.directory.get(), step.knob, *record);
    if (!covered && step.lowers) return covered;
  }
  // A lowering may be rolled back to a raise that comes after it. A raise submitted after the
  // lowering, but done before this point, has already made the lowering void.
  const std::lock_guard lock(cgroup_.mutex);
  for (const ChangeStep& step : steps_)
    cgroup_.raised_to[index_of(step.knob)] = change_.raise ? step.to : KnobText{};
  return {};
}

Status ChangeRun::write_steps() {
  for (const ChangeStep& step : steps_) {
    const bool memory = step.knob == Knob::memory_high || step.knob == Knob::memory_max;
    if (memory && step.lowers)
      if (Status room = make_room(step); !room) return room;
    const auto start = recheck(step);
    if (!start) return std::unexpected(start.error());
    if (*start == Start::higher_already) continue;
    if (Status still = still_wanted(); !still) return still;
    begun_.push_back(step);
    if (Status written = write_step(step); !written) return written;
    if (Status leased = check_lease(step); !leased) return leased;
  }
  return {};
}

// A grant starts from the original. Another thread that settled the leases between the lease and
// the write took it for restored.
Status ChangeRun::check_lease(const ChangeStep& step) const {
  const LeasesByKnob leased = leases_of(tools_.leases, cgroup_.id);
  const LeaseValues* lease = leased.of(step.knob);
  const bool named = lease != nullptr && (lease->is_ours(step.knob, step.to) ||
                                          same_value(step.knob, lease->original, step.to));
  if (named || !change_.grant) return {};
  return failure(ErrorKind::io, std::string(file_name(step.knob)) + ": its lease ended meanwhile");
}

// A reclaim of seconds may lie between the plan and the write. A value that somebody else wrote
// meanwhile stays. A raise also continues from a value of the fast path, and leaves a higher value
// unchanged.
Result<ChangeRun::Start> ChangeRun::recheck(const ChangeStep& step) const {
  const auto found = read_knob(cgroup_.directory.get(), step.knob);
  if (!found) return std::unexpected(found.error());
  if (same_value(step.knob, *found, step.from)) return Start::as_planned;
  const LeasesByKnob leased = leases_of(tools_.leases, cgroup_.id);
  const LeaseValues* lease = leased.of(step.knob);
  Limits now, wanted;
  const bool ours = lease != nullptr && (lease->is_ours(step.knob, *found) ||
                                         same_value(step.knob, *found, lease->original));
  if (change_.raise && ours && parse_knob(step.knob, found->view(), now) &&
      parse_knob(step.knob, step.to.view(), wanted))
    return compare_knob(step.knob, wanted, now) > 0 ? Start::as_planned : Start::higher_already;
  return failure(ErrorKind::invalid, std::string(file_name(step.knob)) + " contains '" +
                                         std::string(found->view()) + "' instead of '" +
                                         std::string(step.from.view()) +
                                         "': somebody else changed it");
}

bool ChangeRun::overtaken() const {
  return !change_.raise && (cgroup_.epoch.load() != epoch_ || program_started());
}

// The fast path may have checked for a new program before this write, when there was nothing to
// restore.
bool ChangeRun::program_started() const {
  return !change_.raise && change_.decided && tools_.fast_path != nullptr &&
         tools_.fast_path->program_started(cgroup_.id, *change_.decided);
}

Status ChangeRun::still_wanted() const {
  if (change_.raise) return {};
  if (program_started())
    return failure(ErrorKind::invalid, "a program started and may read the limit");
  if (overtaken()) return failure(ErrorKind::invalid, "a raise or a restore came first");
  if (change_.deadline && SystemClock().monotonic_now() >= *change_.deadline)
    return failure(ErrorKind::io, "the lease would have ended by now");
  if (tools_.expired())
    return failure(ErrorKind::io, "deadline reached, or the fast path raised the limit");
  return {};
}

Status ChangeRun::write_step(const ChangeStep& step) {
  const int directory = cgroup_.directory.get();
  if (Status written = write_knob(directory, step.knob, step.to); !written) return written;
  const auto found = read_knob(directory, step.knob);
  if (!found) return std::unexpected(found.error());
  if (!same_value(step.knob, *found, step.to))
    return failure(ErrorKind::invalid, std::string(file_name(step.knob)) + ": '" +
                                           std::string(step.to.view()) + "' was written, '" +
                                           std::string(found->view()) + "' is in force");
  return {};
}

// The last check before memory.high or memory.max falls. The kernel would make tasks reclaim the
// excess themselves, so memory.reclaim drops that cache here first.
Status ChangeRun::make_room(const ChangeStep& step) const {
  const int directory = cgroup_.directory.get();
  Limits target;
  if (Status parsed = parse_knob(step.knob, step.to.view(), target); !parsed) return parsed;
  const std::optional<Bytes> wanted = target.memory_bytes();
  if (!wanted) return {};
  const Bytes limit = *wanted;
  const std::string name = file_name(step.knob);
  const Bytes ceiling = std::min(change_.memory_need_ceiling.value_or(limit), limit);
  const auto current = read_byte_count(directory, "memory.current");
  if (current && current->value + kRoomBytes > limit.value) {
    // This thread may have waited for the reclaim of another container.
    if (Status still = still_wanted(); !still) return still;
    // If this fails or the file is missing, the memory stays in use and the check below refuses.
    (void)reclaim_below(directory, limit, tools_.expired);
    const auto now = read_byte_count(directory, "memory.current");
    if (!now) return std::unexpected(now.error());
    // Above memory.max the kernel would kill.
    const std::uint64_t spare = step.knob == Knob::memory_max ? kRoomBytes / 2 : 0;
    if (now->value + spare > limit.value)
      return failure(
          ErrorKind::invalid,
          name + ": " + mib(*now) + " are in use and cannot be reclaimed below " + mib(limit));
  }
  const auto need = read_memory_need(directory);
  if (!need) return std::unexpected(need.error());
  if (*need > ceiling)
    return failure(ErrorKind::invalid,
                   name + ": need is " + mib(*need) + ", above the ceiling of " + mib(ceiling));
  return {};
}

Status ChangeRun::check_after() const {
  if (Status same = check_identity(); !same) return same;
  if (tools_.leases.revoked())
    return failure(ErrorKind::denied, "a restore from outside revoked the leases");
  if (Status still = still_wanted(); !still) return still;
  return {};
}

// Rolls back by compare-and-set, in the opposite order. A value that the fast path or somebody else
// wrote meanwhile stays. If a raise overtook this change, its value is used. After a revocation or
// a program start, the originals are used.
void ChangeRun::roll_back() {
  if (begun_.empty()) return;
  const int directory = cgroup_.directory.get();
  const bool to_original = tools_.leases.revoked() || program_started();
  const LeasesByKnob leased = leases_of(tools_.leases, cgroup_.id);
  const std::lock_guard lock(cgroup_.mutex);
  for (auto begun = begun_.rbegin(); begun != begun_.rend(); ++begun) {
    const ChangeStep& step = *begun;
    const auto found = read_knob(directory, step.knob);
    if (!found || !same_value(step.knob, *found, step.to)) continue;
    const LeaseValues* lease = leased.of(step.knob);
    KnobText back = step.from;
    if (overtaken()) back = higher(step.knob, back, cgroup_.raised_to[index_of(step.knob)]);
    if (to_original && lease != nullptr) back = lease->original;
    // The overtaking raise may not have raised the quota yet. In that case it writes the burst
    // afterwards. If it has raised the quota already, its burst may be the previous one.
    // After a raise by the fast path neither may fit, and the lower burst stays.
    if (step.knob == Knob::cpu_max_burst && !fits_quota(directory, back)) {
      if (!fits_quota(directory, step.from)) continue;
      (void)write_knob(directory, step.knob, step.from);
      if (!fits_quota(directory, back)) continue;
    }
    // A failure means that the cgroup is being removed. The lease still records the values.
    (void)write_knob(directory, step.knob, back);
  }
}

}  // namespace cgphase
