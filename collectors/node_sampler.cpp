#include "collectors/node_sampler.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "base/text.h"
#include "collectors/cgroup_files.h"
#include "collectors/cgroup_tree.h"
#include "collectors/containers/engine_files.h"
#include "collectors/containers/recognise.h"
#include "collectors/host_facts.h"

namespace cgphase {
namespace {

// Without inotify the walk is all there is.
constexpr std::chrono::seconds kBlindSweep{5};

struct Tracked {
  CgroupId id;
  CgroupPath path;
  CgroupFiles files;
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

ContainerInfo describe(const TreeChange::Appeared& cgroup, Recognised&& who, int directory_fd,
                       const std::string& engine_root) {
  ContainerInfo container;
  container.id = cgroup.id;
  container.path = cgroup.path;
  container.engine = who.engine;
  container.engine_id = std::move(who.engine_id);
  container.name = std::move(who.name);
  container.hands_off = std::move(who.hands_off);
  container.systemd_unit = is_systemd_unit(cgroup.path);
  read_engine_files(engine_root, container);
  if (container.engine == Engine::cgroup) read_attributes(directory_fd, container);
  return container;
}

}  // namespace

class NodeSampler::Impl {
 public:
  Impl(const Options& options, CgroupTree tree)
      : options_(options), tree_(std::move(tree)), buffer_(kKernelTextBytes),
        sources_(find_sources(tree_.root_fd(), options.proc_root)) {}

  int event_fd() const { return tree_.event_fd(); }
  const Tracked* find(CgroupId id) const;
  std::vector<Source> sources() const;

  void sample(const Clock& clock, NodeSample& tick) {
    tick.time = clock.monotonic_now();
    tick.wall_time = clock.wall_now();
    tick.appeared.clear();
    tick.vanished.clear();
    follow_tree(tick.time, tick);
    tick.host = host_;
    read_all(tick);
  }

 private:
  void follow_tree(MonotonicTime now, NodeSample& tick);
  void appear(const TreeChange::Appeared& cgroup, NodeSample& tick);
  void forget(TrackedList::iterator at, NodeSample& tick);
  void read_all(NodeSample& tick);

  Options options_;
  CgroupTree tree_;
  std::vector<char> buffer_;
  std::vector<Source> sources_;
  TrackedList tracked_;  // ascending id
  // Containers that could not be opened, or are beyond the bound: tried again at each sweep.
  std::vector<TreeChange::Appeared> waiting_;
  TreeChange change_;  // kept for its capacity
  std::optional<MonotonicTime> sweep_time_;
  HostCapacity host_;
};

const Tracked* NodeSampler::Impl::find(CgroupId id) const {
  const auto at = std::ranges::lower_bound(tracked_, id, {}, id_of);
  return at != tracked_.end() && (*at)->id == id ? at->get() : nullptr;
}

void NodeSampler::Impl::follow_tree(MonotonicTime now, NodeSample& tick) {
  change_.appeared.clear();
  change_.vanished.clear();
  const bool events_lost = tree_.drain(change_);
  const auto period = tree_.event_fd() < 0 ? std::min<std::chrono::seconds>(options_.sweep, kBlindSweep)
                                           : options_.sweep;
  if (events_lost || !sweep_time_ || now < *sweep_time_ || now - *sweep_time_ >= period) {
    sweep_time_ = now;
    tree_.sweep(change_);
    host_ = read_host_capacity(options_.proc_root);
    for (const auto& cgroup : std::exchange(waiting_, {})) appear(cgroup, tick);
  }
  for (const CgroupId id : change_.vanished) {
    const auto at = std::ranges::lower_bound(tracked_, id, {}, id_of);
    if (at != tracked_.end() && (*at)->id == id) forget(at, tick);
  }
  for (const auto& cgroup : change_.appeared) appear(cgroup, tick);
}

void NodeSampler::Impl::appear(const TreeChange::Appeared& cgroup, NodeSample& tick) {
  std::optional<Recognised> who = recognise_path(cgroup.path, options_.include);
  if (!who) return;
  if (tracked_.size() >= kMaxContainers) return waiting_.push_back(cgroup);
  Result<Fd> directory = tree_.open_directory(cgroup.path, cgroup.id);
  if (!directory) {
    const ErrorKind kind = directory.error().kind;
    if (kind != ErrorKind::gone && kind != ErrorKind::not_found) waiting_.push_back(cgroup);
    return;
  }
  if (who->inside_scope) {
    const auto scope = std::ranges::find(tracked_, parent_of(cgroup.path),
                                         [](const auto& one) -> auto& { return one->path; });
    if (scope != tracked_.end()) forget(scope, tick);
  }
  tick.appeared.push_back(
      describe(cgroup, std::move(*who), directory->get(), options_.engine_root));
  tracked_.insert(std::ranges::lower_bound(tracked_, cgroup.id, {}, id_of),
                  std::make_unique<Tracked>(cgroup.id, cgroup.path,
                                            CgroupFiles(std::move(*directory))));
}

// A container that came within this tick was not told of yet and need not be.
void NodeSampler::Impl::forget(TrackedList::iterator at, NodeSample& tick) {
  const CgroupId id = (*at)->id;
  tracked_.erase(at);
  if (std::erase_if(tick.appeared, [&](const auto& one) { return one.id == id; }) == 0)
    tick.vanished.push_back(id);
}

void NodeSampler::Impl::read_all(NodeSample& tick) {
  tick.containers.resize(tracked_.size());
  std::size_t count = 0;
  for (std::size_t i = 0; i < tracked_.size();) {
    Sample& sample = tick.containers[count];
    if (!tracked_[i]->files.read(tick.time, sample, buffer_)) {
      forget(tracked_.begin() + static_cast<std::ptrdiff_t>(i), tick);
      continue;
    }
    sample.id = tracked_[i]->id;
    ++count;
    ++i;
  }
  tick.containers.resize(count);
}

std::vector<Source> NodeSampler::Impl::sources() const {
  std::vector<Source> sources = sources_;
  const bool watching = tree_.event_fd() >= 0 && tree_.unwatched() == 0;
  sources.push_back({"inotify", watching,
                     watching ? "" : "cgroups are found by a walk only: raise "
                                     "fs.inotify.max_user_watches and max_user_instances"});
  const std::size_t beyond = tree_.beyond_depth() + tree_.beyond_count() + waiting_.size();
  const bool complete = beyond == 0 && tree_.unreadable() == 0;
  sources.push_back({"all cgroups", complete,
                     complete ? "" : std::to_string(beyond) + " beyond the bounds on depth, count "
                                     "or descriptors, " + std::to_string(tree_.unreadable()) +
                                     " not to be opened"});
  const bool starved = std::ranges::any_of(
      tracked_, [](const auto& one) { return one->files.short_of_descriptors(); });
  sources.push_back({"descriptors", !starved,
                     starved ? "files could not be opened: raise the limit of open files "
                               "(LimitNOFILE=)" : ""});
  return sources;
}

Result<NodeSampler> NodeSampler::open(const Options& options) {
  raise_descriptor_limit();
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

std::vector<Source> NodeSampler::sources() const { return impl_->sources(); }

Result<Fd> NodeSampler::duplicate_directory(CgroupId id) const {
  const Tracked* tracked = impl_->find(id);
  if (!tracked) return failure(ErrorKind::gone, "this container is not tracked any more");
  const int fd = ::fcntl(tracked->files.directory_fd(), F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return errno_failure("cgroup " + escape_name(tracked->path), errno);
  return Fd(fd);
}

}  // namespace cgphase
