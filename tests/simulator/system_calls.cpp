#include "tests/simulator/system_calls.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "tests/simulator/descriptors.h"
#include "tests/simulator/lanes.h"

namespace cgphase::simulator {
namespace {

std::atomic<CgroupKernel*> installed_kernel{nullptr};
std::atomic<CallObserver*> installed_observer{nullptr};
std::atomic<std::int64_t> now_ns{0};
Descriptors descriptors;

// A thread without a name is the writer's raising thread.
thread_local Lane lane = Lane::raising;
thread_local bool simulating = false;

CgroupKernel& kernel() { return *installed_kernel.load(); }
CallObserver& observer() { return *installed_observer.load(); }
bool active() { return installed_observer.load() != nullptr; }

int fail(int error) {
  errno = error;
  return -1;
}

// The path below the root. Null if it is elsewhere.
const char* below_root(const char* path) {
  if (!active() || std::strncmp(path, kSimulatedRoot.data(), kSimulatedRoot.size()) != 0)
    return nullptr;
  return path + kSimulatedRoot.size();
}

// A name resolved relative to a directory.
struct Place {
  std::uint64_t inode = 0;
  std::string_view file;
  int error = 0;
};

Place look_up(std::uint64_t inode, std::string_view path) {
  Place place{inode, {}, 0};
  if (kernel().cgroup(inode) == nullptr) return {inode, {}, ENOENT};
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    path = slash == path.npos ? std::string_view() : path.substr(slash + 1);
    if (name.empty() || name == ".") continue;
    if (!place.file.empty()) return {place.inode, {}, ENOTDIR};
    const Cgroup& here = *kernel().cgroup(place.inode);
    const auto child = here.children.find(std::string(name));
    if (child != here.children.end())
      place.inode = child->second;
    else if (kernel().has_file(place.inode, name))
      place.file = file_named(name);
    else
      return {place.inode, {}, ENOENT};
  }
  return place;
}

// Asks the observer. Returns 0 or the error to inject.
int ask(Call::Kind kind, const Place& place, std::string_view text = {}) {
  return observer().before({kind, place.inode, place.file, text, lane});
}

void tell(Call::Kind kind, const Place& place, int error) {
  observer().after({kind, place.inode, place.file, {}, lane}, error);
}

int open_place(std::uint64_t directory, std::string_view path, int flags) {
  const SimulatorScope in;
  // The name is resolved after the observer's actions.
  const Place before = look_up(directory, path);
  if (const int error = ask(Call::Kind::open, before); error > 0) return fail(error);
  const Place place = look_up(directory, path);
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  int error = place.error;
  if (error == 0 && place.file.empty() && writes) error = EISDIR;
  if (error == 0 && !place.file.empty() && (flags & O_DIRECTORY) != 0) error = ENOTDIR;
  if (error == 0 && !place.file.empty()) {
    if (writes) error = kernel().check_open(place.inode, place.file, true);
    const bool reads = (flags & O_ACCMODE) != O_WRONLY;
    if (error == 0 && reads) error = kernel().check_open(place.inode, place.file, false);
  }
  tell(Call::Kind::open, place, error);
  if (error != 0) return fail(error);
  return descriptors.add({.inode = place.inode, .file = place.file});
}

ssize_t read_place(const OpenFile& open, void* buffer, std::size_t size, std::size_t offset) {
  const SimulatorScope in;
  const Place place{open.inode, open.file, 0};
  const int wrong = ask(Call::Kind::read, place);
  if (wrong > 0) return fail(wrong);
  thread_local std::string text;
  const int error = kernel().read(open.inode, open.file, text);
  tell(Call::Kind::read, place, error);
  if (error != 0) return fail(error == ENOENT ? ENODEV : error);
  std::string_view rest(text);
  rest.remove_prefix(std::min(offset, rest.size()));
  if (wrong == kShortRead) rest = rest.substr(0, rest.size() / 2);
  const std::size_t count = std::min(size, rest.size());
  std::memcpy(buffer, rest.data(), count);
  return static_cast<ssize_t>(count);
}

ssize_t write_place(const OpenFile& open, const void* buffer, std::size_t size) {
  const SimulatorScope in;
  const std::string text(static_cast<const char*>(buffer), size);
  const Place place{open.inode, open.file, 0};
  if (const int error = ask(Call::Kind::write, place, text); error > 0) return fail(error);
  int error = kernel().begin_write(open.inode, open.file, text);
  if (error == 0) {
    const Call call{Call::Kind::write, place.inode, place.file, text, lane};
    const bool waits = kernel().would_reclaim(open.inode, open.file) || observer().slow(call);
    const bool interrupted = waits && observer().blocked(call);
    error = kernel().finish_write(open.inode, open.file, text, interrupted);
  }
  tell(Call::Kind::write, place, error);
  return error != 0 ? fail(error) : static_cast<ssize_t>(size);
}

int fill_status(const Place& place, struct stat* status) {
  *status = {};
  status->st_dev = kSimulatedDevice;
  status->st_ino = place.inode;
  status->st_mode = place.file.empty() ? S_IFDIR | 0755 : S_IFREG | 0644;
  status->st_nlink = 1;
  if (!place.file.empty()) return 0;
  const Cgroup* const one = kernel().cgroup(place.inode);
  // A removed cgroup keeps its link count.
  status->st_nlink = static_cast<nlink_t>(2 + (one == nullptr ? 0 : one->children.size()));
  return 0;
}

int status_of(std::uint64_t directory, std::string_view path, struct stat* status) {
  const SimulatorScope in;
  if (const int error = ask(Call::Kind::look, look_up(directory, path)); error > 0)
    return fail(error);
  const Place place = look_up(directory, path);
  tell(Call::Kind::look, place, place.error);
  return place.error != 0 ? fail(place.error) : fill_status(place, status);
}

int status_of(int fd, struct stat* status) {
  const SimulatorScope in;
  const auto open = descriptors.find(fd);
  if (!open) return fail(EBADF);
  const Place place{open->inode, open->file, 0};
  if (const int error = ask(Call::Kind::look, place); error > 0) return fail(error);
  return fill_status(place, status);
}

// An open directory during a listing.
struct Listing {
  int fd = -1;
  std::vector<std::string> names;
  std::size_t next = 0;
  dirent entry{};
};
std::set<Listing*> listings;  // only of the agent's thread

Listing* listing_of(DIR* directory) {
  auto* const one = reinterpret_cast<Listing*>(directory);
  return listings.contains(one) ? one : nullptr;
}

}  // namespace

