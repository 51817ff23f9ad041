#include "storage/store_thread.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/thread.h"

namespace cgphase {
namespace {

using Batch = StoreThread::Batch;

std::size_t journal_size(const Batch& batch) {
  return batch.containers.size() + batch.decisions.size() + batch.outcomes.size();
}

std::size_t size_of(const Batch& batch) { return journal_size(batch) + batch.points.size(); }

template <class Entry>
void append_to(std::vector<Entry>& to, std::vector<Entry>& from) {
  if (to.empty())
    to.swap(from);
  else
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

// `from` is the later batch.
void append_to(Batch& to, Batch& from) {
  append_to(to.containers, from.containers);
  append_to(to.points, from.points);
  append_to(to.decisions, from.decisions);
  append_to(to.outcomes, from.outcomes);
  if (from.time) to.time = from.time;
}

// Drops up to `count` of the oldest entries; returns the number of dropped entries.
template <class Entry>
std::size_t drop_front(std::vector<Entry>& entries, std::size_t count) {
  count = std::min(count, entries.size());
  entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

}  // namespace

StoreThread::StoreThread(Store store, const Options& options)
    : options_(options), store_(std::move(store)) {
  counts_.quarantined = store_.quarantined().value_or("");
  Result<std::thread> thread = start_thread("cgphase-store", [this] { run(); });
  if (thread) {
    thread_ = std::move(*thread);
    return;
  }
  stopping_ = true;
  degraded_ = thread.error().text;
  stopped_ = std::unexpected(thread.error());
}

StoreThread::~StoreThread() { static_cast<void>(flush_and_stop()); }

void StoreThread::drop_excess() {
  const auto excess = [this] {
    const std::size_t size = size_of(backlog_);
    return size > options_.queue_bound ? size - options_.queue_bound : 0;
  };
  counts_.dropped_points += drop_front(backlog_.points, excess());
  counts_.dropped_journal += drop_front(backlog_.decisions, excess());
  counts_.dropped_journal += drop_front(backlog_.outcomes, excess());
  counts_.dropped_journal += drop_front(backlog_.containers, excess());
}

void StoreThread::enqueue(Batch batch) {
  const std::lock_guard lock(mutex_);
  if (stopping_) {
    counts_.dropped_points += batch.points.size();
    counts_.dropped_journal += journal_size(batch);
    return;
  }
  append_to(backlog_, batch);
  drop_excess();
  fresh_ = true;
  wake_.notify_one();
}

bool StoreThread::query(std::function<void(Store&)> work) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || queries_.size() >= options_.query_bound) {
    ++counts_.refused_queries;
    return false;
  }
  queries_.push_back(std::move(work));
  wake_.notify_one();
  return true;
}

// Containers first, because the other entries refer to them. Unwritten entries stay in `batch`.
void StoreThread::write(Batch& batch) {
  std::size_t named = 0;
  for (const StoredContainer& next : batch.containers) {
    last_status_ = store_.add_container(next.container, next.first_seen);
    if (!last_status_) break;
    ++named;
  }
  drop_front(batch.containers, named);
  if (!batch.containers.empty() || (size_of(batch) == 0 && !batch.time)) return;
  last_status_ = store_.append(batch.points, batch.decisions, batch.outcomes, batch.time);
  if (last_status_) batch = {};
}

// With the mutex locked.
void StoreThread::publish() {
  degraded_ = store_.degraded();
  if (!last_status_)
    degraded_ = last_status_.error().text + (store_.detached() ? "; retrying with each batch" : "");
  if (std::exchange(reopen_count_, store_.reopen_count()) != reopen_count_) names_wanted_ = true;
  counts_.quarantined = store_.quarantined().value_or("");
  counts_.damaged = store_.damaged_count();
  store_dropped_ = store_.dropped_samples();
}

void StoreThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || fresh_ || !queries_.empty(); });
    const bool last_round = stopping_;
    Batch batch = std::exchange(backlog_, {});
    std::deque<std::function<void(Store&)>> queries = std::exchange(queries_, {});
    fresh_ = false;
    lock.unlock();

    const std::size_t size = size_of(batch);
    write(batch);
    const std::size_t unwritten = size_of(batch);
    if (last_round && last_status_ && unwritten == 0) last_status_ = store_.flush();

    lock.lock();
    counts_.written += size - unwritten;
    append_to(batch, backlog_);
    backlog_ = std::move(batch);
    drop_excess();
    publish();
    lock.unlock();

    for (const std::function<void(Store&)>& query : queries) query(store_);
    queries.clear();
    lock.lock();
    publish();
    if (last_round) return;  // enqueue() and query() accept nothing once stopping_ is set
  }
}

Status StoreThread::flush_and_stop() {
  const std::lock_guard stop_lock(stop_mutex_);
  if (stopped_) return *stopped_;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_one();
  }
  thread_.join();
  stopped_ = last_status_;
  if (const std::size_t lost = size_of(backlog_); lost != 0 && !*stopped_)
    stopped_ = failure(last_status_.error().kind, last_status_.error().text + "; " +
                                                      std::to_string(lost) +
                                                      " entries were not written");
  return *stopped_;
}

bool StoreThread::drain_name_request() {
  const std::lock_guard lock(mutex_);
  return std::exchange(names_wanted_, false);
}

StoreThread::Counts StoreThread::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.queued = size_of(backlog_);
  counts.dropped_points += store_dropped_;
  return counts;
}

std::optional<std::string> StoreThread::degraded() const {
  const std::lock_guard lock(mutex_);
  return degraded_;
}

}  // namespace cgphase
