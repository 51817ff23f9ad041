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
#include <utility>

#include "base/file.h"
#include "base/text.h"
#include "cgroupfs/kernel_text.h"
#include "collectors/cgroup_files.h"
#include "collectors/cgroup_tree.h"
#include "collectors/containers/layout.h"
#include "collectors/containers/recognise.h"
#include "collectors/directory_writes.h"
#include "collectors/ancestor_limits.h"
#include "collectors/host_facts.h"
#include "collectors/pull_session.h"
#include "collectors/sample_filter.h"
#include "collectors/sampler_sources.h"
#include "collectors/unit_resets.h"

namespace cgphase {
namespace {

// Without inotify only the walk finds cgroups.
constexpr std::chrono::seconds kBlindSweep{5};

// From this many siblings on, their parent's cpu.stat is read first. It flushes the statistics of
// all of them at once, which halves the cost of their own reads at a thousand.
constexpr std::size_t kFlushSiblings = 16;

// A new cgroup is still being set up: its limits and attributes follow, then its first process. It
// is reported with its first process, or after this time.
constexpr std::chrono::seconds kSetUpGrace{5};

// Files of this many observed containers are read at the pace of the model. For more that would
// cost too much, and the model then gets fewer data (docs/operations.md).
constexpr std::size_t kFewContainers = 16;

// Interval of retries for inotify watches that could not be created.
constexpr std::chrono::seconds kWatchAgain{60};

// Descriptors that are reserved for the fast path, the history and clients. If the limit is low, an
// eighth of it.
constexpr unsigned kSpareForOthers = 256;

struct Settling {
  TreeChange::Appeared cgroup;
  MonotonicTime since;
};

struct Tracked {
  CgroupId id;
  CgroupPath path;
  CgroupFiles files;
  UnitResets resets;
  int watch;        // in DirectoryWrites; -1: all files are read at every tick
  bool for_parent;  // represents the cgroup above it
  MonotonicTime since;
  bool own_processes;  // at first sight: it does not contain containers
  std::string quota;   // the owner whose quota it uses; empty: none
  bool detailed = true;  // its limits may be changed
  AncestorLimits ancestor_limits = {};
  std::optional<std::uint32_t> place = {};  // place in PullSession
  SampleFilter filter = {};
};
using TrackedList = std::vector<std::unique_ptr<Tracked>>;

CgroupId id_of(const std::unique_ptr<Tracked>& tracked) { return tracked->id; }

CgroupPath parent_of(const CgroupPath& path) { return path.substr(0, path.rfind('/')); }

// A container needs about twenty descriptors. The usual soft limit of 1024 is meant for programs
// that call select(), which this one does not.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::size_t descriptor_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

std::size_t containers_per_owner() {
  return std::clamp<std::size_t>(descriptor_limit() / 4 / kDescriptorsPerContainer, 1,
                                 kMaxContainersPerOwner);
}

bool is_spare(const Fd& fd) {
  const std::size_t spare = std::min<std::size_t>(kSpareForOthers, descriptor_limit() / 8);
  return is_among_last(fd, static_cast<unsigned>(spare));
}

// A cgroup that is not tracked, because inner cgroups represent it.
struct Represented {
  std::size_t by = 0;            // number of inner cgroups
  std::optional<CgroupId> id{};  // its own id, if it was found
};

// True if cgroup.events reports it as empty. A directory without that file is not waited for.
bool is_empty(int directory_fd) {
  const auto events = read_file_at(directory_fd, kernel_file_name(KernelFile::cgroup_events),
                                   kKernelTextBytes);
  return events && scan_cgroup_events(*events).populated == false;
}

}  // namespace

class NodeSampler::Impl {
 public:
  Impl(const Options& options, CgroupTree tree)
      : options_(options), tree_(std::move(tree)),
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
                        MonotonicTime now) const;
  bool has_quota(const CgroupPath& path) const;
  void track(const TreeChange::Appeared& cgroup, Recognised&& match, bool for_parent, Fd directory,
             NodeSample& tick);
  TrackedList::const_iterator find_path(const CgroupPath& path) const;
  void forget(TrackedList::iterator at, NodeSample& tick);
  void represent(const CgroupPath& parent, NodeSample& tick);
  void release_parent(const CgroupPath& parent, MonotonicTime now);
  void find_ancestor_limits(Tracked& tracked, NodeSample& tick);
  void give_places();
  void find_flushes();
  void flush();
  void walk(MonotonicTime now);
  void read_all(const Clock& clock, NodeSample& tick);
  void leave_out_impossible(NodeSample& tick);
  ReadPlan plan_for(const Tracked& tracked, const Pulled& pulled);
  void find_resets(NodeSample& tick);
  void watch_again(MonotonicTime now);
  Source kernel_files_source() const;

  std::span<char> buffer() const { return {buffer_.get(), kKernelTextBytes}; }

