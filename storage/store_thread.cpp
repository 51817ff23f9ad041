#include "storage/store_thread.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <thread>
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

// `from` is the later one.
void append_to(Batch& to, Batch& from) {
  append_to(to.containers, from.containers);
  append_to(to.points, from.points);
  append_to(to.decisions, from.decisions);
  append_to(to.outcomes, from.outcomes);
  if (from.time) to.time = from.time;
}

// Drops the oldest entries until `excess` are gone or none is left; how many went.
template <class Entry>
std::size_t drop_front(std::vector<Entry>& entries, std::size_t excess) {
  const std::size_t count = std::min(excess, entries.size());
  entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

}  // namespace

class StoreThread::Impl {
 public:
  Impl(Store store, const Options& options);

  void enqueue(Batch batch);
  bool query(std::function<void(Store&)> work, bool only_reads);
  bool take_name_request();
  Status flush_and_stop();
  Counts counts() const;
  std::optional<std::string> degraded() const;

 private:
  struct Query {
    std::function<void(Store&)> work;
    bool only_reads = false;
  };

  void run();
  bool write(Batch& batch, std::size_t& written);
  void drop_excess();
  void put_back(Batch& batch);
  std::string trouble() const;
  void note_losses();
  std::optional<Store> stand_in(const Batch& unwritten);
  void answer(const std::deque<Query>& queries, const Batch& unwritten);

  const Options options_;
  Store store_;  // the thread's own

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  Batch waiting_;
  bool fresh_ = false;  // a batch came since the last attempt
  std::size_t in_hand_ = 0;  // entries that failed and wait until the questions are answered
  std::deque<Query> queries_;
  bool stopping_ = false;
  Counts counts_;
  std::optional<std::string> degraded_;
  bool names_wanted_ = false;
  std::uint64_t store_dropped_ = 0;  // samples, by the store

  bool was_let_go_ = false;  // the thread's own
  std::mutex stop_mutex_;  // one caller of flush_and_stop at a time
  std::optional<Status> stopped_;
  Status last_status_;
  std::thread thread_;
};

// Without a thread it is as after flush_and_stop(), and says why.
StoreThread::Impl::Impl(Store store, const Options& options)
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

void StoreThread::Impl::drop_excess() {
  const auto excess = [this] {
    const std::size_t size = size_of(waiting_);
    return size > options_.queue_bound ? size - options_.queue_bound : 0;
  };
  counts_.dropped_points += drop_front(waiting_.points, excess());
  counts_.dropped_journal += drop_front(waiting_.decisions, excess());
  counts_.dropped_journal += drop_front(waiting_.outcomes, excess());
  counts_.dropped_journal += drop_front(waiting_.containers, excess());
}

void StoreThread::Impl::enqueue(Batch batch) {
  const std::lock_guard lock(mutex_);
  if (stopping_) {
    counts_.dropped_points += batch.points.size();
    counts_.dropped_journal += journal_size(batch);
    return;
  }
  append_to(waiting_, batch);
  drop_excess();
  fresh_ = true;
  wake_.notify_one();
}

bool StoreThread::Impl::query(std::function<void(Store&)> work, bool only_reads) {
  const std::lock_guard lock(mutex_);
  if (stopping_ || queries_.size() >= options_.query_bound) {
    ++counts_.refused_queries;
    return false;
  }
  queries_.push_back({std::move(work), only_reads});
  wake_.notify_one();
  return true;
}

// Containers first: the rest refers to them. False when something is left in `batch`.
bool StoreThread::Impl::write(Batch& batch, std::size_t& written) {
  std::size_t named = 0;
  for (const StoredContainer& next : batch.containers) {
    last_status_ = store_.add_container(next.container, next.first_seen);
    if (!last_status_) break;
    ++named;
  }
  written += drop_front(batch.containers, named);
  if (!batch.containers.empty()) return false;
  const std::size_t size = size_of(batch);
  if (size == 0 && !batch.time) return true;
  last_status_ = store_.append(batch.points, batch.decisions, batch.outcomes, batch.time);
  if (!last_status_) return false;
  written += size;
  batch = {};
  return true;
}

// What failed is older than what came meanwhile.
void StoreThread::Impl::put_back(Batch& batch) {
  append_to(batch, waiting_);
  waiting_ = std::move(batch);
  drop_excess();
}

