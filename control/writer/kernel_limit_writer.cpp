#include "control/writer/kernel_limit_writer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/check.h"
#include "base/thread.h"
#include "cgroupfs/cgroup_directory.h"
#include "control/lease/reclaim.h"
#include "control/lease/restore.h"

namespace cgphase {
namespace {

std::int64_t now_ns() { return SystemClock().monotonic_now().time_since_epoch().count(); }

LimitResult refusal(const LimitChange& change, ErrorKind kind, std::string text) {
  LimitResult result;
  result.decision_id = change.decision_id;
  result.id = change.id;
  result.in_force = change.old_limits;
  result.error = std::move(text);
  result.failed_as = kind;
  return result;
}

}  // namespace

KernelLimitWriter::KernelLimitWriter(const Options& options)
    : options_(options), leases_(*options.leases) {}

Result<std::unique_ptr<KernelLimitWriter>> KernelLimitWriter::create(const Options& options) {
  CHECK_INVARIANT(options.leases != nullptr && options.leases->owned());
  const auto root = open_path(options.cgroup_root, O_RDONLY | O_DIRECTORY);
  if (!root) return std::unexpected(root.error());
  if (!is_cgroup2(root->get()) && !options.allow_plain_directory)
    return failure(ErrorKind::unsupported,
                   options.cgroup_root + ": not a cgroup v2 mount; set the cgroup root to one");
  std::unique_ptr<KernelLimitWriter> writer(new KernelLimitWriter(options));
  writer->result_event_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!writer->result_event_.valid()) return errno_failure("eventfd", errno);
  if (options.fast_path != nullptr)
    options.fast_path->on_memory_raise(
        [raw = writer.get()](CgroupId id) { raw->interrupt_lowering(id); });
  if (const Status started = writer->start(); !started) return std::unexpected(started.error());
  return writer;
}

Status KernelLimitWriter::start() {
  Result<std::thread> lowering = start_thread("cgphase-lower", [this] { run_lowering(); });
  if (!lowering) return std::unexpected(lowering.error());
  lowering_.thread = std::move(*lowering);
  Result<std::thread> raising = start_thread("cgphase-raise", [this] { run_raising(); });
  if (!raising) return std::unexpected(raising.error());
  raising_.thread = std::move(*raising);
  return {};
}

KernelLimitWriter::~KernelLimitWriter() {
  if (options_.fast_path != nullptr) {
    options_.fast_path->stop();
    options_.fast_path->on_memory_raise(nullptr);
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (being_lowered_) interrupt_lowering(*being_lowered_);
  }
  lowering_.ready.notify_all();
  raising_.ready.notify_all();
  if (lowering_.thread.joinable()) lowering_.thread.join();
  if (raising_.thread.joinable()) raising_.thread.join();
}

Status KernelLimitWriter::attach(CgroupId id, const CgroupPath& path, Fd directory) {
  if (const auto found = identify(directory.get()); !found || *found != id)
    return failure(ErrorKind::gone, "the directory belongs to another cgroup");
  if (!options_.allow_plain_directory && !is_cgroup2(directory.get()))
    return failure(ErrorKind::unsupported, "the directory is not on cgroup v2");
  auto cgroup = std::make_shared<TrackedCgroup>();
  cgroup->id = id;
  cgroup->path = path;
  cgroup->directory = std::move(directory);
  const std::lock_guard lock(mutex_);
  tracked_[id] = std::move(cgroup);
  return {};
}

void KernelLimitWriter::detach(CgroupId id) {
  const Tracked cgroup = find(id);
  if (!cgroup) return;
  overtake(*cgroup, false);
  settle_leases(tools(false), *cgroup);
  if (options_.fast_path != nullptr && !directory_alive(cgroup->directory.get()))
    options_.fast_path->drop(id);
  const std::lock_guard lock(mutex_);
  tracked_.erase(id);
}

void KernelLimitWriter::settle_thawed() {
  const std::uint64_t deadlines = leases_.deadlines();
  if (deadlines == settled_deadlines_) return;
  bool any = false;
  for (const Tracked& cgroup : all_tracked()) {
    if (!leases_.find(cgroup->id, Knob::cgroup_freeze)) continue;
    settle_leases(tools(false), *cgroup);
    any = any || leases_.find(cgroup->id, Knob::cgroup_freeze);
  }
  if (!any) settled_deadlines_ = deadlines;
}

KernelLimitWriter::Tracked KernelLimitWriter::find(CgroupId id) const {
  const std::lock_guard lock(mutex_);
  const auto found = tracked_.find(id);
  return found == tracked_.end() ? nullptr : found->second;
}

std::vector<KernelLimitWriter::Tracked> KernelLimitWriter::all_tracked() const {
  const std::lock_guard lock(mutex_);
  std::vector<Tracked> all;
  for (const auto& [id, cgroup] : tracked_) all.push_back(cgroup);
  return all;
}

