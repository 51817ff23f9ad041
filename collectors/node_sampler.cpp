#include "collectors/node_sampler.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "collectors/cgroup_tree.h"
#include "collectors/containers/engine_files.h"
#include "collectors/containers/layout.h"
#include "collectors/containers/recognise.h"
#include "collectors/descriptor_room.h"
#include "collectors/directory_writes.h"
#include "collectors/ancestor_limits.h"
#include "collectors/host_facts.h"
#include "collectors/pull_session.h"
#include "collectors/sampler_sources.h"
#include "collectors/stat_flush.h"
#include "collectors/tracked_container.h"
#include "collectors/unit_resets.h"

namespace cgphase {
namespace {

// Without inotify only the walk finds cgroups.
constexpr std::chrono::seconds kBlindSweep{5};

// A new cgroup is still being set up: its limits and attributes follow, then its first process. It
// is reported with its first process, or after this time.
constexpr std::chrono::seconds kSetUpGrace{5};

// Files of this many observed containers are read at the pace of the model. For more that would
// cost too much, and the model then gets fewer data (docs/operations.md).
constexpr std::size_t kFewContainers = 16;

// Interval of retries for inotify watches that could not be created.
constexpr std::chrono::seconds kWatchAgain{60};

CgroupPath parent_of(const CgroupPath& path) { return path.substr(0, path.rfind('/')); }

}  // namespace

class NodeSampler::Impl {
 public:
  Impl(const Options& options, CgroupTree tree)
      : options_(options), engine_files_(options.engine_root, options.proc_root),
        tree_(std::move(tree)),
        buffer_(std::make_unique_for_overwrite<char[]>(kKernelTextBytes)),
        sources_(find_sources(tree_.root_fd(), options.proc_root)), pull_(options.open_pull),
        ancestor_limits_(tree_.root_fd()) {}

  const Tracked* find(CgroupId id) const;
  void set_detail(CgroupId id, bool detailed);
  void set_observed_memory_age(std::chrono::nanoseconds age) {
    options_.observed_memory_age = age;
  }
  std::vector<Source> sources() const;
  std::uint64_t impossible_samples() const { return impossible_samples_; }

  void sample(const Clock& clock, NodeSample& tick) {
    tick.time = clock.monotonic_now();
    tick.wall_time = clock.wall_now();
    tick.appeared.clear();
    tick.vanished.clear();
    tick.ancestor_limits.clear();
    follow_tree(tick.time, tick);
    tick.host = host_;
    if (!tick.appeared.empty() || !tick.vanished.empty()) {
      give_places();
      find_flushes();
    }
    read_all(clock, tick);
  }

 private:
  void follow_tree(MonotonicTime now, NodeSample& tick);
  void read_host();
  void settle(const Settling& settling, NodeSample& tick);
  bool may_be_container(const Settling& settling, const Recognised& match) const;
  // Whether it represents the container around it, as far as is known yet.
  enum class Represents { no, yes, not_yet };
  Represents represents(const Settling& settling, const Recognised& match, int directory_fd,
                        MonotonicTime now);
  bool has_quota(const CgroupPath& path) const;
  void track(const TreeChange::Appeared& cgroup, Recognised&& match, bool for_parent, Fd directory,
             NodeSample& tick);
  std::optional<Recognised> recognise(const CgroupPath& path) const;
  void rename_lxc(Recognised& match, const CgroupPath& left_over, NodeSample& tick);
  std::optional<Unit> unit_with_limits(const CgroupPath& path, int directory_fd) const;
  bool track_unit(CgroupId container, const Unit& unit, const Recognised& match,
                  NodeSample& tick);
  void find_first_limits(NodeSample& tick);
  void leave_unit(const Unit& unit, NodeSample& tick);
  TrackedList::const_iterator find_path(const CgroupPath& path) const;
  void forget(TrackedList::iterator at, NodeSample& tick);
  void represent(const CgroupPath& parent, NodeSample& tick);
  void release_parent(const CgroupPath& parent, MonotonicTime now);
  void find_ancestor_limits(Tracked& tracked, NodeSample& tick);
  void give_places();
  void find_flushes();
  void walk(MonotonicTime now);
  void read_all(const Clock& clock, NodeSample& tick);
  void leave_out_impossible(NodeSample& tick);
  ReadPlan plan_for(const Tracked& tracked, const Pulled& pulled);
  void find_resets(NodeSample& tick);
  void watch_again(MonotonicTime now);

