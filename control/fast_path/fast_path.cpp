#include "control/fast_path/fast_path.h"

#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "base/thread.h"
#include "control/fast_path/slot.h"

namespace cgphase {
namespace {

enum class SlotState : std::uint32_t { empty, filling, active, leaving, left };

constexpr int kNoRecord = -1;
constexpr std::array<Knob, 2> kMemoryKnobs = {Knob::memory_max, Knob::memory_high};
// Longest time that the fast path lets the kernel reclaim while it raises a limit.
constexpr std::chrono::milliseconds kLongestWrite{5};
// The order for raising: quota before burst, memory.max before memory.high.
constexpr std::array<Knob, 4> kSizeKnobs = {Knob::cpu_max, Knob::cpu_max_burst, Knob::memory_max,
                                            Knob::memory_high};

Reason reason_of(MemoryRisk risk) {
  switch (risk) {
    case MemoryRisk::event: return Reason::memory_event;
    case MemoryRisk::stall: return Reason::stalled;
    case MemoryRisk::pressure: return Reason::pressure;
    case MemoryRisk::headroom:
    case MemoryRisk::none: break;
  }
  return Reason::headroom;
}

}  // namespace

struct FastPath::Slot {
  std::atomic<SlotState> state{SlotState::empty};
  std::array<std::atomic<int>, kKnobCount> records;
  CgroupId id;
  FastPathFiles files;
  bool told = false;  // every signal source works, so polling is not needed
  FastPathRule rule;
  LookBudget budget;
  PressureAlert pressure;
  // When the fast path last raised the quota; the default means never. The next slot of this
  // container needs it.
  std::atomic<MonotonicTime> cpu_raised{};
  MonotonicTime due;
  std::array<KnobText, kKnobCount> outside;  // the last values that somebody else wrote
  // Last value while memory.max was not leased: then its owner sets it, and memory.high depends on
  // it.
  std::optional<MemoryLimit> memory_max;

  Slot() { forget_records(); }
  int record(Knob knob) const { return records[static_cast<std::size_t>(knob)].load(); }
  void forget_records() {
    for (auto& record : records) record.store(kNoRecord);
  }
  void take_records(const Slot& former) {
    for (std::size_t i = 0; i < records.size(); ++i) records[i].store(former.records[i].load());
  }
  void begin(CgroupId cgroup, const FastPathNumbers& numbers) {
    id = cgroup;
    rule = FastPathRule(numbers);
    budget = LookBudget();
    pressure = PressureAlert();
    cpu_raised.store(MonotonicTime());
    due = MonotonicTime();
    outside = {};
    memory_max.reset();
  }
};

FastPath::FastPath(const Options& options, std::unique_ptr<FastPathSignals> signals)
    : leases_(*options.leases),
      clock_(*options.clock),
      signals_(std::move(signals)),
      slots_(static_cast<std::size_t>(options.containers)),
      numbers_(options.safety) {}

FastPath::~FastPath() { stop(); }

Result<std::unique_ptr<FastPath>> FastPath::create(const Options& options) {
  CHECK_INVARIANT(options.leases != nullptr && options.clock != nullptr && options.containers > 0);
  auto signals = FastPathSignals::create({.places = options.containers,
                                       .pressure = options.pressure,
                                       .inotify = options.inotify,
                                       .cgroup_root = options.cgroup_root,
                                       .clock = options.clock});
  if (!signals) return std::unexpected(signals.error());
  std::unique_ptr<FastPath> fast_path(new FastPath(options, std::move(*signals)));
  fast_path->action_event_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fast_path->action_event_.valid()) return errno_failure("fast path: eventfd", errno);
  return fast_path;
}

Status FastPath::start() {
  CHECK_INVARIANT(!thread_.joinable());
  Result<std::thread> thread = start_thread("cgphase-guard", [this] { run(); });
  if (!thread) return std::unexpected(thread.error());
  thread_ = std::move(*thread);
  return {};
}

void FastPath::stop() {
  if (!thread_.joinable()) return;
  signals_->stop();
  thread_.join();
}