void install(CgroupKernel* with, CallObserver* observer) {
  lane = Lane::agent;
  simulating = true;
  installed_kernel.store(with);
  installed_observer.store(observer);
}

void uninstall() {
  installed_observer.store(nullptr);
  installed_kernel.store(nullptr);
}

CgroupKernel* exchange_kernel(CgroupKernel* with) { return installed_kernel.exchange(with); }

void set_time_ns(std::int64_t now) { now_ns.store(now); }
std::int64_t time_ns() { return now_ns.load(); }
std::size_t open_descriptors() { return descriptors.count(); }
Lane current_lane() { return lane; }

namespace {
int host_call_count = 0, failing_host_call = 0, host_call_error = 0;

// Whether this call fails.
bool host_call_fails() {
  if (active() || ++host_call_count != failing_host_call) return false;
  errno = host_call_error;
  return true;
}

std::function<void()> allocation_call;  // set while nothing else runs
std::atomic<bool> allocations_told{false};
}  // namespace

void fail_host_call(int n, int error) {
  host_call_count = 0;
  failing_host_call = n;
  host_call_error = error;
}
int host_calls() { return host_call_count; }

void on_allocation(std::function<void()> call) {
  allocations_told.store(false);
  allocation_call = std::move(call);
  allocations_told.store(allocation_call != nullptr);
}

void tell_allocation() noexcept {
  if (allocations_told.load() && !simulating) allocation_call();
}

TestedScope::TestedScope(bool tested) : before_(std::exchange(simulating, !tested)) {}
TestedScope::~TestedScope() { simulating = before_; }

LaneScope::LaneScope(Lane as) : before_(std::exchange(lane, as)) {}
LaneScope::~LaneScope() { lane = before_; }

}  // namespace cgphase::simulator

// The calls themselves. The linker redirects each call of NAME here; the real one is __real_NAME.
using namespace cgphase::simulator;
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

int __real_open(const char*, int, ...);
int __wrap_open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = va_arg(arguments, unsigned);
  va_end(arguments);
  const char* const rest = below_root(path);
  if (rest == nullptr) return host_call_fails() ? -1 : __real_open(path, flags, mode);
  return open_place(CgroupKernel::kRoot, rest, flags);
}

int __real_openat(int, const char*, int, ...);
int __wrap_openat(int directory, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = va_arg(arguments, unsigned);
  va_end(arguments);
  if (const char* const rest = below_root(path))
    return open_place(CgroupKernel::kRoot, rest, flags);
  if (!Descriptors::simulated(directory)) return __real_openat(directory, path, flags, mode);
  const auto open = descriptors.find(directory);
  return open ? open_place(open->inode, path, flags) : fail(EBADF);
}

int __real_close(int);
int __wrap_close(int fd) {
  if (!Descriptors::simulated(fd)) return __real_close(fd);
  return descriptors.close(fd) ? 0 : fail(EBADF);
}

