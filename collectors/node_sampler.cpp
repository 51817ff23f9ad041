#include "collectors/node_sampler.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "collectors/cgroup_files.h"
#include "collectors/cgroup_tree.h"
#include "collectors/containers/engine_files.h"
#include "collectors/containers/recognise.h"
#include "collectors/directory_writes.h"
#include "collectors/granted_limits.h"
#include "collectors/host_facts.h"
#include "collectors/kernel_text.h"
#include "collectors/pull_session.h"
#include "collectors/unit_resets.h"

namespace cgphase {
namespace {

// Without inotify the walk is all there is.
constexpr std::chrono::seconds kBlindSweep{5};

// From so many containers on, one read of their parent's cpu.stat comes first: it brings the
// statistics of all of them up to date at once, which halves their own reads at a thousand.
constexpr std::size_t kFlushSiblings = 16;

// A cgroup that comes while we watch is still being set up: its limits and attributes follow, then
// its first process. It is told of with that, or when so much time went by.
constexpr std::chrono::seconds kSetUpGrace{5};

// Files of so many are read at the pace of the model though they are only observed. Of more that
// would cost too much, and the model then knows less of them (docs/containers.md).
constexpr std::size_t kFewContainers = 16;

// Watches that could not be had are asked for again so often.
constexpr std::chrono::seconds kWatchAgain{60};

struct Settling {
  TreeChange::Appeared cgroup;
  MonotonicTime since;
};

struct Tracked {
  CgroupId id;
  CgroupPath path;
  CgroupFiles files;
  UnitResets resets;
  int watch;          // in DirectoryWrites; where it cannot be watched all is read at every tick
  bool for_parent;    // stands for the cgroup above it
  bool close = true;  // somebody may change its limits
  Granted granted = {};
  std::optional<std::uint32_t> place = {};  // in PullSession
};
using TrackedList = std::vector<std::unique_ptr<Tracked>>;

CgroupId id_of(const std::unique_ptr<Tracked>& tracked) { return tracked->id; }

CgroupPath parent_of(const CgroupPath& path) { return path.substr(0, path.rfind('/')); }

// One container holds about twenty descriptors. The usual soft limit of 1024 is there for programs
// that call select(), and this one does not.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

// A cgroup that is not tracked, as those do that stand for it.
struct StoodFor {
  std::size_t by = 0;            // how many
  std::optional<CgroupId> id{};  // of itself, where it was found
};

// Empty by its own word; a directory without that file is none to wait for.
bool is_empty(int directory_fd) {
  const auto events = read_file_at(directory_fd, kernel_file_name(KernelFile::cgroup_events),
                                   kKernelTextBytes);
  return events && scan_cgroup_events(*events).populated == false;
}

// A file of an engine's tells of it.
bool is_known(const Recognised& who, const std::string& engine_root) {
  ContainerInfo container;
  container.engine = who.engine;
  container.engine_id = who.engine_id;
  read_engine_files(engine_root, container);
  return !container.name.empty() || !container.image.empty() || !container.labels.empty();
}

// crun's inner cgroup, and one of a pod; not what looks like one below a container, which can make
// cgroups of any name.
bool stands_for_parent(const CgroupPath& path, const Recognised& who,
                       const std::string& engine_root) {
  if (who.inside_scope || !who.in_pod) return who.inside_scope;
  const auto above = recognise_path(parent_of(path), {});
  return !above || !is_known(*above, engine_root);
}

// Whoever owns the directory above a cgroup, or is root in a container around it, can give it any
// container's id: what root's engines know of that id is of this cgroup only where root, or who
// runs this, owns the one, and there is no other.
bool is_made_by_root(int directory_fd, bool inside_scope) {
  struct stat above{};
  return ::fstatat(directory_fd, inside_scope ? "../.." : "..", &above, 0) == 0 &&
         (above.st_uid == 0 || above.st_uid == ::geteuid());
}

ContainerInfo describe(const TreeChange::Appeared& cgroup, Recognised&& who, bool for_parent,
                       int directory_fd, const std::string& engine_root) {
  ContainerInfo container;
  container.id = cgroup.id;
  container.path = cgroup.path;
  container.engine = who.engine;
  container.engine_id = std::move(who.engine_id);
  container.name = std::move(who.name);
  container.hands_off = std::move(who.hands_off);
  container.systemd_unit = is_systemd_unit(cgroup.path);
  const CgroupPath above = parent_of(cgroup.path);
  const bool nested = is_in_container(for_parent ? parent_of(above) : above);
  container.made_by_root = !nested && is_made_by_root(directory_fd, who.inside_scope);
  if (container.made_by_root) read_engine_files(engine_root, container);
  if (container.engine == Engine::cgroup) read_attributes(directory_fd, container);
  return container;
}

}  // namespace

class NodeSampler::Impl {
 public:
  Impl(const Options& options, CgroupTree tree)
      : options_(options), tree_(std::move(tree)), buffer_(kKernelTextBytes),
        sources_(find_sources(tree_.root_fd(), options.proc_root)), pull_(options.open_pull),
        granted_(tree_.root_fd()) {}