void FastPath::run() {
  WriteDeadline deadline;
  deadline_ = &deadline;
  for (std::chrono::milliseconds next{0}; signals_->collect(next);) {
    next = look();
    if (next == kFastPathQuietInterval && !watches_any()) next = kFastPathIdleInterval;
  }
  deadline_ = nullptr;
}

std::chrono::milliseconds FastPath::poll_once() {
  signals_->collect(std::chrono::milliseconds(0));
  return look();
}

bool FastPath::watches_any() {
  return std::ranges::any_of(used(), [](const Slot& slot) {
    const SlotState state = slot.state.load();
    return state != SlotState::empty && state != SlotState::left;
  });
}

FastPath::Slot* FastPath::find(CgroupId id) {
  for (Slot& slot : used())
    if (slot.state.load() == SlotState::active && slot.id == id) return &slot;
  return nullptr;
}

FastPath::Slot* FastPath::find_empty() {
  for (Slot& slot : slots_)
    if (slot.state.load() == SlotState::empty) return &slot;
  return nullptr;
}

std::span<FastPath::Slot> FastPath::used() { return std::span(slots_).first(used_.load()); }

int FastPath::place_of(const Slot& slot) const { return static_cast<int>(&slot - slots_.data()); }

// Closes one slot that the fast path's thread has left. False if there is no such slot.
bool FastPath::reap() {
  for (Slot& slot : used()) {
    if (slot.state.load() != SlotState::left) continue;
    remember_cpu_raise(slot);
    signals_->disarm(place_of(slot));
    slot.files.close();
    slot.forget_records();
    slot.state.store(SlotState::empty);
    return true;
  }
  return false;
}

void FastPath::remember_cpu_raise(const Slot& slot) {
  const MonotonicTime raised = slot.cpu_raised.load();
  if (raised == MonotonicTime()) return;
  const MonotonicTime now = clock_.monotonic_now();
  std::erase_if(cpu_raises_, [&](const auto& one) {
    return now - one.second > numbers_.cpu_raises_window;
  });
  MonotonicTime& last = cpu_raises_[slot.id];
  last = std::max(last, raised);
}

// The time of the last raise survives if a container is dropped or its files are reopened.
void FastPath::recall_cpu_raise(Slot& slot) {
  for (const Slot& former : used()) {
    const SlotState state = former.state.load();
    const bool its = state == SlotState::active || state == SlotState::leaving ||
                     state == SlotState::left;
    if (its && former.id == slot.id) remember_cpu_raise(former);
  }
  const auto raised = cpu_raises_.find(slot.id);
  if (raised == cpu_raises_.end()) return;
  slot.cpu_raised.store(raised->second);
  slot.rule.cpu_raised(raised->second);
}

Status FastPath::cover(CgroupId id, int directory_fd, Knob knob, int record) {
  const std::lock_guard lock(model_plane_);
  Slot* former = find(id);
  if (former != nullptr && former->files.watches(knob)) {
    former->records[static_cast<std::size_t>(knob)].store(record);
    if (!former->told) signals_->call(place_of(*former));
    return {};
  }
  Slot* slot = find_empty();
  if (slot == nullptr && reap()) slot = find_empty();
  if (slot == nullptr)
    return failure(ErrorKind::invalid, "fast path: cannot watch another container: all " +
                                           std::to_string(slots_.size()) +
                                           " slots are in use; the limit is not lowered");
  // The first empty slot is taken, so used_ is the largest number of slots ever in use at once.
  used_.store(std::max(used_.load(), static_cast<std::size_t>(place_of(*slot)) + 1));
  slot->state.store(SlotState::filling);
  slot->begin(id, numbers_);
  if (Status opened = slot->files.open(directory_fd, knob); !opened) {
    slot->state.store(SlotState::empty);
    return opened;
  }
  if (former != nullptr) slot->take_records(*former);
  slot->records[static_cast<std::size_t>(knob)].store(record);
  slot->told = signals_->arm(place_of(*slot), directory_fd);
  recall_cpu_raise(*slot);
  // Events count from now on, not from the fast path's next check.
  const FastPathReading first = read(*slot, false);
  slot->rule.step(first);
  note_memory_max(*slot, first);
  if (former != nullptr) former->state.store(SlotState::leaving);
  slot->state.store(SlotState::active);
  // The thread may be idle: cover() runs only once per container and knob.
  if (slot->told) signals_->rouse();
  else signals_->call(place_of(*slot));
  return {};
}