  std::span<char> buffer() const { return {buffer_.get(), kKernelTextBytes}; }

  Options options_;
  EngineFiles engine_files_;
  CgroupTree tree_;
  const std::unique_ptr<char[]> buffer_;  // untouched pages need no memory
  std::vector<Source> sources_;
  PullSession pull_;
  WriteWatch unit_writes_;
  DirectoryWrites writes_;  // writes to the directories of containers
  TrackedList tracked_;  // ascending id
  std::vector<Settling> settling_;  // checked again at each tick
  std::vector<Settling> waiting_;   // cannot be opened, or beyond a limit: checked at each sweep
  std::map<CgroupId, EmptyCgroup> empty_;          // cgroups without a process yet
  std::map<std::string, std::size_t> tracked_of_;  // number of containers by owner
  std::map<CgroupPath, Represented> represented_;
  std::map<CgroupId, Unit> units_;  // by the container in it, which the unit's cgroup represents
  std::set<CgroupPath> tasks_;      // containers that only containerd's files tell
  UnlabelledMap unlabelled_;
  AncestorLimitsReader ancestor_limits_;
  TreeChange change_;  // kept for its capacity
  StatFlush flushes_;
  std::optional<MonotonicTime> start_time_, sweep_time_;
  bool events_lost_ = false;
  std::size_t next_target_ = 0;
  MonotonicTime next_watch_;     // earliest retry if some watches are missing
  HostCapacity host_, machine_;  // machine_: without the limits of its cgroup namespace
  std::uint64_t impossible_samples_ = 0;
};

const Tracked* NodeSampler::Impl::find(CgroupId id) const {
  const auto at = std::ranges::lower_bound(tracked_, id, {}, id_of);
  return at != tracked_.end() && (*at)->id == id ? at->get() : nullptr;
}

void NodeSampler::Impl::set_detail(CgroupId id, bool detailed) {
  const auto at = std::ranges::lower_bound(tracked_, id, {}, id_of);
  if (at == tracked_.end() || (*at)->id != id || (*at)->detailed == detailed) return;
  (*at)->detailed = detailed;
  if (detailed) writes_.mark_changed((*at)->watch);  // a limit is never lowered on old values
}

// The kernel reports a write immediately, an event a moment later.
ReadPlan NodeSampler::Impl::plan_for(const Tracked& tracked, const Pulled& pulled) {
  const DirectoryChange change = writes_.drain(tracked.watch);
  ReadPlan plan{.events = change.events, .limits = change.limits,
                .writes_reported = tracked.watch >= 0};
  if (tracked.detailed) {
    plan.events = plan.events || pulled.record == nullptr;
    plan.limits_period = kDetailLimitsPeriod;
    return plan;
  }
  plan.memory_period = options_.observed_memory_age;
  plan.sparse = pulled.record == nullptr && tracked_.size() > kFewContainers;
  if (plan.sparse)
    plan.memory_period = std::max<std::chrono::nanoseconds>(*plan.memory_period, kSparsePeriod);
  return plan;
}

void NodeSampler::Impl::follow_tree(MonotonicTime now, NodeSample& tick) {
  change_.appeared.clear();
  change_.vanished.clear();
  change_.woken.clear();
  events_lost_ = tree_.drain(change_, now) || events_lost_;
  // An owner that causes events faster than they are read must not cause a walk at every tick.
  const auto period = tree_.event_fd() < 0 || events_lost_ ? std::min(options_.sweep, kBlindSweep)
                                                           : options_.sweep;
  if (!sweep_time_ || now < *sweep_time_ || now - *sweep_time_ >= period) {
    std::erase_if(empty_, [&](const auto& one) {
      const bool again = !one.second.reported || events_lost_;
      if (again) settling_.push_back({{one.first, one.second.path}, now});
      return again;
    });
    events_lost_ = false;
    sweep_time_ = now;
    tree_.sweep(change_);
    ancestor_limits_.forget();
    engine_files_.forget();
    read_host();
    sources_ = find_sources(tree_.root_fd(), options_.proc_root);
    std::ranges::move(std::exchange(waiting_, {}), std::back_inserter(settling_));
    find_first_limits(tick);
    for (const auto& tracked : tracked_) find_ancestor_limits(*tracked, tick);
  }
  for (const CgroupId id : change_.vanished) {
    const auto at = std::ranges::lower_bound(tracked_, id, {}, id_of);
    if (at != tracked_.end() && (*at)->id == id) forget(at, tick);
    empty_.erase(id);
    if (const auto unit = units_.extract(id)) leave_unit(unit.mapped(), tick);
  }
  if (!start_time_) start_time_ = now;
  for (auto& cgroup : change_.woken)
    if (empty_.erase(cgroup.id) > 0) settling_.push_back({std::move(cgroup), now});
  for (auto& cgroup : change_.appeared) settling_.push_back({std::move(cgroup), now});
  if (settling_.empty()) return;
  for (const Settling& one : std::exchange(settling_, {})) settle(one, tick);
}

// Below a container, only cgroups that an administrator's pattern names or that an engine creates
// count.
bool NodeSampler::Impl::may_be_container(const Settling& settling, const Recognised& match) const {
  if (match.engine == Engine::service || match.engine == Engine::cgroup) return true;
  const CgroupPath& path = settling.cgroup.path;
  const auto is_around = [&](const CgroupPath& task) { return path.starts_with(task + "/"); };
  if (std::ranges::any_of(tasks_, is_around)) return false;
  const CgroupPath around = container_around(path);
  return around.empty() || (around == parent_of(path) && (match.inside_scope || match.in_pod));
}

NodeSampler::Impl::Represents NodeSampler::Impl::represents(const Settling& settling,
                                                            const Recognised& match,
                                                            int directory_fd,
                                                            MonotonicTime now) {
  const CgroupPath& path = settling.cgroup.path;
  const auto outer = find_path(parent_of(path));
  const auto is_young = [&](MonotonicTime since) {
    return since != *start_time_ && now - since < kSetUpGrace;
  };
  const bool young = outer != tracked_.end() && is_young((*outer)->since);
  if (outer != tracked_.end() && (*outer)->own_processes && !young) return Represents::no;
  if (represents_parent(path, match, directory_fd, engine_files_)) return Represents::yes;
  return match.inside_scope && young && is_young(settling.since) ? Represents::not_yet
                                                               : Represents::no;
}

bool NodeSampler::Impl::has_quota(const CgroupPath& path) const {
  const CgroupOwner* const owner = tree_.owner_of(path);
  if (owner == nullptr) return true;
  const auto at = tracked_of_.find(owner->name);
  return at == tracked_of_.end() || at->second < containers_per_owner();
}

// The host has at most the limits of the cgroup namespace of this process.
void NodeSampler::Impl::read_host() {
  host_ = machine_ = read_host_capacity(options_.proc_root);
  const AncestorLimits most = ancestor_limits_.within({});
  host_.cpu_cores = std::min(host_.cpu_cores, most.cpu_cores);
  if (static_cast<double>(host_.memory.value) > most.memory_bytes)
    host_.memory = Bytes{static_cast<std::uint64_t>(most.memory_bytes)};
}

void NodeSampler::Impl::settle(const Settling& settling, NodeSample& tick) {
  const auto& [cgroup, since] = settling;
  // The tree may have lost the cgroup for lack of descriptors while it waited here, and found it
  // again.
  if (find(cgroup.id) != nullptr) return;
  std::optional<Recognised> match = recognise(cgroup.path);
  if (!match || !may_be_container(settling, *match)) return;
  if (const auto at = represented_.find(cgroup.path); at != represented_.end()) {
    at->second.id = cgroup.id;
    return;
  }
  // A cgroup that may represent its parent uses the quota of that parent.
  const bool inner = match->inside_scope || match->in_pod;
  if (tracked_.size() >= kMaxContainers ||
      !has_quota(inner ? parent_of(cgroup.path) : cgroup.path))
    return waiting_.push_back(settling);
  Result<Fd> directory = tree_.open_directory(cgroup.path, cgroup.id);
  if (directory && is_reserved(*directory))
    directory = failure(ErrorKind::io, "too few descriptors are left");
  if (!directory) {
    const ErrorKind kind = directory.error().kind;
    if (kind != ErrorKind::gone && kind != ErrorKind::not_found) waiting_.push_back(settling);
    return;
  }
  // An empty cgroup of a user, or in a container, is not a container yet. An empty one of LXC was
  // left over.
  const bool owned = tree_.owner_of(cgroup.path) != nullptr || match->engine == Engine::lxc;
  const bool reported = owned && tree_.listen(cgroup.path, directory->get(), true);
  // A cgroup that existed at the start is set up.
  const bool recent = since != *start_time_ && tick.time - since < kSetUpGrace;
  if ((owned || recent) && is_populated(directory->get(), ".") == false) {
    if (owned)
      empty_.emplace(cgroup.id, EmptyCgroup{cgroup.path, reported});
    else settling_.push_back(settling);
    return;
  }
  if (reported) tree_.listen(cgroup.path, directory->get(), false);
  if (const auto old = path_left_over(cgroup.path, *match, tree_.root_fd(), engine_files_);
      !old.empty())
    rename_lxc(*match, old, tick);
  if (match->in_unit)
    if (const auto unit = unit_with_limits(cgroup.path, directory->get());
        unit && track_unit(cgroup.id, *unit, *match, tick))
      return;
  const Represents represented = represents(settling, *match, directory->get(), tick.time);
  if (represented == Represents::not_yet) return settling_.push_back(settling);
  const bool below = is_engine_container(parent_of(cgroup.path));
  if (represented == Represents::no && (match->inside_scope || (match->in_pod && below))) return;
  track(cgroup, std::move(*match), represented == Represents::yes, std::move(*directory), tick);
}

std::optional<Recognised> NodeSampler::Impl::recognise(const CgroupPath& path) const {
  std::optional<Recognised> match = recognise_path(path, options_.include);
  return match ? match : recognise_task(path, engine_files_);
}

// The cgroup that was left over may still count as the container that ended.
void NodeSampler::Impl::rename_lxc(Recognised& match, const CgroupPath& left_over,
                                   NodeSample& tick) {
  match.engine_id.resize(match.engine_id.rfind('-'));
  match.name = unescape_name(match.engine_id);
  const auto at = find_path(left_over);
  if (at == tracked_.end()) return;
  empty_.emplace((*at)->id, EmptyCgroup{left_over, false});
  forget(tracked_.begin() + (at - tracked_.cbegin()), tick);
}

// The unit around a container, if it alone has limits and represents no other container.
std::optional<Unit> NodeSampler::Impl::unit_with_limits(const CgroupPath& path,
                                                        int directory_fd) const {
  struct stat status{};
  if (!unit_has_limits(directory_fd) || ::fstatat(directory_fd, "..", &status, 0) != 0) return {};
  const Unit unit{{status.st_dev, status.st_ino}, parent_of(path)};
  const auto is_same = [&](const auto& one) { return one.second.id == unit.id; };
  if (std::ranges::any_of(units_, is_same)) return {};
  return unit;
}

// Tracks the cgroup of the unit for the container in it.
bool NodeSampler::Impl::track_unit(CgroupId container, const Unit& unit, const Recognised& match,
                                   NodeSample& tick) {
  Result<Fd> directory = tree_.open_directory(unit.path, unit.id);
  if (!directory) return false;
  const auto at = std::ranges::lower_bound(tracked_, unit.id, {}, id_of);
  if (at != tracked_.end() && (*at)->id == unit.id) forget(at, tick);  // an included service
  units_.emplace(container, unit);
  track({unit.id, unit.path}, Recognised(match), false, std::move(*directory), tick);
  return true;
}

// A unit may get its first limit later than its container starts.
void NodeSampler::Impl::find_first_limits(NodeSample& tick) {
  for (std::size_t i = tracked_.size(); i-- > 0;) {
    const Tracked& one = *tracked_[i];
    const auto match = recognise_path(one.path, options_.include);
    if (!match || !match->in_unit || !unit_with_limits(one.path, one.files.directory_fd()))
      continue;
    settling_.push_back({{one.id, one.path}, tick.time});
    forget(tracked_.begin() + static_cast<std::ptrdiff_t>(i), tick);
  }
}

// The container in a unit ended. The unit may be a container by itself.
void NodeSampler::Impl::leave_unit(const Unit& unit, NodeSample& tick) {
  const auto at = std::ranges::lower_bound(tracked_, unit.id, {}, id_of);
  if (at == tracked_.end() || (*at)->id != unit.id) return;
  forget(at, tick);
  settling_.push_back({{unit.id, unit.path}, tick.time});
}

TrackedList::const_iterator NodeSampler::Impl::find_path(const CgroupPath& path) const {
  return std::ranges::find(tracked_, path, [](const auto& one) -> auto& { return one->path; });
}

void NodeSampler::Impl::track(const TreeChange::Appeared& cgroup, Recognised&& match,
                              bool for_parent, Fd directory, NodeSample& tick) {
  if (for_parent) represent(parent_of(cgroup.path), tick);
  tick.appeared.push_back(
      describe_container(cgroup.id, cgroup.path, std::move(match), for_parent, directory.get(),
                         engine_files_));
  const ContainerInfo& info = tick.appeared.back();
  if (info.engine == Engine::containerd && !is_engine_container(cgroup.path))
    tasks_.insert(cgroup.path);
  if (!info.labels_unknown.empty())
    unlabelled_[cgroup.id] = {info.name, info.labels_unknown};
  const CgroupOwner* const owner =
      tree_.owner_of(for_parent ? parent_of(cgroup.path) : cgroup.path);
  const std::string quota = owner != nullptr ? owner->name : "";
  if (owner != nullptr) ++tracked_of_[quota], tick.appeared.back().owner = quota;
  UnitResets resets(tick.appeared.back(), directory.get(), unit_writes_, options_.engine_root);
  const int watch = writes_.add(directory.get());
  const bool own_processes = has_processes(directory.get(), "cgroup.procs");
  const auto at = tracked_.insert(
      std::ranges::lower_bound(tracked_, cgroup.id, {}, id_of),
      std::make_unique<Tracked>(cgroup.id, cgroup.path, CgroupFiles(std::move(directory)),
                                std::move(resets), watch, for_parent, tick.time, own_processes,
                                quota));
  find_ancestor_limits(**at, tick);
}

void NodeSampler::Impl::find_ancestor_limits(Tracked& tracked, NodeSample& tick) {
  const AncestorLimits found = ancestor_limits_.within(parent_of(tracked.path));
  if (found == tracked.ancestor_limits) return;
  tracked.ancestor_limits = found;
  tick.ancestor_limits.emplace_back(tracked.id, found);
}

void NodeSampler::Impl::represent(const CgroupPath& parent, NodeSample& tick) {
  Represented& represented = represented_[parent];
  ++represented.by;
  const auto at = find_path(parent);
  if (at == tracked_.end()) return;
  represented.id = (*at)->id;
  forget(tracked_.begin() + (at - tracked_.cbegin()), tick);
}

// After the last inner cgroup, the parent is a container again, if it still exists.
void NodeSampler::Impl::release_parent(const CgroupPath& parent, MonotonicTime now) {
  const auto at = represented_.find(parent);
  if (--at->second.by > 0) return;
  if (at->second.id) settling_.push_back({{*at->second.id, parent}, now});
  represented_.erase(at);
}

// A container that appeared within this tick was not reported yet and need not be.
void NodeSampler::Impl::forget(TrackedList::iterator at, NodeSample& tick) {
  const CgroupId id = (*at)->id;
  if ((*at)->watch >= 0) writes_.remove((*at)->watch);
  if ((*at)->place) pull_.remove(id.inode, *(*at)->place);
  tasks_.erase((*at)->path);
  if ((*at)->for_parent) release_parent(parent_of((*at)->path), tick.time);
  if (const auto quota = tracked_of_.find((*at)->quota);
      quota != tracked_of_.end() && --quota->second == 0)
    tracked_of_.erase(quota);
  tracked_.erase(at);
  unlabelled_.erase(id);
  if (std::erase_if(tick.appeared, [&](const auto& one) { return one.id == id; }) == 0)
    tick.vanished.push_back(id);
}

void NodeSampler::Impl::give_places() {
  if (pull_.make_room(tracked_.size()))
    for (const auto& tracked : tracked_) tracked->place.reset();
  for (const auto& tracked : tracked_)
    if (!tracked->place) tracked->place = pull_.add(tracked->id.inode);
}

void NodeSampler::Impl::find_flushes() {
  flushes_.clear();
  std::vector<std::string_view> paths;
  for (const auto& tracked : tracked_) paths.push_back(tracked->path);
  if (pull_.active()) flushes_.open_tops(tree_.root_fd(), paths, pull_.one_flush());
  else flushes_.open_parents(tree_.root_fd(), paths);
}

// Each container in turn calibrates the lines of memory.stat. A container with a mismatch comes
// first.
void NodeSampler::Impl::walk(MonotonicTime now) {
  PullSession::CalibrationTarget target;
  if (pull_.needs_calibration(now) && !tracked_.empty()) {
    const std::uint64_t wanted = pull_.preferred_target();
    auto at = std::ranges::find_if(
        tracked_, [&](const auto& one) { return one->id.inode == wanted; });
    if (at == tracked_.end())
      at = tracked_.begin() + static_cast<std::ptrdiff_t>(next_target_++ % tracked_.size());
    target = {.inode = (*at)->id.inode,
              .read = [&files = (*at)->files, this] { return files.read_memory_lines(buffer()); }};
  }
  pull_.walk(now, target);
}

void NodeSampler::Impl::read_all(const Clock& clock, NodeSample& tick) {
  flushes_.read(buffer());
  const MonotonicTime walked = clock.monotonic_now();
  if (pull_.active()) walk(tick.time);
  writes_.poll();  // before the files are read: a later write is reported at the next tick
  tick.containers.resize(tracked_.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < tracked_.size();) {
    Sample& sample = tick.containers[count];
    Tracked& tracked = *tracked_[i];
    const Pulled pulled = tracked.place ? pull_.record(tracked.id.inode, *tracked.place) : Pulled{};
    const MonotonicTime read = pulled.record != nullptr ? walked : clock.monotonic_now();
    if (!tracked.files.read(tick.time, sample, buffer(), plan_for(tracked, pulled), pulled)) {
      forget(tracked_.begin() + static_cast<std::ptrdiff_t>(i), tick);
      continue;
    }
    sample.id = tracked.id;
    sample.read_time = read;
    ++count;
    ++i;
  }
  tick.containers.resize(count);
  find_resets(tick);
  leave_out_impossible(tick);
}

// The host may have grown since it was read. It is read again before a sample is dropped.
void NodeSampler::Impl::leave_out_impossible(NodeSample& tick) {
  bool fresh = false;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < tick.containers.size(); ++i) {
    Sample& sample = tick.containers[i];
    SampleFilter& filter = tracked_[i]->filter;
    if (!filter.accept(*sample.read_time, machine_, sample)) {
      if (!std::exchange(fresh, true)) read_host();
      const bool sound = filter.accept(*sample.read_time, machine_, sample);
      if (!sound) ++impossible_samples_;
      if (!sound && !filter.mend(*sample.read_time, machine_, sample)) continue;
    }
    if (kept != i) tick.containers[kept] = sample;
    ++kept;
  }
  tick.containers.resize(kept);
}