  Options options_;
  CgroupTree tree_;
  const std::unique_ptr<char[]> buffer_;  // untouched pages need no memory
  std::vector<Source> sources_;
  PullSession pull_;
  WriteWatch unit_writes_;
  DirectoryWrites writes_;  // writes to the directories of containers
  TrackedList tracked_;  // ascending id
  std::vector<Settling> settling_;  // checked again at each tick
  std::vector<Settling> waiting_;   // cannot be opened, or beyond a limit: checked at each sweep
  struct Empty {
    CgroupPath path;
    bool reported;  // its first process is reported; else it is checked at each sweep
  };
  std::map<CgroupId, Empty> empty_;                // cgroups without a process yet
  std::map<std::string, std::size_t> tracked_of_;  // number of containers by owner
  std::map<CgroupPath, Represented> represented_;
  AncestorLimitsReader ancestor_limits_;
  TreeChange change_;  // kept for its capacity
  std::vector<Fd> flushes_;  // files whose read flushes the statistics of many cgroups
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
    read_host();
    sources_ = find_sources(tree_.root_fd(), options_.proc_root);
    std::ranges::move(std::exchange(waiting_, {}), std::back_inserter(settling_));
    for (const auto& tracked : tracked_) find_ancestor_limits(*tracked, tick);
  }
  for (const CgroupId id : change_.vanished) {
    const auto at = std::ranges::lower_bound(tracked_, id, {}, id_of);
    if (at != tracked_.end() && (*at)->id == id) forget(at, tick);
    empty_.erase(id);
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
  const CgroupPath around = container_around(path);
  return around.empty() || (around == parent_of(path) && (match.inside_scope || match.in_pod));
}

NodeSampler::Impl::Represents NodeSampler::Impl::represents(const Settling& settling,
                                                            const Recognised& match,
                                                            int directory_fd,
                                                            MonotonicTime now) const {
  const CgroupPath& path = settling.cgroup.path;
  const auto outer = find_path(parent_of(path));
  const auto is_young = [&](MonotonicTime since) {
    return since != *start_time_ && now - since < kSetUpGrace;
  };
  const bool young = outer != tracked_.end() && is_young((*outer)->since);
  if (outer != tracked_.end() && (*outer)->own_processes && !young) return Represents::no;
  if (represents_parent(path, match, directory_fd, options_.engine_root)) return Represents::yes;
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
  std::optional<Recognised> match = recognise_path(cgroup.path, options_.include);
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
  if (directory && is_spare(*directory))
    directory = failure(ErrorKind::io, "too few descriptors are left");
  if (!directory) {
    const ErrorKind kind = directory.error().kind;
    if (kind != ErrorKind::gone && kind != ErrorKind::not_found) waiting_.push_back(settling);
    return;
  }
  // An empty cgroup of a user, or in a container, is not a container yet.
  const bool owned = tree_.owner_of(cgroup.path) != nullptr;
  const bool reported = owned && tree_.listen(cgroup.path, directory->get(), true);
  // A cgroup that existed at the start is set up.
  const bool recent = since != *start_time_ && tick.time - since < kSetUpGrace;
  if ((owned || recent) && is_empty(directory->get())) {
    if (owned)
      empty_.emplace(cgroup.id, Empty{cgroup.path, reported});
    else settling_.push_back(settling);
    return;
  }
  if (reported) tree_.listen(cgroup.path, directory->get(), false);
  const Represents represented = represents(settling, *match, directory->get(), tick.time);
  if (represented == Represents::not_yet) return settling_.push_back(settling);
  const bool below = is_engine_container(parent_of(cgroup.path));
  if (represented == Represents::no && (match->inside_scope || (match->in_pod && below))) return;
  track(cgroup, std::move(*match), represented == Represents::yes, std::move(*directory), tick);
}

TrackedList::const_iterator NodeSampler::Impl::find_path(const CgroupPath& path) const {
  return std::ranges::find(tracked_, path, [](const auto& one) -> auto& { return one->path; });
}

void NodeSampler::Impl::track(const TreeChange::Appeared& cgroup, Recognised&& match,
                              bool for_parent, Fd directory, NodeSample& tick) {
  if (for_parent) represent(parent_of(cgroup.path), tick);
  tick.appeared.push_back(
      describe_container(cgroup.id, cgroup.path, std::move(match), for_parent, directory.get(),
                         options_.engine_root));
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
  if ((*at)->for_parent) release_parent(parent_of((*at)->path), tick.time);
  if (const auto quota = tracked_of_.find((*at)->quota);
      quota != tracked_of_.end() && --quota->second == 0)
    tracked_of_.erase(quota);
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

// Reading one file of a parent flushes the statistics of all cgroups below it. A walk reads all of
// them, so that it flushes at the top. With files it pays only for many siblings.
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
  // The text is not used, nor is the result.
  for (const Fd& fd : flushes_)
    [[maybe_unused]] const ssize_t count = ::pread(fd.get(), buffer_.get(), kKernelTextBytes, 0);
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
  flush();
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

// Reports truncated kernel files and impossible samples.
Source NodeSampler::Impl::kernel_files_source() const {
  std::size_t cut = 0;
  std::string detail;
  for (const auto& tracked : tracked_) {
    const auto file = tracked->files.cut_file();
    if (!file || cut++ > 0) continue;
    detail = escape_name(tracked->path) + "/" + kernel_file_name(*file);
  }
  if (cut > 0)
    detail = "a file was truncated in " + std::to_string(cut) + " cgroups, first " + detail +
             "; complete lines are used, and it is read again at each tick";
  if (impossible_samples_ > 0)
    detail += (detail.empty() ? "" : "; ") + std::to_string(impossible_samples_) +
              " samples were impossible (more than the host has, or a counter that jumped) and "
              "do not count";
  return {"kernel files", cut == 0, detail};
}

std::vector<Source> NodeSampler::Impl::sources() const {
  std::vector<Source> sources = sources_;
  sources.push_back(inotify_source(tree_, unit_writes_));
  sources.push_back(pull_.source());
  sources.push_back(cgroups_source(tree_, waiting_.size()));
  const bool starved = std::ranges::any_of(
      tracked_, [](const auto& one) { return one->files.short_of_descriptors(); });
  sources.push_back({"descriptors", !starved,
                     starved ? "files could not be opened: raise the limit of open files "
                               "(LimitNOFILE=)" : ""});
  sources.push_back(kernel_files_source());
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