// Voids every lowering of this container that was submitted before now.
void KernelLimitWriter::overtake(TrackedCgroup& cgroup, bool by_restore) {
  if (by_restore) {
    const std::lock_guard lock(cgroup.mutex);
    cgroup.epoch.fetch_add(1);  // before a lowering that starts now clears these
    for (const Knob knob : kKnobs)
      if (const auto record = leases_.find(cgroup.id, knob))
        if (const auto values = leases_.read_values(*record, cgroup.id, knob))
          cgroup.raised_to[static_cast<std::size_t>(knob)] = values->original;
  }
  cgroup.epoch.fetch_add(1);
  interrupt_lowering(cgroup.id);
}

void KernelLimitWriter::submit(LimitChange change) {
  const Tracked cgroup = find(change.id);
  if (!cgroup) return deliver(refusal(change, ErrorKind::gone, "this container is not attached"));
  if (change.raise) overtake(*cgroup, false);
  Work work{cgroup, std::move(change), std::nullopt, cgroup->epoch.load()};
  enqueue(work.change.raise ? raising_ : lowering_, std::move(work));
}

void KernelLimitWriter::submit_reclaim(CgroupId id, Bytes bytes) {
  LimitChange change;
  change.id = id;
  const Tracked cgroup = find(id);
  if (!cgroup) return deliver(refusal(change, ErrorKind::gone, "this container is not attached"));
  enqueue(lowering_, {cgroup, change, bytes, cgroup->epoch.load()});
}

// Limits go before reclaims, which may take long. A container has one reclaim at a time. All work
// gets a result, also what has no place.
void KernelLimitWriter::enqueue(WorkQueue& queue, Work work) {
  const auto is_reclaim = [](const Work& one) { return one.reclaim.has_value(); };
  std::optional<Work> no_place;
  {
    const std::lock_guard lock(mutex_);
    auto& waiting = queue.waiting;
    const auto reclaims = std::ranges::find_if(waiting, is_reclaim);
    const bool again = work.reclaim && std::any_of(reclaims, waiting.end(), [&](const Work& one) {
      return one.cgroup == work.cgroup;
    });
    const bool full = waiting.size() >= kQueuedChanges;
    if (again || (full && (work.reclaim || reclaims == waiting.end()))) {
      no_place = std::move(work);
    } else {
      waiting.insert(work.reclaim ? waiting.end() : reclaims, std::move(work));
      if (full) {
        no_place = std::move(waiting.back());
        waiting.pop_back();
      }
      queue.ready.notify_one();
    }
  }
  if (no_place)
    deliver(refusal(no_place->change, ErrorKind::io,
                    "too many changes or an earlier reclaim are waiting; retry later"));
}

void KernelLimitWriter::deliver(LimitResult result) {
  {
    const std::lock_guard lock(mutex_);
    results_.push_back(std::move(result));
  }
  ::eventfd_write(result_event_.get(), 1);
}

std::vector<LimitResult> KernelLimitWriter::drain_results() {
  eventfd_t count = 0;
  ::eventfd_read(result_event_.get(), &count);
  const std::lock_guard lock(mutex_);
  return std::exchange(results_, {});
}

ChangeTools KernelLimitWriter::tools(bool lowering_thread) {
  const auto lowering_elsewhere = [this, lowering_thread](CgroupId id) {
    const std::lock_guard lock(mutex_);
    return !lowering_thread && being_lowered_ == id;
  };
  return {leases_,
          options_.fast_path,
          options_.cgroup_root,
          lowering_elsewhere,
          [this, lowering_thread] { return lowering_thread && now_ns() >= deadline_ns_.load(); }};
}

std::optional<KernelLimitWriter::Work> KernelLimitWriter::next(WorkQueue& queue) {
  std::unique_lock lock(mutex_);
  queue.ready.wait(lock, [&] { return stopping_ || !queue.waiting.empty(); });
  if (stopping_) return std::nullopt;
  Work work = std::move(queue.waiting.front());
  queue.waiting.pop_front();
  if (&queue == &lowering_) being_lowered_ = work.cgroup->id;
  return work;
}

void KernelLimitWriter::run_raising() {
  const ChangeTools with = tools(false);
  while (const auto work = next(raising_)) {
    const std::lock_guard turn(raise_or_restore_);
    deliver(carry_out(*work, with));  // a restore that runs next sees the result
  }
}

void KernelLimitWriter::run_lowering() {
  WriteDeadline deadline;
  deadline_.store(&deadline);
  while (const auto work = next(lowering_)) lower(*work, deadline);
  deadline_.store(nullptr);
}

void KernelLimitWriter::lower(const Work& work, WriteDeadline& deadline) {
  const auto allowed = work.reclaim ? options_.reclaim_deadline : options_.lowering_deadline;
  deadline_ns_.store(now_ns() + std::chrono::nanoseconds(allowed).count());
  deadline.arm(allowed);
  lowering_inode_.store(work.cgroup->id.inode);
  LimitResult result = carry_out(work, tools(true));
  lowering_inode_.store(0);
  deadline.disarm();
  {
    const std::lock_guard lock(mutex_);
    being_lowered_.reset();
    results_.push_back(std::move(result));  // a caller that waits for the end sees the result
  }
  lowering_ended_.notify_all();
  ::eventfd_write(result_event_.get(), 1);
}