// Vanished containers are not tracked any more, so that tick.containers and tracked_ correspond.
void NodeSampler::Impl::find_resets(NodeSample& tick) {
  unit_writes_.poll();
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

std::vector<Source> NodeSampler::Impl::sources() const {
  std::vector<Source> sources = sources_;
  sources.push_back(inotify_source(tree_, unit_writes_));
  sources.push_back(pull_.source());
  sources.push_back(cgroups_source(tree_, waiting_.size()));
  sources.push_back(descriptors_source(tracked_));
  sources.push_back(kernel_files_source(tracked_, impossible_samples_));
  sources.push_back(engine_files_source(unlabelled_));
  return sources;
}

Result<NodeSampler> NodeSampler::open(const Options& options) {
  raise_descriptor_limit();
  if (options.cgroup_root.empty())
    return NodeSampler(std::make_unique<Impl>(options, CgroupTree::none()));
  Result<CgroupTree> tree = CgroupTree::open(options.cgroup_root);
  if (!tree) return std::unexpected(tree.error());
  return NodeSampler(std::make_unique<Impl>(options, std::move(*tree)));
}

NodeSampler::NodeSampler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
NodeSampler::NodeSampler(NodeSampler&&) noexcept = default;
NodeSampler& NodeSampler::operator=(NodeSampler&&) noexcept = default;
NodeSampler::~NodeSampler() = default;

void NodeSampler::sample(const Clock& clock, NodeSample& tick) { impl_->sample(clock, tick); }

void NodeSampler::set_observed_memory_age(std::chrono::nanoseconds age) {
  impl_->set_observed_memory_age(age);
}
void NodeSampler::set_detail(CgroupId id, bool detailed) { impl_->set_detail(id, detailed); }

std::uint64_t NodeSampler::impossible_samples() const { return impl_->impossible_samples(); }

std::vector<Source> NodeSampler::sources() const { return impl_->sources(); }

Result<Fd> NodeSampler::duplicate_directory(CgroupId id) const {
  const Tracked* tracked = impl_->find(id);
  if (!tracked) return failure(ErrorKind::gone, "this container is no longer tracked");
  const int fd = ::fcntl(tracked->files.directory_fd(), F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return errno_failure("cgroup " + escape_name(tracked->path), errno);
  return Fd(fd);
}

}  // namespace cgphase