void FastPath::drop(CgroupId id) {
  const std::lock_guard lock(model_plane_);
  if (Slot* slot = find(id)) slot->state.store(SlotState::leaving);
}

void FastPath::set_safety(const SafetyConfig& safety) {
  const std::lock_guard lock(model_plane_);
  numbers_ = FastPathNumbers(safety);
}

Status FastPath::listen(std::shared_ptr<ProgramStarts> starts) {
  const std::lock_guard lock(model_plane_);
  return signals_->listen(std::move(starts));
}

bool FastPath::program_started(CgroupId id, MonotonicTime since) const {
  return signals_->program_started(id.inode, since);
}

FastPathSource FastPath::pressure() const {
  const std::lock_guard lock(model_plane_);
  return signals_->pressure();
}

FastPathSource FastPath::inotify() const {
  const std::lock_guard lock(model_plane_);
  return signals_->inotify();
}

std::chrono::milliseconds FastPath::look() {
  woken_ = clock_.monotonic_now();
  MonotonicTime next = woken_ + kFastPathQuietInterval;
  // First, programs that are about to read their limits, even if the container was checked just
  // now.
  for (Slot& slot : used()) {
    if (slot.state.load() != SlotState::active || !signals_->take_program(place_of(slot))) continue;
    acting_.store(true);
    restore(slot, kSizeKnobs, Reason::program_started);
    acting_.store(false);
  }
  // Then the containers with a pending event.
  for (Slot& slot : used()) {
    if (slot.state.load() != SlotState::active || signals_->waiting(place_of(slot)) == 0) continue;
    if (due(slot)) watch(slot, signals_->take(place_of(slot)));
  }
  for (Slot& slot : used()) {
    const SlotState state = slot.state.load();
    if (state == SlotState::active) {
      if (due(slot)) watch(slot, signals_->take(place_of(slot)));
      next = std::min(next, slot.due);
    }
    if (state == SlotState::leaving) slot.state.store(SlotState::left);
  }
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(next - clock_.monotonic_now());
  return std::clamp(wait, std::chrono::milliseconds(0), kFastPathQuietInterval);
}

bool FastPath::due(Slot& slot) {
  if (woken_ >= slot.due) return true;
  if (signals_->waiting(place_of(slot)) == 0) return false;
  if (slot.budget.take(woken_)) return true;
  slot.due = std::min(slot.due, slot.budget.next());
  return false;
}

// The slot keeps a record's number after the lease has ended, so the lease is read again.
bool FastPath::holds(const Slot& slot, Knob knob) const {
  const int record = slot.record(knob);
  return record != kNoRecord && leases_.read_values(record, slot.id, knob).has_value();
}

bool FastPath::holds_any(const Slot& slot) const {
  return std::any_of(kKnobs.begin(), kKnobs.end(), [&](Knob knob) { return holds(slot, knob); });
}

FastPathReading FastPath::read(Slot& slot, bool full_stall) const {
  FastPathReading reading;
  reading.time = clock_.monotonic_now();
  reading.full_stall = full_stall;
  reading.quota_is_ours = holds(slot, Knob::cpu_max);
  slot.files.read(reading, holds(slot, Knob::memory_high));
  if (slot.rule.needs_detail(reading)) slot.files.read_detail(reading);
  return reading;
}