  int event_fd() const { return tree_.event_fd(); }
  const Tracked* find(CgroupId id) const;
  void attend(CgroupId id, bool close);
  void set_observed_memory_age(std::chrono::nanoseconds age) {
    options_.observed_memory_age = age;
  }
  std::vector<Source> sources() const;

  void sample(const Clock& clock, NodeSample& tick) {
    tick.time = clock.monotonic_now();
    tick.wall_time = clock.wall_now();
    tick.appeared.clear();
    tick.vanished.clear();
    tick.granted.clear();
    follow_tree(tick.time, tick);
    tick.host = host_;
    if (!tick.appeared.empty() || !tick.vanished.empty()) {
      give_places();
      find_flushes();
    }
    read_all(tick);
  }

 private:
  void follow_tree(MonotonicTime now, NodeSample& tick);
  void settle(const Settling& settling, NodeSample& tick);
  void track(const TreeChange::Appeared& cgroup, Recognised&& who, Fd directory, NodeSample& tick);
  void forget(TrackedList::iterator at, NodeSample& tick);
  void stand_for(const CgroupPath& parent, NodeSample& tick);
  void stand_no_more_for(const CgroupPath& parent, MonotonicTime now);
  void find_granted(Tracked& tracked, NodeSample& tick);
  void give_places();
  void find_flushes();
  void flush();
  void walk(MonotonicTime now);
  void read_all(NodeSample& tick);
  Look look_for(const Tracked& tracked, const Pulled& pulled);
  void find_resets(NodeSample& tick);
  void watch_again(MonotonicTime now);
  Source inotify_source() const;