// Why the last write failed, for people.
std::string StoreThread::Impl::trouble() const {
  std::string text = last_status_.error().text;
  if (store_.let_go()) text += "; until it is back only what waits in memory can be read";
  return text;
}

void StoreThread::Impl::note_losses() {
  const bool let_go = store_.let_go();
  const std::string quarantined = store_.quarantined().value_or("");
  if ((let_go && !was_let_go_) || quarantined != counts_.quarantined) names_wanted_ = true;
  was_let_go_ = let_go;
  counts_.quarantined = quarantined;
  counts_.damaged = store_.damaged_count();
  store_dropped_ = store_.dropped_samples();
}

// Absent where the file can be read, or there is no memory for it.
std::optional<Store> StoreThread::Impl::stand_in(const Batch& unwritten) {
  const Status readable = store_.open_again();
  if (readable || !store_.let_go()) return std::nullopt;
  Result<Store> made = store_.stand_in(readable.error().text);
  if (!made) return std::nullopt;
  for (const StoredContainer& next : unwritten.containers)
    static_cast<void>(made->add_container(next.container, next.first_seen));
  static_cast<void>(made->append(unwritten.points, unwritten.decisions, unwritten.outcomes));
  return *std::move(made);
}

void StoreThread::Impl::answer(const std::deque<Query>& queries, const Batch& unwritten) {
  std::optional<Store> instead;
  if (std::ranges::any_of(queries, &Query::only_reads)) instead = stand_in(unwritten);
  for (const Query& query : queries) query.work(query.only_reads && instead ? *instead : store_);
}

void StoreThread::Impl::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || fresh_ || !queries_.empty(); });
    const bool last_round = stopping_;
    Batch batch = std::exchange(waiting_, {});
    std::deque<Query> queries;
    queries.swap(queries_);
    fresh_ = false;
    lock.unlock();

    std::size_t written = 0;
    const bool whole = write(batch, written);
    if (last_round && whole) last_status_ = store_.flush();

    lock.lock();
    counts_.written += written;
    degraded_ = last_status_ ? store_.held_back() : std::optional(trouble());
    note_losses();
    in_hand_ = size_of(batch);
    lock.unlock();

    answer(queries, batch);
    queries.clear();
    lock.lock();
    note_losses();
    in_hand_ = 0;
    if (!whole) put_back(batch);
    // enqueue() and query() take nothing more once stopping_ is set, so this was all.
    if (last_round) return;
  }
}

Status StoreThread::Impl::flush_and_stop() {
  const std::lock_guard stop_lock(stop_mutex_);
  if (stopped_) return *stopped_;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    wake_.notify_one();
  }
  thread_.join();
  const std::lock_guard lock(mutex_);
  stopped_ = last_status_;
  if (const std::size_t lost = size_of(waiting_); lost != 0 && !*stopped_)
    stopped_ =
        failure(last_status_.error().kind, last_status_.error().text + "; " + std::to_string(lost) +
                                               " entries were not written");
  return *stopped_;
}

bool StoreThread::Impl::take_name_request() {
  const std::lock_guard lock(mutex_);
  return std::exchange(names_wanted_, false);
}

StoreThread::Counts StoreThread::Impl::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.queued = size_of(waiting_) + in_hand_;
  counts.dropped_points += store_dropped_;
  return counts;
}

std::optional<std::string> StoreThread::Impl::degraded() const {
  const std::lock_guard lock(mutex_);
  return degraded_;
}

StoreThread::StoreThread(Store store, const Options& options)
    : impl_(std::make_unique<Impl>(std::move(store), options)) {}

StoreThread::~StoreThread() { static_cast<void>(flush_and_stop()); }

void StoreThread::enqueue(Batch batch) { impl_->enqueue(std::move(batch)); }

bool StoreThread::query(std::function<void(Store&)> work) {
  return impl_->query(std::move(work), false);
}

bool StoreThread::ask(std::function<void(Store&)> question) {
  return impl_->query(std::move(question), true);
}

bool StoreThread::take_name_request() { return impl_->take_name_request(); }

Status StoreThread::flush_and_stop() { return impl_->flush_and_stop(); }

StoreThread::Counts StoreThread::counts() const { return impl_->counts(); }

std::optional<std::string> StoreThread::degraded() const { return impl_->degraded(); }

}  // namespace cgphase