void FastPath::watch(Slot& slot, Signals signals) {
  if (signals & kSignalLost) slot.told = false;
  slot.due = woken_ + kFastPathQuietInterval;
  if (!holds_any(slot)) return slot.rule.pause();
  const FastPathReading reading = read(slot, signals & kSignalFullStall);
  const FastPathVerdict verdict = slot.rule.step(reading);
  act(slot, reading, verdict);
  if (signals & kSignalKnob) note_outside_writes(slot);
  note_memory_max(slot, reading);
  const bool cpu = (signals & kSignalCpuPressure) && reading.quota_is_ours;
  slot.pressure.step(woken_, signals & kSignalMemoryPressure, cpu, verdict.throttled);
  if (verdict.at_risk || !slot.told || slot.pressure.alert(woken_))
    slot.due = woken_ + kFastPathRiskInterval;
  if (slot.pressure.in_period(woken_) && slot.budget.take(woken_))
    slot.due = woken_ + kPeriodLook;
  thaw_in_time(slot);
}

void FastPath::act(Slot& slot, const FastPathReading& reading, const FastPathVerdict& verdict) {
  acting_.store(true);
  // An OOM that ends the last process is reported as an event first.
  if (verdict.memory != MemoryRisk::none) restore(slot, kMemoryKnobs, reason_of(verdict.memory));
  if (verdict.restarted) restore(slot, kSizeKnobs, Reason::restored);
  if (verdict.cpu != CpuRaise::none) raise_cpu(slot, reading, verdict.cpu);
  acting_.store(false);
}

// Ends a freeze at its deadline, and looks again then.
void FastPath::thaw_in_time(Slot& slot) {
  const int record = slot.record(Knob::cgroup_freeze);
  if (record == kNoRecord) return;
  const auto values = leases_.read_values(record, slot.id, Knob::cgroup_freeze);
  if (!values || values->deadline == MonotonicTime{}) return;
  if (!values->overdue(woken_)) {
    slot.due = std::min(slot.due, values->deadline);
    return;
  }
  acting_.store(true);
  constexpr std::array<Knob, 1> kFreeze = {Knob::cgroup_freeze};
  restore(slot, kFreeze, Reason::freeze_over);
  acting_.store(false);
}

bool FastPath::settle(std::chrono::milliseconds most) const {
  constexpr std::chrono::milliseconds kStep{1};
  for (auto waited = kStep.zero(); acting_.load(); waited += kStep) {
    if (waited >= most) return false;
    std::this_thread::sleep_for(kStep);
  }
  return true;
}

// The safety rules judge what the write means. The fast path only wakes the agent.
void FastPath::note_outside_writes(Slot& slot) {
  for (const Knob knob : kKnobs) {
    const int record = slot.record(knob);
    if (record == kNoRecord) continue;
    const auto values = leases_.read_values(record, slot.id, knob);
    const auto found = slot.files.read(knob);
    KnobText& seen = slot.outside[static_cast<std::size_t>(knob)];
    if (!values || !found || values->is_ours(knob, *found)) {
      seen = KnobText();
      continue;
    }
    if (seen == *found) continue;
    seen = *found;
    tell_outside_write();
  }
}

void FastPath::note_memory_max(Slot& slot, const FastPathReading& reading) {
  if (holds(slot, Knob::memory_max)) return slot.memory_max.reset();
  if (slot.memory_max && reading.memory_max && reading.memory_max != slot.memory_max)
    tell_outside_write();
  slot.memory_max = reading.memory_max;
}

void FastPath::tell_outside_write() {
  outside_writes_.fetch_add(1);
  ::eventfd_write(action_event_.get(), 1);
}

void FastPath::restore(Slot& slot, std::span<const Knob> knobs, Reason reason) {
  for (const Knob knob : knobs) {
    const int record = slot.record(knob);
    if (record == kNoRecord) continue;
    const auto values = leases_.read_values(record, slot.id, knob);
    const auto found = slot.files.read(knob);
    if (!values || !found || same_value(knob, *found, values->original)) continue;
    const bool memory = knob == Knob::memory_max || knob == Knob::memory_high;
    if (memory && memory_raise_) memory_raise_(slot.id);
    raise_to(slot, knob, *found, values->original, *values, reason);
  }
}

