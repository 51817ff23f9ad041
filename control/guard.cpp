#include "control/guard.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/parse.h"
#include "control/memory_reading.h"

namespace cgphase {
namespace {

enum class SlotState : std::uint32_t { empty, filling, active, leaving };

constexpr int kNoRecord = -1;

// The guard's own reading: empty on any failure, which switches the rule off.
template <std::size_t N>
std::string_view read_held(const Fd& fd, std::array<char, N>& buffer) {
  if (!fd.valid()) return {};
  const ssize_t count = ::pread(fd.get(), buffer.data(), buffer.size(), 0);
  return count <= 0 ? std::string_view()
                    : std::string_view(buffer.data(), static_cast<std::size_t>(count));
}

Counter field_of(std::string_view text, std::string_view wanted) {
  std::string_view line, name, number;
  while (next_line(text, line))
    if (next_word(line, name) && name == wanted && next_word(line, number))
      return parse_u64(number);
  return std::nullopt;
}

std::optional<Bytes> bytes_of(std::string_view text) {
  const auto value = parse_u64(trim(text));
  if (!value) return std::nullopt;
  return Bytes{*value};
}

Fd open_reading(int directory_fd, const char* name) {
  return Fd(::openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

bool is_plain(int directory_fd) {
  struct statfs filesystem;
  return ::fstatfs(directory_fd, &filesystem) == 0 && filesystem.f_type != CGROUP2_SUPER_MAGIC;
}

}  // namespace

struct Guard::Slot {
  std::atomic<SlotState> state{SlotState::empty};
  std::array<std::atomic<int>, kKnobCount> records;
  CgroupId id;
  bool plain = false;  // a plain directory in tests: a shorter text must cut the file
  std::array<Fd, kKnobCount> knobs;
  Fd memory_current, memory_stat, memory_swap, memory_events, cpu_stat;
  GuardRule rule;

  int record(Knob knob) const { return records[static_cast<std::size_t>(knob)].load(); }
  const Fd& file(Knob knob) const { return knobs[static_cast<std::size_t>(knob)]; }

  void open(int directory_fd) {
    plain = is_plain(directory_fd);
    for (const Knob knob : kKnobs)
      knobs[static_cast<std::size_t>(knob)] =
          Fd(::openat(directory_fd, file_name(knob), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    memory_current = open_reading(directory_fd, "memory.current");
    memory_stat = open_reading(directory_fd, "memory.stat");
    memory_swap = open_reading(directory_fd, "memory.swap.current");
    // The limit of a cgroup below this one is no business of ours.
    memory_events = open_reading(directory_fd, "memory.events.local");
    if (!memory_events.valid()) memory_events = open_reading(directory_fd, "memory.events");
    cpu_stat = open_reading(directory_fd, "cpu.stat");
    rule = GuardRule();
  }

  void close() {
    for (Fd& fd : knobs) fd.reset();
    for (Fd* fd : {&memory_current, &memory_stat, &memory_swap, &memory_events, &cpu_stat})
      fd->reset();
    for (auto& record : records) record.store(kNoRecord);
  }

  std::optional<KnobText> read(Knob knob) const {
    std::array<char, kKnobTextBytes * 2> buffer;
    const std::string_view text = read_held(file(knob), buffer);
    if (text.empty()) return std::nullopt;
    return KnobText::from(trim(text.substr(0, text.find('\n'))));
  }

  bool write(Knob knob, const KnobText& value) const {
    std::array<char, kKnobTextBytes + 1> line;
    const std::string_view text = value.view();
    std::memcpy(line.data(), text.data(), text.size());
    line[text.size()] = '\n';
    const ssize_t count = ::pwrite(file(knob).get(), line.data(), text.size() + 1, 0);
    if (count <= 0) return false;
    return !plain || ::ftruncate(file(knob).get(), count) == 0;
  }
};

Guard::Guard(const Options& options)
    : leases_(*options.leases),
      clock_(*options.clock),
      slots_(static_cast<std::size_t>(options.containers)) {
  for (Slot& slot : slots_) slot.close();
}

Guard::~Guard() { stop(); }

Result<std::unique_ptr<Guard>> Guard::create(const Options& options) {
  CHECK_INVARIANT(options.leases != nullptr && options.clock != nullptr && options.containers > 0);
  std::unique_ptr<Guard> guard(new Guard(options));
  guard->action_event_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  guard->stop_event_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  guard->timer_ = Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  guard->epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  for (const Fd* fd : {&guard->stop_event_, &guard->timer_}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd->get();
    if (::epoll_ctl(guard->epoll_.get(), EPOLL_CTL_ADD, fd->get(), &event) != 0)
      return errno_failure("guard", errno);
  }
  if (!guard->action_event_.valid()) return errno_failure("guard: eventfd", errno);
  return guard;
}

Status Guard::start() {
  CHECK_INVARIANT(!thread_.joinable());
  sigset_t all, before;
  ::sigfillset(&all);
  // Signals to the process are for the agent's thread.
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::pthread_setname_np(thread_.native_handle(), "cgphase-guard");
  return {};
}

void Guard::stop() {
  if (!thread_.joinable()) return;
  ::eventfd_write(stop_event_.get(), 1);
  thread_.join();
  eventfd_t count = 0;
  ::eventfd_read(stop_event_.get(), &count);
}

void Guard::run() {
  std::chrono::milliseconds next{1};
  for (;;) {
    const auto ns = std::chrono::nanoseconds(next).count();
    const itimerspec spec{{0, 0}, {ns / 1'000'000'000, ns % 1'000'000'000}};
    ::timerfd_settime(timer_.get(), 0, &spec, nullptr);
    epoll_event event{};
    const int count = ::epoll_wait(epoll_.get(), &event, 1, -1);
    if (count > 0 && event.data.fd == stop_event_.get()) return;
    std::uint64_t expirations = 0;
    if (::read(timer_.get(), &expirations, sizeof expirations) > 0) next = poll_once();
  }
}

Guard::Slot* Guard::find(CgroupId id) {
  for (Slot& slot : slots_)
    if (slot.state.load() == SlotState::active && slot.id == id) return &slot;
  return nullptr;
}

Guard::Slot* Guard::find_empty() {
  for (Slot& slot : slots_)
    if (slot.state.load() == SlotState::empty) return &slot;
  return nullptr;
}

Status Guard::cover(CgroupId id, int directory_fd, Knob knob, int record) {
  const std::lock_guard lock(model_plane_);
  if (Slot* slot = find(id)) {
    slot->records[static_cast<std::size_t>(knob)].store(record);
    return {};
  }
  Slot* slot = find_empty();
  if (slot == nullptr)
    return failure(ErrorKind::invalid, "the guard watches its " + std::to_string(slots_.size()) +
                                           " containers already: nothing more is lowered");
  slot->state.store(SlotState::filling);
  slot->id = id;
  slot->open(directory_fd);
  if (!slot->file(knob).valid()) {
    slot->close();
    slot->state.store(SlotState::empty);
    return failure(ErrorKind::gone, std::string(file_name(knob)) + ": cannot be held open");
  }
  slot->records[static_cast<std::size_t>(knob)].store(record);
  slot->rule.step(read(*slot));  // events count from now, not from the guard's next look
  slot->state.store(SlotState::active);
  return {};
}

void Guard::drop(CgroupId id) {
  const std::lock_guard lock(model_plane_);
  if (Slot* slot = find(id)) slot->state.store(SlotState::leaving);
}

std::chrono::milliseconds Guard::poll_once() {
  bool at_risk = false;
  for (Slot& slot : slots_) {
    SlotState state = slot.state.load();
    if (state == SlotState::active) watch(slot, at_risk);
    if (state == SlotState::leaving) {
      slot.close();
      slot.state.store(SlotState::empty);
    }
  }
  return at_risk ? kGuardRiskInterval : kGuardQuietInterval;
}

GuardReading Guard::read(Slot& slot) const {
  GuardReading reading;
  reading.time = clock_.monotonic_now();
  std::array<char, kKnobFileBytes> buffer;
  reading.memory_current = bytes_of(read_held(slot.memory_current, buffer));
  Limits limits;
  if (const auto text = slot.read(Knob::memory_max))
    if (parse_knob(Knob::memory_max, text->view(), limits)) reading.memory_max = limits.memory_max;
  const std::string_view events = read_held(slot.memory_events, buffer);
  reading.max_events = field_of(events, "max");
  reading.oom_events = field_of(events, "oom");
  reading.throttled_usec = field_of(read_held(slot.cpu_stat, buffer), "throttled_usec");
  if (!slot.rule.needs_need(reading)) return reading;
  const Bytes swap = bytes_of(read_held(slot.memory_swap, buffer)).value_or(Bytes{});
  std::array<char, kMemoryStatBytes> stat;
  reading.memory_need = need_of(read_held(slot.memory_stat, stat), swap);
  return reading;
}

void Guard::watch(Slot& slot, bool& at_risk) {
  const bool held = std::any_of(kKnobs.begin(), kKnobs.end(), [&](Knob knob) {
    const int record = slot.record(knob);
    return record != kNoRecord && leases_.read_values(record, slot.id, knob).has_value();
  });
  if (!held) return slot.rule.pause();
  const GuardReading reading = read(slot);
  const GuardVerdict verdict = slot.rule.step(reading);
  at_risk = at_risk || verdict.at_risk;
  if (verdict.memory != MemoryRisk::none) restore_memory(slot, verdict.memory);
  if (verdict.cpu != CpuRaise::none) raise_cpu(slot, reading, verdict.cpu);
}

void Guard::restore_memory(Slot& slot, MemoryRisk risk) {
  const Reason reason = risk == MemoryRisk::event ? Reason::memory_event : Reason::headroom;
  for (const Knob knob : {Knob::memory_max, Knob::memory_high}) {
    const int record = slot.record(knob);
    if (record == kNoRecord) continue;
    const auto values = leases_.read_values(record, slot.id, knob);
    const auto found = slot.read(knob);
    if (!values || !found || same_value(knob, *found, values->original)) continue;
    if (memory_raise_) memory_raise_(slot.id);
    raise_to(slot, knob, *found, values->original, *values, reason);
  }
}

// 1.2 times the quota in the file, not above the original; the original where asked for.
static KnobText raised_quota(const KnobText& found, const KnobText& original, CpuRaise raise) {
  Limits now, most;
  if (raise == CpuRaise::to_original || !parse_knob(Knob::cpu_max, found.view(), now) ||
      !parse_knob(Knob::cpu_max, original.view(), most) || !now.cpu_max->quota)
    return original;
  const auto quota = static_cast<double>(now.cpu_max->quota->value) * kGuardRaiseFactor;
  now.cpu_max->quota = Microseconds{static_cast<std::uint64_t>(quota)};
  if (compare_knob(Knob::cpu_max, now, most) >= 0) return original;
  return format_knob(Knob::cpu_max, now).value_or(original);
}

void Guard::raise_cpu(Slot& slot, const GuardReading& reading, CpuRaise raise) {
  const int record = slot.record(Knob::cpu_max);
  if (record == kNoRecord) return;
  const auto values = leases_.read_values(record, slot.id, Knob::cpu_max);
  const auto found = slot.read(Knob::cpu_max);
  if (!values || !found || same_value(Knob::cpu_max, *found, values->original)) return;
  const KnobText target = raised_quota(*found, values->original, raise);
  if (!raise_to(slot, Knob::cpu_max, *found, target, *values, Reason::throttled)) return;
  slot.rule.cpu_raised(reading.time);
  const int burst_record = slot.record(Knob::cpu_max_burst);
  if (target != values->original || burst_record == kNoRecord) return;
  const auto burst = leases_.read_values(burst_record, slot.id, Knob::cpu_max_burst);
  const auto burst_found = slot.read(Knob::cpu_max_burst);
  if (burst && burst_found && !same_value(Knob::cpu_max_burst, *burst_found, burst->original))
    raise_to(slot, Knob::cpu_max_burst, *burst_found, burst->original, *burst, Reason::throttled);
}

// Writes `to` where the file holds one of our values that is lower. True when it was written.
bool Guard::raise_to(Slot& slot, Knob knob, const KnobText& from, const KnobText& to,
                     const LeaseValues& values, Reason reason) {
  Limits before, after;
  if (!values.is_ours(knob, from) || !parse_knob(knob, from.view(), before) ||
      !parse_knob(knob, to.view(), after) || compare_knob(knob, after, before) <= 0)
    return false;
  const int record = slot.record(knob);
  if (!leases_.guard_hold(record, slot.id, knob, from, to)) return false;
  const bool written = slot.write(knob, to);
  // The model plane may have put the original back and released the lease between our look and
  // our write (see release_restored in control/restore.h).
  if (!leases_.read_values(record, slot.id, knob)) slot.write(knob, values.original);
  report({clock_.monotonic_now(), slot.id, knob, from, to, reason, written});
  return written;
}

void Guard::report(const GuardAction& action) {
  const std::size_t written = actions_written_.load(std::memory_order_relaxed);
  if (written - actions_taken_.load(std::memory_order_acquire) >= actions_.size()) {
    lost_.fetch_add(1);
    return;
  }
  actions_[written % actions_.size()] = action;
  actions_written_.store(written + 1, std::memory_order_release);
  ::eventfd_write(action_event_.get(), 1);
}

std::vector<GuardAction> Guard::take_actions() {
  eventfd_t count = 0;
  ::eventfd_read(action_event_.get(), &count);
  std::vector<GuardAction> taken;
  std::size_t next = actions_taken_.load(std::memory_order_relaxed);
  const std::size_t end = actions_written_.load(std::memory_order_acquire);
  for (; next != end; ++next) taken.push_back(actions_[next % actions_.size()]);
  actions_taken_.store(next, std::memory_order_release);
  return taken;
}

}  // namespace cgphase