LimitResult KernelLimitWriter::carry_out(const Work& work, const ChangeTools& with) {
  const std::int64_t start = now_ns();
  LimitResult result;
  if (work.reclaim) {
    result.id = work.cgroup->id;
    const int directory = work.cgroup->directory.get();
    const bool overtaken = work.epoch != work.cgroup->epoch.load();
    const Status reclaimed = overtaken
                                 ? failure(ErrorKind::invalid, "a raise or a restore came first")
                                 : reclaim_memory(directory, *work.reclaim, with.expired);
    result.written = reclaimed.has_value();
    if (!reclaimed) result.error = reclaimed.error().text;
    if (!reclaimed) result.failed_as = reclaimed.error().kind;
    if (const auto limits = read_limits(directory)) result.in_force = *limits;
  } else {
    result = ChangeRun(with, *work.cgroup, work.change, work.epoch).run();
  }
  result.took = std::chrono::microseconds((now_ns() - start) / 1000);
  return result;
}

void KernelLimitWriter::interrupt_lowering(CgroupId id) {
  if (lowering_inode_.load() != id.inode) return;
  deadline_ns_.store(0);
  if (WriteDeadline* deadline = deadline_.load()) deadline->expire_now();
}

void KernelLimitWriter::acknowledge_revocation() {
  leases_.acknowledge_revocation();
  for (const Tracked& cgroup : all_tracked()) settle_leases(tools(false), *cgroup);
}

Limits KernelLimitWriter::leased_originals(CgroupId id) const {
  Limits originals;
  for (const Knob knob : kKnobs) {
    const auto record = leases_.find(id, knob);
    const auto values = record ? leases_.read_values(*record, id, knob) : std::nullopt;
    if (values) (void)parse_knob(knob, values->original.view(), originals);
  }
  return originals;
}

std::vector<Knob> KernelLimitWriter::not_original(CgroupId id) const {
  std::vector<Knob> found;
  const Tracked cgroup = find(id);
  for (const Knob knob : kKnobs) {
    const auto record = leases_.find(id, knob);
    const auto values = record ? leases_.read_values(*record, id, knob) : std::nullopt;
    if (!values) continue;
    const auto now = cgroup ? read_knob(cgroup->directory.get(), knob)
                            : failure(ErrorKind::gone, "this container is not attached");
    if (!now || !same_value(knob, *now, values->original)) found.push_back(knob);
  }
  return found;
}

// False if the lowering still blocks in the kernel after the wait.
bool KernelLimitWriter::wait_for_lowering(std::optional<CgroupId> id) {
  std::unique_lock lock(mutex_);
  return lowering_ended_.wait_for(lock, options_.restore_wait,
                                  [&] { return !being_lowered_ || (id && being_lowered_ != id); });
}

RestoreReport KernelLimitWriter::restore_leased(std::optional<CgroupId> id) {
  // A lowering in progress is rolled back by its own thread as soon as its write returns. Its
  // leases stay until then.
  const bool quiet = wait_for_lowering(id);
  // A raise that is planned before a restore and written after it would leave our value without a
  // lease. Neither waits for reclaim, so the lock is short.
  const std::lock_guard turn(raise_or_restore_);
  // The leases are collected only now: a lowering that ended may have released records that other
  // leases use by now.
  RestoreReport report = restore_recorded(
      leases_, recorded_leases(leases_, id),
      [this](const Lease& lease) -> Result<Fd> {
        const Tracked cgroup = find(lease.id);
        if (!cgroup) return open_leased_directory(options_.cgroup_root, lease);
        const int copy = ::fcntl(cgroup->directory.get(), F_DUPFD_CLOEXEC, 0);
        if (copy < 0) return errno_failure("dup", errno);
        return Fd(copy);
      },
      {.release = quiet});
  if (!quiet) report.failures.push_back("a lowering still blocks in the kernel; retry later");
  return report;
}

LimitWriter::RestoreReport KernelLimitWriter::restore(CgroupId id) {
  if (const Tracked cgroup = find(id)) overtake(*cgroup, true);
  RestoreReport report = restore_leased(id);
  if (options_.fast_path != nullptr && report.failures.empty()) options_.fast_path->drop(id);
  return report;
}

LimitWriter::RestoreReport KernelLimitWriter::restore_all() {
  const std::vector<Tracked> all = all_tracked();
  for (const Tracked& cgroup : all) overtake(*cgroup, true);
  RestoreReport report = restore_leased(std::nullopt);
  if (options_.fast_path == nullptr || !report.failures.empty()) return report;
  for (const Tracked& cgroup : all) options_.fast_path->drop(cgroup->id);
  return report;
}

}  // namespace cgphase