// `factor` times the quota in the file, but at most the original; the original if `raise` asks for
// it.
static KnobText raised_quota(const KnobText& found, const KnobText& original, CpuRaise raise,
                             double factor) {
  Limits now, most;
  if (raise == CpuRaise::to_original || !parse_knob(Knob::cpu_max, found.view(), now) ||
      !parse_knob(Knob::cpu_max, original.view(), most) || !now.cpu_max->quota)
    return original;
  const auto quota = static_cast<double>(now.cpu_max->quota->value) * factor;
  now.cpu_max->quota = Microseconds{static_cast<std::uint64_t>(quota)};
  if (compare_knob(Knob::cpu_max, now, most) >= 0) return original;
  return format_knob(Knob::cpu_max, now).value_or(original);
}

void FastPath::raise_cpu(Slot& slot, const FastPathReading& reading, CpuRaise raise) {
  const int record = slot.record(Knob::cpu_max);
  if (record == kNoRecord) return;
  const auto values = leases_.read_values(record, slot.id, Knob::cpu_max);
  const auto found = slot.files.read(Knob::cpu_max);
  if (!values || !found || same_value(Knob::cpu_max, *found, values->original)) return;
  const KnobText target =
      raised_quota(*found, values->original, raise, slot.rule.numbers().cpu_raise_factor);
  if (!raise_to(slot, Knob::cpu_max, *found, target, *values, Reason::throttled)) return;
  slot.rule.cpu_raised(reading.time);
  slot.cpu_raised.store(reading.time);
  constexpr std::array<Knob, 1> kBurst = {Knob::cpu_max_burst};
  if (target == values->original) restore(slot, kBurst, Reason::throttled);
}

// Writes `to` if the file contains a lower value that is ours. True if it was written.
bool FastPath::raise_to(Slot& slot, Knob knob, const KnobText& from, const KnobText& to,
                     const LeaseValues& values, Reason reason) {
  Limits before, after;
  if (!values.is_ours(knob, from) || !parse_knob(knob, from.view(), before) ||
      !parse_knob(knob, to.view(), after) || compare_knob(knob, after, before) <= 0)
    return false;
  const int record = slot.record(knob);
  if (!leases_.lease_for_fast_path(record, slot.id, knob, from, to)) return false;
  const bool written = write(slot, knob, to);
  // Between our read and our write, the model plane may have restored the original and released the
  // lease (see release_restored in control/lease/restore.h).
  if (!leases_.read_values(record, slot.id, knob)) write(slot, knob, values.original);
  report({woken_, clock_.monotonic_now(), slot.id, knob, from, to, reason, written});
  return written;
}

// A memory.high below the usage takes effect at once, but then the kernel reclaims in the writing
// thread. Without a deadline, no other container would be watched meanwhile (memory_high_write in
// mm/memcontrol.c).
bool FastPath::write(Slot& slot, Knob knob, const KnobText& value) {
  const bool may_reclaim = knob == Knob::memory_high || knob == Knob::memory_max;
  if (deadline_ == nullptr || !may_reclaim) return slot.files.write(knob, value);
  deadline_->arm(kLongestWrite);
  const bool written = slot.files.write(knob, value);
  deadline_->disarm();
  return written;
}

void FastPath::report(const FastPathAction& action) {
  const std::size_t written = actions_written_.load(std::memory_order_relaxed);
  if (written - actions_taken_.load(std::memory_order_acquire) >= actions_.size()) {
    lost_.fetch_add(1);
    return;
  }
  actions_[written % actions_.size()] = action;
  actions_written_.store(written + 1, std::memory_order_release);
  ::eventfd_write(action_event_.get(), 1);
}

void FastPath::close_dropped() {
  for (int i = 0; i < kFastPathReaped; ++i) {
    // The lock is released in between, because a raise may be waiting for it.
    const std::lock_guard lock(model_plane_);
    if (!reap()) break;
  }
}

std::vector<FastPathAction> FastPath::take_actions() {
  eventfd_t count = 0;
  ::eventfd_read(action_event_.get(), &count);
  std::vector<FastPathAction> taken;
  std::size_t next = actions_taken_.load(std::memory_order_relaxed);
  const std::size_t end = actions_written_.load(std::memory_order_acquire);
  for (; next != end; ++next) taken.push_back(actions_[next % actions_.size()]);
  actions_taken_.store(next, std::memory_order_release);
  return taken;
}

}  // namespace cgphase