ssize_t __real_read(int, void*, std::size_t);
ssize_t __wrap_read(int fd, void* buffer, std::size_t size) {
  if (!Descriptors::simulated(fd)) return __real_read(fd, buffer, size);
  const auto open = descriptors.find(fd);
  if (!open) return fail(EBADF);
  const ssize_t count = read_place(*open, buffer, size, open->offset);
  if (count > 0) descriptors.advance(fd, static_cast<std::size_t>(count));
  return count;
}

ssize_t __real_pread(int, void*, std::size_t, off_t);
ssize_t __wrap_pread(int fd, void* buffer, std::size_t size, off_t offset) {
  if (!Descriptors::simulated(fd)) return __real_pread(fd, buffer, size, offset);
  const auto open = descriptors.find(fd);
  return open ? read_place(*open, buffer, size, static_cast<std::size_t>(offset)) : fail(EBADF);
}

ssize_t __real_pwrite(int, const void*, std::size_t, off_t);
ssize_t __wrap_pwrite(int fd, const void* buffer, std::size_t size, off_t offset) {
  if (!Descriptors::simulated(fd))
    return host_call_fails() ? -1 : __real_pwrite(fd, buffer, size, offset);
  const auto open = descriptors.find(fd);
  return open ? write_place(*open, buffer, size) : fail(EBADF);
}

ssize_t __real_write(int, const void*, std::size_t);
ssize_t __wrap_write(int fd, const void* buffer, std::size_t size) {
  if (!Descriptors::simulated(fd)) return __real_write(fd, buffer, size);
  const auto open = descriptors.find(fd);
  return open ? write_place(*open, buffer, size) : fail(EBADF);
}

int __real_fstat(int, struct stat*);
int __wrap_fstat(int fd, struct stat* status) {
  if (Descriptors::simulated(fd)) return status_of(fd, status);
  return host_call_fails() ? -1 : __real_fstat(fd, status);
}

int __real_stat(const char*, struct stat*);
int __wrap_stat(const char* path, struct stat* status) {
  const char* const rest = below_root(path);
  return rest == nullptr ? __real_stat(path, status)
                         : status_of(CgroupKernel::kRoot, rest, status);
}

int __real_fstatat(int, const char*, struct stat*, int);
int __wrap_fstatat(int directory, const char* path, struct stat* status, int flags) {
  if (!Descriptors::simulated(directory)) return __real_fstatat(directory, path, status, flags);
  const auto open = descriptors.find(directory);
  return open ? status_of(open->inode, path, status) : fail(EBADF);
}

int __real_fstatfs(int, struct statfs*);
int __wrap_fstatfs(int fd, struct statfs* status) {
  if (!Descriptors::simulated(fd)) return __real_fstatfs(fd, status);
  *status = {};
  status->f_type = CGROUP2_SUPER_MAGIC;
  return 0;
}

int __real_faccessat(int, const char*, int, int);
int __wrap_faccessat(int directory, const char* path, int mode, int flags) {
  if (!Descriptors::simulated(directory)) return __real_faccessat(directory, path, mode, flags);
  const auto open = descriptors.find(directory);
  struct stat status;
  return open ? status_of(open->inode, path, &status) : fail(EBADF);
}

int __real_fcntl(int, int, ...);
int __wrap_fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  const auto argument = va_arg(arguments, long);
  va_end(arguments);
  if (!Descriptors::simulated(fd)) return __real_fcntl(fd, command, argument);
  const auto open = descriptors.find(fd);
  if (!open) return fail(EBADF);
  return command == F_DUPFD_CLOEXEC ? descriptors.add(*open) : 0;
}

int __real_dup(int);
int __wrap_dup(int fd) {
  if (!Descriptors::simulated(fd)) return __real_dup(fd);
  const auto open = descriptors.find(fd);
  return open ? descriptors.add(*open) : fail(EBADF);
}

DIR* __real_fdopendir(int);
DIR* __wrap_fdopendir(int fd) {
  if (!Descriptors::simulated(fd)) return __real_fdopendir(fd);
  const auto open = descriptors.find(fd);
  auto made = std::make_unique<Listing>();
  made->fd = fd;
  if (const Cgroup* const one = open ? kernel().cgroup(open->inode) : nullptr)
    for (const auto& [name, inode] : one->children) made->names.push_back(name);
  listings.insert(made.get());
  return reinterpret_cast<DIR*>(made.release());
}

dirent* __real_readdir(DIR*);
dirent* __wrap_readdir(DIR* directory) {
  Listing* const listing = listing_of(directory);
  if (listing == nullptr) return __real_readdir(directory);
  if (listing->next == listing->names.size()) return nullptr;
  const std::string& name = listing->names[listing->next++];
  std::strncpy(listing->entry.d_name, name.c_str(), sizeof listing->entry.d_name - 1);
  listing->entry.d_type = DT_DIR;
  return &listing->entry;
}

