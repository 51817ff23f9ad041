#include "control/fast_path/signals.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "cgroupfs/cgroup_directory.h"
#include "cgroupfs/knob_file.h"
#include "cgroupfs/limits.h"
#include "control/fast_path/slot.h"

namespace cgphase {
namespace {

struct Trigger {
  const char* file;
  const char* line;
  std::chrono::milliseconds stall;
  Signals signals;
};
constexpr std::array<Trigger, 3> kTriggers = {{
    {"memory.pressure", "some", kSomeStall, kSignalMemoryPressure},
    {"memory.pressure", "full", kFullStall, kSignalMemoryPressure | kSignalFullStall},
    {"cpu.pressure", "some", kSomeStall, kSignalCpuPressure},
}};

// Tags of epoll events. A trigger's tag has its place and number; the other tags are beyond all of
// these.
constexpr std::uint64_t kWakeTag = ~std::uint64_t{0};
constexpr std::uint64_t kInotifyTag = kWakeTag - 1;
constexpr std::uint64_t kProgramTag = kWakeTag - 2;

constexpr std::uint32_t kEraShift = 8;
// A bit beside the signals. It stays set until the place is armed again, so that `status` can
// report it.
constexpr Signals kTriggersLost = 1U << 7;
constexpr std::uint32_t kKept = ~((1U << kEraShift) - 1) | kTriggersLost;  // bits that take() keeps
constexpr std::uint32_t kEras = 1U << (32 - kEraShift);
constexpr std::uint64_t kTagEraShift = 32;

constexpr std::size_t kEventsAtOnce = 64;
constexpr std::size_t kInotifyBytes = 16384;
// Limit for one collect(). The rest is read by the next one, after the checks that these events
// cause.
constexpr int kInotifyReads = 16;

// The signal that a change of this file means; 0 if the file does not matter.
Signals signals_of(std::string_view name) {
  if (name == "memory.events" || name == "memory.events.local" || name == "cgroup.events")
    return kSignalEvents;
  for (const Knob knob : kKnobs)
    if (name == file_name(knob)) return kSignalKnob;
  return 0;
}

std::string trigger_text(const Trigger& trigger) {
  const auto usec = [](std::chrono::milliseconds span) {
    return std::to_string(std::chrono::microseconds(span).count());
  };
  return std::string(trigger.line) + " " + usec(trigger.stall) + " " + usec(kPressureWindow);
}

// Returns an armed trigger. On failure it is invalid and `error` is the errno.
Fd open_trigger(int directory_fd, const Trigger& trigger, int& error) {
  Fd fd(::openat(directory_fd, trigger.file, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (is_spare(fd)) {
    error = EMFILE;
    return Fd();
  }
  const std::string text = trigger_text(trigger);
  // The kernel's documentation writes the terminating NUL too.
  if (fd.valid() && ::write(fd.get(), text.c_str(), text.size() + 1) >= 0) return fd;
  error = errno;
  return Fd();
}

const char* why_no_triggers(int error) {
  switch (error) {
    case ENOENT:
    case EOPNOTSUPP: return "this kernel has no PSI (CONFIG_PSI, psi=1)";
    case EPERM:
    case EACCES:
    case EINVAL: return "windows of 500 ms need CAP_SYS_RESOURCE";
    case EMFILE:
    case ENFILE: return "descriptors ran out: raise LimitNOFILE=";
    case ENOMEM: return "the kernel has no memory for them";
    default: return "the kernel refuses them";
  }
}

const char* why_no_watches(int error) {
  switch (error) {
    case ENOSPC: return "raise fs.inotify.max_user_watches";
    case EMFILE: return "raise fs.inotify.max_user_instances and LimitNOFILE=";
    default: return "inotify refuses them";
  }
}

std::string share_polled(int without, int armed, const char* why, int error) {
  return std::to_string(without) + " of " + std::to_string(armed) + " containers are polled: " +
         why + " (" + errno_word(error) + ")";
}

}  // namespace

struct FastPathSignals::Place {
  std::array<Fd, kTriggers.size()> triggers;
  bool armed = false, all_triggers = false, watched = false;
};

FastPathSignals::FastPathSignals(const Options& options)
    : options_(options),
      places_(std::make_unique<Place[]>(static_cast<std::size_t>(options.places))),
      watches_(std::make_unique<std::atomic<int>[]>(static_cast<std::size_t>(options.places))),
      told_(std::make_unique<std::atomic<std::uint32_t>[]>(
          static_cast<std::size_t>(options.places))),
      cgroups_(std::make_unique<std::atomic<std::uint64_t>[]>(
          static_cast<std::size_t>(options.places))) {
  for (int i = 0; i < options.places; ++i) watches_[static_cast<std::size_t>(i)].store(-1);
}

FastPathSignals::~FastPathSignals() = default;

Result<std::unique_ptr<FastPathSignals>> FastPathSignals::create(const Options& options) {
  std::unique_ptr<FastPathSignals> signals(new FastPathSignals(options));
  signals->epoll_ = Fd(::epoll_create1(EPOLL_CLOEXEC));
  if (!signals->epoll_.valid()) return errno_failure("fast path: epoll", errno);
  signals->wake_event_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (Status added = signals->add(signals->wake_event_.get(), EPOLLIN, kWakeTag); !added)
    return std::unexpected(added.error());
  if (options.inotify) {
    signals->inotify_ = Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (!signals->inotify_.valid()) signals->inotify_error_ = errno;
    else if (Status added = signals->add(signals->inotify_.get(), EPOLLIN, kInotifyTag); !added)
      return std::unexpected(added.error());
  }
  if (options.pressure && !options.cgroup_root.empty()) signals->try_pressure(options.cgroup_root);
  return signals;
}

Status FastPathSignals::add(int fd, std::uint32_t events, std::uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return errno_failure("fast path: epoll", errno);
  return {};
}

// Tries a trigger so that `status` can report before the first container is covered. If the root
// has no such file, as before Linux 5.13, that says nothing about its children.
void FastPathSignals::try_pressure(const std::string& cgroup_root) {
  const Fd root(::open(cgroup_root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int error = 0;
  if (!root.valid() || open_trigger(root.get(), kTriggers[2], error).valid()) return;
  if (error != ENOENT || ::access("/proc/pressure/cpu", F_OK) != 0) trigger_error_ = error;
}

bool FastPathSignals::arm(int place, int directory_fd) {
  Place& one = places_[static_cast<std::size_t>(place)];
  one.armed = true;
  const auto id = identify(directory_fd);
  cgroups_[static_cast<std::size_t>(place)].store(id ? id->inode : 0);
  told_[static_cast<std::size_t>(place)].store(((era_of(place) + 1) % kEras) << kEraShift);
  one.all_triggers = options_.pressure && arm_triggers(place, directory_fd);
  one.watched = options_.inotify && arm_watch(place, directory_fd);
  ++armed_;
  without_triggers_ += one.all_triggers ? 0 : 1;
  without_watch_ += one.watched ? 0 : 1;
  return one.all_triggers && one.watched;
}

bool FastPathSignals::arm_triggers(int place, int directory_fd) {
  Place& one = places_[static_cast<std::size_t>(place)];
  for (std::size_t i = 0; i < kTriggers.size(); ++i) {
    one.triggers[i] = open_trigger(directory_fd, kTriggers[i], trigger_error_);
    if (!one.triggers[i].valid()) {
      // A part of the triggers saves no check, so their descriptors are released.
      if (trigger_error_ == EMFILE || trigger_error_ == ENFILE) one.triggers = {};
      return false;
    }
    // Edge-triggered, because the file of a removed cgroup is always ready.
    const std::uint64_t tag = std::uint64_t{era_of(place)} << kTagEraShift |
                              (static_cast<std::uint64_t>(place) * kTriggers.size() + i);
    if (!add(one.triggers[i].get(), EPOLLPRI | EPOLLET, tag)) {
      trigger_error_ = errno;
      one.triggers[i].reset();
      return false;
    }
  }
  if (without_triggers_ == 0) trigger_error_ = 0;
  return true;
}

// One watch on the directory reports changes of all its files by name. It is opened through the
// descriptor, because the path may now name another directory.
bool FastPathSignals::arm_watch(int place, int directory_fd) {
  if (!inotify_.valid()) return false;
  const std::string name = "/proc/self/fd/" + std::to_string(directory_fd);
  const int watch = ::inotify_add_watch(inotify_.get(), name.c_str(), IN_MODIFY);
  // If the cgroup is covered again before its former place is released, both have the same watch.
  // The watch then moves to the new place.
  for (int i = 0; i < options_.places; ++i)
    if (watches_[static_cast<std::size_t>(i)].load() == watch)
      watches_[static_cast<std::size_t>(i)].store(-1);
  watches_[static_cast<std::size_t>(place)].store(watch);
  if (watch < 0) watch_error_ = errno;
  return watch >= 0;
}

void FastPathSignals::disarm(int place) {
  Place& one = places_[static_cast<std::size_t>(place)];
  if (!one.armed) return;
  const int watch = watches_[static_cast<std::size_t>(place)].exchange(-1);
  if (watch >= 0) ::inotify_rm_watch(inotify_.get(), watch);
  cgroups_[static_cast<std::size_t>(place)].store(0);
  --armed_;
  without_triggers_ -= one.all_triggers ? 0 : 1;
  without_watch_ -= one.watched ? 0 : 1;
  one = Place();
}

FastPathSource FastPathSignals::pressure() const {
  if (!options_.pressure) return {false, "switched off"};
  const int lost = lost_triggers();
  if (without_triggers_ > 0)
    return {false, share_polled(without_triggers_ + lost, armed_, why_no_triggers(trigger_error_),
                                trigger_error_)};
  if (lost > 0)
    return {false, std::to_string(lost) + " of " + std::to_string(armed_) +
                       " containers are polled: their PSI was switched off (cgroup.pressure), or "
                       "they are gone"};
  if (trigger_error_ != 0)
    return {false, std::string("lowered containers are polled: ") +
                       why_no_triggers(trigger_error_) + " (" + errno_word(trigger_error_) + ")"};
  return {};
}

FastPathSource FastPathSignals::inotify() const {
  if (!options_.inotify) return {false, "switched off"};
  if (inotify_error_ != 0)
    return {false, std::string("lowered containers are polled: ") +
                       why_no_watches(inotify_error_) + " (" + errno_word(inotify_error_) + ")"};
  if (without_watch_ > 0)
    return {false, share_polled(without_watch_, armed_, why_no_watches(watch_error_),
                                watch_error_)};
  return {};
}

Status FastPathSignals::listen(std::shared_ptr<ProgramStarts> starts) {
  CHECK_INVARIANT(!starts_);
  starts_ = std::move(starts);
  Status added = add(starts_->fd(), EPOLLIN, kProgramTag);
  if (!added) starts_.reset();  // epoll does not have it, so the fast path's thread never sees it
  return added;
}

bool FastPathSignals::collect(std::chrono::milliseconds longest) {
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                 static_cast<int>(longest.count()));
  bool woken = false;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 == kWakeTag) woken = true;
    else if (event.data.u64 == kInotifyTag) take_watches();
    else if (event.data.u64 == kProgramTag)
      starts_->take([](void* self, std::uint64_t container) {
        static_cast<FastPathSignals*>(self)->take_program_start(container);
      }, this);
    else take_trigger(event.data.u64, event.events);
  }
  eventfd_t told = 0;
  if (woken) ::eventfd_read(wake_event_.get(), &told);
  return !stopping_.exchange(false);
}

void FastPathSignals::take_trigger(std::uint64_t tag, std::uint32_t events) {
  const auto era = static_cast<std::uint32_t>(tag >> kTagEraShift);
  const std::uint64_t number = tag & ((std::uint64_t{1} << kTagEraShift) - 1);
  const auto place = static_cast<int>(number / kTriggers.size());
  // The cgroup is gone, or its PSI was switched off (cgroup.pressure).
  const bool lost = (events & EPOLLERR) != 0;
  constexpr Signals kLost = kSignalLost | kTriggersLost;
  tell(place, era, lost ? kLost : kTriggers[number % kTriggers.size()].signals);
}

std::uint32_t FastPathSignals::era_of(int place) const {
  return told_[static_cast<std::size_t>(place)].load() >> kEraShift;
}

void FastPathSignals::tell(int place, std::uint32_t era, Signals signals) {
  auto& told = told_[static_cast<std::size_t>(place)];
  std::uint32_t before = told.load();
  while (before >> kEraShift == era && !told.compare_exchange_weak(before, before | signals)) {
  }
}

int FastPathSignals::lost_triggers() const {
  int count = 0;
  for (int i = 0; i < options_.places; ++i) {
    const Place& one = places_[static_cast<std::size_t>(i)];
    const bool lost = (told_[static_cast<std::size_t>(i)].load() & kTriggersLost) != 0;
    count += one.armed && one.all_triggers && lost ? 1 : 0;
  }
  return count;
}

void FastPathSignals::take_watches() {
  alignas(inotify_event) std::array<char, kInotifyBytes> buffer;
  for (int i = 0; i < kInotifyReads; ++i) {
    const ssize_t count = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (count <= 0) return;
    for (const char* at = buffer.data(); at < buffer.data() + count;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      take_watch_event(event->wd, event->mask, event->len > 0 ? event->name : "");
      at += sizeof *event + event->len;
    }
  }
}

void FastPathSignals::take_watch_event(int watch, std::uint32_t mask, const char* name) {
  if (mask & IN_Q_OVERFLOW) return everything_changed();
  const Signals signals = mask & IN_IGNORED ? kSignalLost : signals_of(name);
  if (signals == 0) return;
  // Events of one container come in runs, so the search begins at the last place. The era is read
  // first: the place may be reassigned as soon as its watch is found.
  for (int i = 0; i < options_.places; ++i) {
    const int place = (last_found_ + i) % options_.places;
    const std::uint32_t era = era_of(place);
    if (watches_[static_cast<std::size_t>(place)].load() != watch) continue;
    last_found_ = place;
    return tell(place, era, signals);
  }
}

// The kernel's queue overflowed. Events of any container may be missing.
void FastPathSignals::everything_changed() {
  for (int i = 0; i < options_.places; ++i)
    told_[static_cast<std::size_t>(i)].fetch_or(kSignalEvents | kSignalKnob);
}

// As in take_watch_event(), the era is read first.
void FastPathSignals::take_program_start(std::uint64_t container) {
  // Stored before the signal is sent, so that its receiver finds it.
  if (options_.clock != nullptr) {
    Start& start = recent_[next_start_++ % kStarts];
    start.cgroup.store(0);
    start.time.store(options_.clock->monotonic_now());
    start.cgroup.store(container);
  }
  for (int place = 0; place < options_.places; ++place) {
    const std::uint32_t era = era_of(place);
    if (cgroups_[static_cast<std::size_t>(place)].load() == container)
      tell(place, era, kSignalProgram);
  }
}

bool FastPathSignals::program_started(std::uint64_t cgroup, MonotonicTime since) const {
  return std::ranges::any_of(recent_, [&](const Start& start) {
    return start.cgroup.load() == cgroup && start.time.load() >= since;
  });
}

bool FastPathSignals::take_program(int place) {
  auto& told = told_[static_cast<std::size_t>(place)];
  return (told.fetch_and(~std::uint32_t{kSignalProgram}) & kSignalProgram) != 0;
}

Signals FastPathSignals::take(int place) {
  return static_cast<Signals>(told_[static_cast<std::size_t>(place)].fetch_and(kKept) & ~kKept);
}

Signals FastPathSignals::waiting(int place) const {
  return static_cast<Signals>(told_[static_cast<std::size_t>(place)].load() & ~kKept);
}

void FastPathSignals::call(int place) {
  tell(place, era_of(place), kSignalEvents);
  wake();
}

void FastPathSignals::wake() { ::eventfd_write(wake_event_.get(), 1); }

void FastPathSignals::stop() {
  stopping_.store(true);
  wake();
}

}  // namespace cgphase