  Options options_;
  CgroupTree tree_;
  std::vector<char> buffer_;
  std::vector<Source> sources_;
  PullSession pull_;
  WriteWatch unit_writes_;
  DirectoryWrites writes_;  // to the directories of those that are only observed
  TrackedList tracked_;  // ascending id
  std::vector<Settling> settling_;  // looked at again at each tick
  std::vector<Settling> waiting_;   // not to be opened or beyond the bound: at each sweep
  std::map<CgroupPath, StoodFor> stood_for_;
  GrantedLimits granted_;
  TreeChange change_;  // kept for its capacity
  std::vector<Fd> flushes_;  // cpu.stat of the parents of many
  std::optional<MonotonicTime> start_time_, sweep_time_;
  std::size_t next_pupil_ = 0;
  MonotonicTime next_watch_;  // not before, where some are missing
  HostCapacity host_;
};

const Tracked* NodeSampler::Impl::find(CgroupId id) const {
  const auto at = std::ranges::lower_bound(tracked_, id, {}, id_of);
  return at != tracked_.end() && (*at)->id == id ? at->get() : nullptr;
}

void NodeSampler::Impl::attend(CgroupId id, bool close) {
  const auto at = std::ranges::lower_bound(tracked_, id, {}, id_of);
  if (at == tracked_.end() || (*at)->id != id || (*at)->close == close) return;
  (*at)->close = close;
  if (close) writes_.doubt((*at)->watch);  // nothing is lowered on what was only told
}

// The kernel tells of a write as soon as it is done, of an event a moment later.
Look NodeSampler::Impl::look_for(const Tracked& tracked, const Pulled& pulled) {
  const DirectoryChange change = writes_.take(tracked.watch);
  Look look{.events = change.events, .limits = change.limits, .told = tracked.watch >= 0};
  if (tracked.close) {
    look.events = look.events || pulled.record == nullptr;
    look.untold_limits_period = kUntoldCloseLimitsPeriod;
    return look;
  }
  look.memory_period = options_.observed_memory_age;
  look.sparse = pulled.record == nullptr && tracked_.size() > kFewContainers;
  if (look.sparse)
    look.memory_period = std::max<std::chrono::nanoseconds>(*look.memory_period,
                                                            kSparsePeriod);
  return look;
}

void NodeSampler::Impl::follow_tree(MonotonicTime now, NodeSample& tick) {
  change_.appeared.clear();
  change_.vanished.clear();
  const bool events_lost = tree_.drain(change_);
  const auto period =
      tree_.event_fd() < 0 ? std::min(options_.sweep, kBlindSweep) : options_.sweep;
  if (events_lost || !sweep_time_ || now < *sweep_time_ || now - *sweep_time_ >= period) {
    sweep_time_ = now;
    tree_.sweep(change_);
    host_ = read_host_capacity(options_.proc_root);
    sources_ = find_sources(tree_.root_fd(), options_.proc_root);
    std::ranges::move(std::exchange(waiting_, {}), std::back_inserter(settling_));
    granted_.forget();
    for (const auto& tracked : tracked_) find_granted(*tracked, tick);
  }
  for (const CgroupId id : change_.vanished) {
    const auto at = std::ranges::lower_bound(tracked_, id, {}, id_of);
    if (at != tracked_.end() && (*at)->id == id) forget(at, tick);
  }
  if (!start_time_) start_time_ = now;
  for (auto& cgroup : change_.appeared) settling_.push_back({std::move(cgroup), now});
  if (settling_.empty()) return;
  for (const Settling& one : std::exchange(settling_, {})) settle(one, tick);
}

void NodeSampler::Impl::settle(const Settling& settling, NodeSample& tick) {
  const auto& [cgroup, since] = settling;
  // One that the tree lost for want of descriptors while it waited here, and found again.
  if (find(cgroup.id) != nullptr) return;
  std::optional<Recognised> who = recognise_path(cgroup.path, options_.include);
  if (!who) return;
  if (const auto at = stood_for_.find(cgroup.path); at != stood_for_.end()) {
    at->second.id = cgroup.id;
    return;
  }
  if (tracked_.size() >= kMaxContainers) return waiting_.push_back(settling);
  Result<Fd> directory = tree_.open_directory(cgroup.path, cgroup.id);
  if (!directory) {
    const ErrorKind kind = directory.error().kind;
    if (kind != ErrorKind::gone && kind != ErrorKind::not_found) waiting_.push_back(settling);
    return;
  }
  // What was there when we came is set up.
  const bool recent = since != *start_time_ && tick.time - since < kSetUpGrace;
  if (recent && is_empty(directory->get())) return settling_.push_back(settling);
  track(cgroup, std::move(*who), std::move(*directory), tick);
}

void NodeSampler::Impl::track(const TreeChange::Appeared& cgroup, Recognised&& who, Fd directory,
                              NodeSample& tick) {
  const bool for_parent = stands_for_parent(cgroup.path, who, options_.engine_root);
  if (for_parent) stand_for(parent_of(cgroup.path), tick);
  tick.appeared.push_back(
      describe(cgroup, std::move(who), for_parent, directory.get(), options_.engine_root));
  UnitResets resets(tick.appeared.back(), directory.get(), unit_writes_, options_.engine_root);
  const int watch = writes_.add(directory.get());
  const auto at = tracked_.insert(
      std::ranges::lower_bound(tracked_, cgroup.id, {}, id_of),
      std::make_unique<Tracked>(cgroup.id, cgroup.path, CgroupFiles(std::move(directory)),
                                std::move(resets), watch, for_parent));
  find_granted(**at, tick);
}

void NodeSampler::Impl::find_granted(Tracked& tracked, NodeSample& tick) {
  const Granted found = granted_.within(parent_of(tracked.path));
  if (found == tracked.granted) return;
  tracked.granted = found;
  tick.granted.emplace_back(tracked.id, found);
}

void NodeSampler::Impl::stand_for(const CgroupPath& parent, NodeSample& tick) {
  StoodFor& stood = stood_for_[parent];
  ++stood.by;
  const auto at = std::ranges::find(tracked_, parent,
                                    [](const auto& one) -> auto& { return one->path; });
  if (at == tracked_.end()) return;
  stood.id = (*at)->id;
  forget(at, tick);
}

// With the last one the parent is a container of its own again, if it is still there.
void NodeSampler::Impl::stand_no_more_for(const CgroupPath& parent, MonotonicTime now) {
  const auto at = stood_for_.find(parent);
  if (--at->second.by > 0) return;
  if (at->second.id) settling_.push_back({{*at->second.id, parent}, now});
  stood_for_.erase(at);
}

// A container that came within this tick was not told of yet and need not be.
void NodeSampler::Impl::forget(TrackedList::iterator at, NodeSample& tick) {
  const CgroupId id = (*at)->id;
  if ((*at)->watch >= 0) writes_.remove((*at)->watch);
  if ((*at)->place) pull_.remove(id.inode, *(*at)->place);
  if ((*at)->for_parent) stand_no_more_for(parent_of((*at)->path), tick.time);
  tracked_.erase(at);
  if (std::erase_if(tick.appeared, [&](const auto& one) { return one.id == id; }) == 0)
    tick.vanished.push_back(id);
}

void NodeSampler::Impl::give_places() {
  if (pull_.make_room(tracked_.size()))
    for (const auto& tracked : tracked_) tracked->place.reset();
  for (const auto& tracked : tracked_)
    if (!tracked->place) tracked->place = pull_.add(tracked->id.inode);
}

// A read of one file of a parent brings the statistics of all below it up to date. A walk reads
// what all of them have then, so it begins at the top; of files it pays only for many siblings.
void NodeSampler::Impl::find_flushes() {
  flushes_.clear();
  std::map<CgroupPath, std::size_t> parents;
  const bool walk = pull_.active();
  for (const auto& tracked : tracked_)
    ++parents[walk ? tracked->path.substr(0, tracked->path.find('/', 1))
                   : parent_of(tracked->path)];
  const auto open = [&](const CgroupPath& path, KernelFile file) {
    const std::string name = "." + path + "/" + kernel_file_name(file);
    if (Result<Fd> fd = open_at(tree_.root_fd(), name.c_str(), O_RDONLY | O_NOFOLLOW))
      flushes_.push_back(std::move(*fd));
  };
  for (const auto& [path, count] : parents) {
    if (!walk && count < kFlushSiblings) continue;
    open(path, KernelFile::cpu_stat);
    if (walk && !pull_.one_flush())
      open(path, KernelFile::io_stat), open(path, KernelFile::memory_stat);
  }
}

void NodeSampler::Impl::flush() {
  // What they say is not used, nor whether they say it.
  for (const Fd& fd : flushes_)
    [[maybe_unused]] const ssize_t count = ::pread(fd.get(), buffer_.data(), buffer_.size(), 0);
}

// Each in its turn teaches what memory.stat is made of; first who was not understood.
void NodeSampler::Impl::walk(MonotonicTime now) {
  PullSession::Pupil pupil;
  if (pull_.wants_lesson(now) && !tracked_.empty()) {
    const std::uint64_t wanted = pull_.wanted_pupil();
    auto at = std::ranges::find_if(
        tracked_, [&](const auto& one) { return one->id.inode == wanted; });
    if (at == tracked_.end())
      at = tracked_.begin() + static_cast<std::ptrdiff_t>(next_pupil_++ % tracked_.size());
    pupil = {.inode = (*at)->id.inode,
             .read = [&files = (*at)->files, this] { return files.read_memory_lines(buffer_); }};
  }
  pull_.walk(now, pupil);
}

void NodeSampler::Impl::read_all(NodeSample& tick) {
  flush();
  if (pull_.active()) walk(tick.time);
  writes_.look();  // before what it tells of is read: a later write is told at the next tick
  tick.containers.resize(tracked_.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < tracked_.size();) {
    Sample& sample = tick.containers[count];
    Tracked& tracked = *tracked_[i];
    const Pulled pulled =
        tracked.place ? pull_.told(tracked.id.inode, *tracked.place) : Pulled{};
    if (!tracked.files.read(tick.time, sample, buffer_, look_for(tracked, pulled), pulled)) {
      forget(tracked_.begin() + static_cast<std::ptrdiff_t>(i), tick);
      continue;
    }
    sample.id = tracked.id;
    ++count;
    ++i;
  }
  tick.containers.resize(count);
  find_resets(tick);
}

// Those that vanished are not tracked any more, so each sample has its place.
void NodeSampler::Impl::find_resets(NodeSample& tick) {
  unit_writes_.look();
  for (std::size_t i = 0; i < tracked_.size(); ++i)
    tick.containers[i].limits_reset = tracked_[i]->resets.last(tick.time);
  watch_again(tick.time);
}

void NodeSampler::Impl::watch_again(MonotonicTime now) {
  const bool due = now >= next_watch_;
  if (unit_writes_.unwatched() > 0 && !due) return;
  next_watch_ = now + kWatchAgain;
  if (unit_writes_.unwatched() == 0) return;
  for (const auto& one : tracked_) one->resets.watch_again(one->files.directory_fd());
}

Source NodeSampler::Impl::inotify_source() const {
  constexpr const char* kMore = ": raise fs.inotify.max_user_watches and max_user_instances";
  const bool nothing_there = tree_.root_fd() < 0;  // no cgroup v2: nothing to watch
  if (!nothing_there && (tree_.event_fd() < 0 || tree_.unwatched() > 0))
    return {"inotify", false, std::string("cgroups are found by a walk only") + kMore};
  if (unit_writes_.unwatched() > 0)
    return {"inotify", false,
            std::string("limits that systemd resets are taken for somebody's change") + kMore};
  if (unit_writes_.overflows() == 0) return {"inotify", true, ""};
  return {"inotify", true,
          "overflows: " + std::to_string(unit_writes_.overflows()) +
              "; limits that systemd reset then were taken for somebody's change: raise "
              "fs.inotify.max_queued_events"};
}

std::vector<Source> NodeSampler::Impl::sources() const {
  std::vector<Source> sources = sources_;
  sources.push_back(inotify_source());
  sources.push_back(pull_.source());
  const std::size_t beyond = tree_.beyond_depth() + tree_.beyond_count() + waiting_.size();
  const bool complete = beyond == 0 && tree_.unreadable() == 0;
  sources.push_back({"all cgroups", complete,
                     complete ? "" : std::to_string(beyond) + " beyond the bounds on depth, "
                                     "length, count or descriptors, " +
                                     std::to_string(tree_.unreadable()) + " not to be opened"});
  const bool starved = std::ranges::any_of(
      tracked_, [](const auto& one) { return one->files.short_of_descriptors(); });
  sources.push_back({"descriptors", !starved,
                     starved ? "files could not be opened: raise the limit of open files "
                               "(LimitNOFILE=)" : ""});
  return sources;
}

Result<NodeSampler> NodeSampler::open(const Options& options) {
  raise_descriptor_limit();
  if (options.cgroup_root.empty())
    return NodeSampler(std::make_unique<Impl>(options, CgroupTree::none()));
  Result<CgroupTree> tree = CgroupTree::open(options.cgroup_root);
  if (!tree) return std::unexpected(tree.error());
  if (Status fit = require_cgroup_v2(tree->root_fd(), options.cgroup_root); !fit)
    return std::unexpected(fit.error());
  return NodeSampler(std::make_unique<Impl>(options, std::move(*tree)));
}

NodeSampler::NodeSampler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
NodeSampler::NodeSampler(NodeSampler&&) noexcept = default;
NodeSampler& NodeSampler::operator=(NodeSampler&&) noexcept = default;
NodeSampler::~NodeSampler() = default;

int NodeSampler::event_fd() const { return impl_->event_fd(); }

void NodeSampler::sample(const Clock& clock, NodeSample& tick) { impl_->sample(clock, tick); }

void NodeSampler::set_observed_memory_age(std::chrono::nanoseconds age) {
  impl_->set_observed_memory_age(age);
}
void NodeSampler::attend(CgroupId id, bool close) { impl_->attend(id, close); }

std::vector<Source> NodeSampler::sources() const { return impl_->sources(); }

Result<Fd> NodeSampler::duplicate_directory(CgroupId id) const {
  const Tracked* tracked = impl_->find(id);
  if (!tracked) return failure(ErrorKind::gone, "this container is not tracked any more");
  const int fd = ::fcntl(tracked->files.directory_fd(), F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return errno_failure("cgroup " + escape_name(tracked->path), errno);
  return Fd(fd);
}

}  // namespace cgphase