int __real_closedir(DIR*);
int __wrap_closedir(DIR* directory) {
  Listing* const listing = listing_of(directory);
  if (listing == nullptr) return __real_closedir(directory);
  descriptors.close(listing->fd);
  listings.erase(listing);
  delete listing;
  return 0;
}

ssize_t __real_fgetxattr(int, const char*, void*, std::size_t);
ssize_t __wrap_fgetxattr(int fd, const char* name, void* value, std::size_t size) {
  return Descriptors::simulated(fd) ? fail(ENODATA) : __real_fgetxattr(fd, name, value, size);
}

ssize_t __real_flistxattr(int, char*, std::size_t);
ssize_t __wrap_flistxattr(int fd, char* names, std::size_t size) {
  return Descriptors::simulated(fd) ? 0 : __real_flistxattr(fd, names, size);
}

// inotify and epoll report nothing. A sweep or a poll backs everything that they wake.
int __real_inotify_add_watch(int, const char*, std::uint32_t);
int __wrap_inotify_add_watch(int fd, const char* path, std::uint32_t mask) {
  constexpr std::string_view kOwn = "/proc/self/fd/";
  if (active() && std::strncmp(path, kOwn.data(), kOwn.size()) == 0) return fail(ENOSPC);
  return __real_inotify_add_watch(fd, path, mask);
}

int __real_epoll_ctl(int, int, int, epoll_event*);
int __wrap_epoll_ctl(int epoll, int operation, int fd, epoll_event* event) {
  return Descriptors::simulated(fd) ? 0 : __real_epoll_ctl(epoll, operation, fd, event);
}

int __real_eventfd_write(int, eventfd_t);
int __wrap_eventfd_write(int fd, eventfd_t value) {
  const int result = __real_eventfd_write(fd, value);
  using By = Lanes::By;
  if (active())
    lanes().answered(fd, lane == Lane::lowering  ? By::lowering
                         : lane == Lane::raising ? By::raising
                                                 : By::submitter);
  return result;
}

// The deadline of a lowering. It is cgphase's only timer, in the lowering thread.
int __real_timer_create(clockid_t, sigevent*, timer_t*);
int __wrap_timer_create(clockid_t clock, sigevent* event, timer_t* timer) {
  if (!active()) return __real_timer_create(clock, event, timer);
  lane = Lane::lowering;
  *timer = nullptr;
  return 0;
}

int __real_timer_settime(timer_t, int, const itimerspec*, itimerspec*);
int __wrap_timer_settime(timer_t timer, int flags, const itimerspec* value, itimerspec* old) {
  if (!active()) return __real_timer_settime(timer, flags, value, old);
  const std::int64_t after = value->it_value.tv_sec * 1'000'000'000 + value->it_value.tv_nsec;
  lanes().set_deadline(after == 0 ? std::nullopt : std::optional(time_ns() + after));
  return 0;
}

int __real_timer_delete(timer_t);
int __wrap_timer_delete(timer_t timer) { return active() ? 0 : __real_timer_delete(timer); }

int __real_pthread_cond_clockwait(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
int __wrap_pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                  clockid_t clock, const timespec* until) {
  if (!active()) return __real_pthread_cond_clockwait(condition, mutex, clock, until);
  ::pthread_mutex_unlock(mutex);
  observer().wait_a_little();
  ::pthread_mutex_lock(mutex);
  return 0;
}

// The other calls of the lease file.
int __real_posix_fallocate(int, off_t, off_t);
int __wrap_posix_fallocate(int fd, off_t offset, off_t size) {
  return host_call_fails() ? host_call_error : __real_posix_fallocate(fd, offset, size);
}
void* __real_mmap(void*, std::size_t, int, int, int, off_t);
void* __wrap_mmap(void* at, std::size_t size, int access, int flags, int fd, off_t offset) {
  return host_call_fails() ? MAP_FAILED : __real_mmap(at, size, access, flags, fd, offset);
}
int __real_flock(int, int);
int __wrap_flock(int fd, int how) { return host_call_fails() ? -1 : __real_flock(fd, how); }
int __real_link(const char*, const char*);
int __wrap_link(const char* from, const char* to) {
  return host_call_fails() ? -1 : __real_link(from, to);
}
int __real_rename(const char*, const char*);
int __wrap_rename(const char* from, const char* to) {
  return host_call_fails() ? -1 : __real_rename(from, to);
}
int __real_mkdir(const char*, mode_t);
int __wrap_mkdir(const char* path, mode_t mode) {
  return host_call_fails() ? -1 : __real_mkdir(path, mode);
}

std::chrono::steady_clock::time_point __real__ZNSt6chrono3_V212steady_clock3nowEv();
std::chrono::steady_clock::time_point __wrap__ZNSt6chrono3_V212steady_clock3nowEv() {
  if (!active()) return __real__ZNSt6chrono3_V212steady_clock3nowEv();
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(time_ns()));
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
