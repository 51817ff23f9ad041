#include "control/lease/lease_table.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <span>
#include <type_traits>

#include "base/check.h"
#include "base/crc32.h"

namespace cgphase {
namespace {

constexpr int kOpenAttempts = 3;
// A restorer owns the file only for moments. A daemon that starts meanwhile waits.
constexpr int kOwnAttempts = 150;
constexpr timespec kOwnPause = {0, 20'000'000};

// A T in shared memory, stored and loaded word by word. Another process may die during a store, or
// store during a load. The CRC inside T detects both.
template <class T>
class Shared {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(std::uint64_t) == 0);

 public:
  void store(const T& value) {
    std::array<std::uint64_t, kWords> words;
    std::memcpy(words.data(), &value, sizeof value);
    for (std::size_t i = 0; i < kWords; ++i) words_[i].store(words[i]);
  }
  T load() const {
    std::array<std::uint64_t, kWords> words;
    for (std::size_t i = 0; i < kWords; ++i) words[i] = words_[i].load();
    T value;
    std::memcpy(static_cast<void*>(&value), words.data(), sizeof value);
    return value;
  }

 private:
  static constexpr std::size_t kWords = sizeof(T) / sizeof(std::uint64_t);
  std::array<std::atomic<std::uint64_t>, kWords> words_;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct Identity {
  std::uint64_t device;
  std::uint64_t inode;
  std::uint32_t knob;
  std::uint32_t path_bytes;
  std::array<char, kLeasePathBytes + 1> path;
  std::uint32_t tenure;  // counts the claims of this record
  std::uint32_t crc;
};

enum class State : std::uint32_t { released = 1, leased = 2 };

struct ModelSlot {
  std::uint64_t sequence;
  std::int64_t deadline_ns;  // monotonic; 0: none
  KnobText original;
  std::array<KnobText, kModelValues> values;
  std::array<char, kLeaseReasonBytes + 1> reason;
  State state;
  std::uint32_t crc;
};

struct FastPathSlot {
  std::uint64_t sequence;
  std::array<KnobText, kGuardValues> values;
  std::uint32_t unused;
  std::uint32_t crc;
};

struct Record {
  Shared<Identity> identity;
  std::array<Shared<ModelSlot>, 2> model;
  std::array<Shared<FastPathSlot>, 2> fast_path;
};

struct Root {
  std::array<char, kLeaseRootBytes + 1> path;
  std::uint32_t path_bytes;
  std::uint32_t crc;
};

static_assert(sizeof(Record) <= kLeaseRecordBytes);

// `crc` is the last field of each of these types.
template <class T>
std::uint32_t crc_of(const T& value, std::uint32_t seed) {
  return crc32c(std::string_view(reinterpret_cast<const char*>(&value), offsetof(T, crc)), seed);
}

template <class T>
struct Latest {
  std::optional<T> value;  // the newest complete slot
  int spare = 0;           // where the next store goes
  std::uint64_t next_sequence = 1;
};

template <class T>
Latest<T> latest(const std::array<Shared<T>, 2>& slots, std::uint32_t identity_crc) {
  Latest<T> result;
  for (int i = 0; i < 2; ++i) {
    const T slot = slots[static_cast<std::size_t>(i)].load();
    if (slot.crc != crc_of(slot, identity_crc)) continue;
    if (result.value && result.value->sequence > slot.sequence) continue;
    result.value = slot;
    result.spare = 1 - i;
    result.next_sequence = slot.sequence + 1;
  }
  return result;
}

template <class T>
void publish(std::array<Shared<T>, 2>& slots, const Latest<T>& place, T slot,
             std::uint32_t identity_crc) {
  slot.sequence = place.next_sequence;
  slot.crc = crc_of(slot, identity_crc);
  slots[static_cast<std::size_t>(place.spare)].store(slot);
}

bool whole(const Identity& identity) {
  return identity.crc == crc_of(identity, 0) && identity.path_bytes <= kLeasePathBytes &&
         identity.knob < static_cast<std::uint32_t>(kKnobCount);
}

bool belongs_to(const Identity& identity, CgroupId id, Knob knob) {
  return whole(identity) && identity.device == id.device && identity.inode == id.inode &&
         identity.knob == static_cast<std::uint32_t>(knob);
}

// Two parts of a record are not read at one instant. They match at the first attempt unless the
// owner is storing right now.
constexpr int kReadAttempts = 8;

constexpr int kScannedRecords = 64;  // read at once
// A restorer may run while memory is short. It reads used records through the mapping, as they are
// at that moment. Of all other records it reads a copy, which only shows that they are unused.
constexpr int kCopiedRecords = 8;

template <std::size_t N>
void push_front(std::array<KnobText, N>& values, const KnobText& text) {
  const auto same = std::find(values.begin(), values.end(), text);
  const auto end = same == values.end() ? values.end() - 1 : same;
  std::rotate(values.begin(), end, end + 1);
  values.front() = text;
}

bool alive(pid_t pid) { return pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM); }

// Returns false at once if the owner is a living process.
bool own_patiently(LeaseTable& table) {
  for (int attempt = 0; attempt < kOwnAttempts; ++attempt) {
    if (table.try_own()) return true;
    if (alive(table.owner_pid())) return false;
    ::nanosleep(&kOwnPause, nullptr);
  }
  return false;
}

// A cgphase-restore that owns the file does not store its pid in it.
std::string owner_of(pid_t pid) {
  return alive(pid) ? "another cgphased (process " + std::to_string(pid) + "); stop it first"
                    : "a running cgphase-restore; retry when it has finished";
}

bool same_file(int fd, const std::string& path) {
  struct stat opened, named;
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

LeaseValues values_of(const ModelSlot& model, const std::optional<FastPathSlot>& fast_path) {
  LeaseValues values;
  values.original = model.original;
  values.model = model.values;
  values.deadline = MonotonicTime(std::chrono::nanoseconds(model.deadline_ns));
  if (fast_path) values.fast_path = fast_path->values;
  return values;
}

std::optional<Lease> lease_in(const Record& place) {
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    const Identity identity = place.identity.load();
    if (!whole(identity)) return std::nullopt;
    const auto model = latest(place.model, identity.crc);
    const auto fast_path = latest(place.fast_path, identity.crc);
    if (!model.value && place.identity.load().crc != identity.crc) continue;
    if (!model.value || model.value->state != State::leased) return std::nullopt;
    Lease lease;
    lease.id = {identity.device, identity.inode};
    lease.path.assign(identity.path.data(), identity.path_bytes);
    lease.knob = static_cast<Knob>(identity.knob);
    lease.values = values_of(*model.value, fast_path.value);
    lease.reason.assign(model.value->reason.data());
    return lease;
  }
  return std::nullopt;
}

}  // namespace

struct LeaseTable::File {
  LeaseHeader header;
  alignas(64) std::atomic<std::uint64_t> heartbeat_ns;
  std::atomic<std::uint64_t> revocations;
  std::atomic<std::uint64_t> acknowledged;
  std::atomic<std::uint64_t> deadlines;
  std::atomic<std::int32_t> owner_pid;
  Shared<Root> cgroup_root;

  Record& record(int index) {
    CHECK_INVARIANT(index >= 0 && index < static_cast<int>(header.record_count));
    char* start = reinterpret_cast<char*>(this) + kLeaseHeaderBytes;
    return *reinterpret_cast<Record*>(start + static_cast<std::size_t>(index) * kLeaseRecordBytes);
  }
};

LeaseTable::LeaseTable(Fd fd, File* file, std::size_t bytes, std::string path)
    : fd_(std::move(fd)), file_(file), bytes_(bytes), path_(std::move(path)) {
  static_assert(sizeof(File) <= kLeaseHeaderBytes);
}

LeaseTable::~LeaseTable() { ::munmap(file_, bytes_); }

Result<std::unique_ptr<LeaseTable>> LeaseTable::map(Fd fd, std::string path) {
  const auto bytes = checked_lease_bytes(fd.get(), path);
  if (!bytes) return std::unexpected(bytes.error());
  void* start = ::mmap(nullptr, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (start == MAP_FAILED) return errno_failure(path, errno);
  return std::unique_ptr<LeaseTable>(
      new LeaseTable(std::move(fd), static_cast<File*>(start), *bytes, std::move(path)));
}

Result<std::unique_ptr<LeaseTable>> LeaseTable::open_existing(const Options& options) {
  const std::string path = options.runtime_dir + "/" + kLeaseFileName;
  auto boot_id = current_boot_id(options.boot_id);
  if (!boot_id) return std::unexpected(boot_id.error());
  auto fd = open_lease_file(path);
  if (!fd) return std::unexpected(fd.error());
  auto table = map(std::move(*fd), path);
  if (table && *boot_id != (*table)->file_->header.boot_id.data())
    return failure(ErrorKind::not_found, path + ": of an earlier boot; no limit is leased now");
  return table;
}

Result<std::unique_ptr<LeaseTable>> LeaseTable::open(const Options& options) {
  CHECK_INVARIANT(options.records > 0 && options.records <= kLargestLeaseCount);
  const std::string path = options.runtime_dir + "/" + kLeaseFileName;
  auto boot_id = current_boot_id(options.boot_id);
  if (!boot_id) return std::unexpected(boot_id.error());
  if (::mkdir(options.runtime_dir.c_str(), 0750) != 0 && errno != EEXIST)
    return errno_failure(options.runtime_dir, errno);
  for (int attempt = 0; attempt < kOpenAttempts; ++attempt) {
    auto fd = open_lease_file(path);
    if (!fd && fd.error().kind == ErrorKind::not_found) {
      if (Status made = create_lease_file(path, options.records, *boot_id, false); !made)
        return std::unexpected(made.error());
      continue;
    }
    if (!fd) return std::unexpected(fd.error());
    auto table = map(std::move(*fd), path);
    if (!table) return table;
    if (!own_patiently(**table))
      return failure(ErrorKind::io, path + ": in use by " + owner_of((*table)->owner_pid()));
    if (!same_file((*table)->fd_.get(), path)) continue;
    if (*boot_id == (*table)->file_->header.boot_id.data()) {
      (*table)->take_over();
      return table;
    }
    if (Status made = create_lease_file(path, options.records, *boot_id, true); !made)
      return std::unexpected(made.error());
  }
  return failure(ErrorKind::io, path + ": other processes keep replacing it; retry later");
}

bool LeaseTable::try_own() {
  if (!owned_) owned_ = ::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0;
  return owned_;
}

void LeaseTable::remove_unused() {
  CHECK_INVARIANT(owned_);
  if (leased_records().empty() && same_file(fd_.get(), path_)) ::unlink(path_.c_str());
}

pid_t LeaseTable::owner_pid() const { return file_->owner_pid.load(); }

std::optional<std::string> LeaseTable::cgroup_root() const {
  const Root root = file_->cgroup_root.load();
  if (root.crc != crc_of(root, 0) || root.path_bytes == 0 || root.path_bytes > kLeaseRootBytes)
    return std::nullopt;
  return std::string(root.path.data(), root.path_bytes);
}

Status LeaseTable::set_cgroup_root(const std::string& path) {
  CHECK_INVARIANT(owned_ && !path.empty());
  if (path.size() > kLeaseRootBytes)
    return failure(ErrorKind::invalid, "the cgroup root is longer than " +
                                           std::to_string(kLeaseRootBytes) + " bytes: " + path);
  const auto before = cgroup_root();
  if (before == path) return {};
  // A root that was only partly stored reads as absent, and no lease exists then.
  if (!leased_records().empty() && before)
    return failure(ErrorKind::invalid,
                   path_ + ": limits below " + *before +
                       " are still leased; run cgphase-restore, or start with that cgroup root");
  Root root{};
  path.copy(root.path.data(), kLeaseRootBytes);
  root.path_bytes = static_cast<std::uint32_t>(path.size());
  root.crc = crc_of(root, 0);
  file_->cgroup_root.store(root);
  return {};
}

void LeaseTable::take_over() {
  const std::lock_guard lock(mutex_);
  file_->owner_pid.store(::getpid());
  file_->heartbeat_ns.store(0);
  file_->acknowledged.store(file_->revocations.load());
  taken_over_ = true;
  std::vector<char> records(kScannedRecords * kLeaseRecordBytes);
  for (int i = record_count(); i-- > 0;) {
    const int first = i / kScannedRecords * kScannedRecords;
    // The loop runs backwards, so the last record of a block is read first.
    if (i == record_count() - 1 || i % kScannedRecords == kScannedRecords - 1)
      read_records(first, i + 1 - first, records);
    const char* start = records.data() + static_cast<std::size_t>(i - first) * kLeaseRecordBytes;
    if (const auto lease = lease_in(*reinterpret_cast<const Record*>(start)))
      index_[{lease->id, lease->knob}] = i;
    else
      free_.push_back(i);
  }
}

// Reads a copy. Through the mapping the whole file would become resident and locked, although most
// of it is unused.
void LeaseTable::read_records(int first, int count, std::span<char> records) const {
  const std::size_t bytes = static_cast<std::size_t>(count) * kLeaseRecordBytes;
  const std::size_t offset =
      kLeaseHeaderBytes + static_cast<std::size_t>(first) * kLeaseRecordBytes;
  if (::pread(fd_.get(), records.data(), bytes, static_cast<off_t>(offset)) !=
      static_cast<ssize_t>(bytes))
    std::copy_n(reinterpret_cast<const char*>(file_) + offset, bytes, records.data());
}

int LeaseTable::record_count() const { return static_cast<int>(file_->header.record_count); }

std::optional<Lease> LeaseTable::read(int record) const { return lease_in(file_->record(record)); }

std::optional<LeaseValues> LeaseTable::read_values(int record, CgroupId id, Knob knob) const {
  const Record& place = file_->record(record);
  const Identity identity = place.identity.load();
  if (!belongs_to(identity, id, knob)) return std::nullopt;
  const auto model = latest(place.model, identity.crc);
  if (!model.value || model.value->state != State::leased) return std::nullopt;
  return values_of(*model.value, latest(place.fast_path, identity.crc).value);
}

std::vector<int> LeaseTable::leased_records() const {
  std::vector<int> records;
  if (taken_over_) {
    const std::lock_guard lock(mutex_);
    for (const auto& [knob, record] : index_)
      if (read(record)) records.push_back(record);
    std::ranges::sort(records);
    return records;
  }
  std::array<char, kCopiedRecords * kLeaseRecordBytes> copy;
  for (int i = 0; i < record_count(); ++i) {
    const int at = i % kCopiedRecords;
    if (at == 0) read_records(i, std::min(kCopiedRecords, record_count() - i), copy);
    const auto record = std::span(copy).subspan(static_cast<std::size_t>(at) * kLeaseRecordBytes,
                                                kLeaseRecordBytes);
    const bool used = std::ranges::any_of(record, [](char byte) { return byte != 0; });
    if (used && read(i)) records.push_back(i);
  }
  return records;
}

std::optional<int> LeaseTable::find(CgroupId id, Knob knob) const {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find({id, knob});
  if (found == index_.end()) return std::nullopt;
  return found->second;
}

// Gives a free record its identity, which invalidates the slots of the former one.
std::optional<int> LeaseTable::claim(CgroupId id, const CgroupPath& path, Knob knob) {
  if (free_.empty()) return std::nullopt;
  const int record = free_.back();
  free_.pop_back();
  Identity identity{};
  identity.tenure = file_->record(record).identity.load().tenure + 1;
  identity.device = id.device;
  identity.inode = id.inode;
  identity.knob = static_cast<std::uint32_t>(knob);
  identity.path_bytes = static_cast<std::uint32_t>(path.size());
  path.copy(identity.path.data(), kLeasePathBytes);
  identity.crc = crc_of(identity, 0);
  file_->record(record).identity.store(identity);
  index_[{id, knob}] = record;
  return record;
}

// Somebody overwrote what the record was leased for. Neither our values nor those of the fast path
// are in the file any more, so the slots become invalid like those of a former container.
void LeaseTable::begin_anew(int record) {
  Record& place = file_->record(record);
  Identity identity = place.identity.load();
  ModelSlot released{};
  released.state = State::released;
  publish(place.model, latest(place.model, identity.crc), released, identity.crc);
  identity.tenure += 1;
  identity.crc = crc_of(identity, 0);
  place.identity.store(identity);
}

Result<int> LeaseTable::record(CgroupId id, const CgroupPath& path, Knob knob,
                               const KnobText& previous, const KnobText& next,
                               std::string_view reason, std::optional<MonotonicTime> deadline) {
  CHECK_INVARIANT(owned_);
  if (path.size() > kLeasePathBytes)
    return failure(ErrorKind::invalid, "the cgroup's path is longer than " +
                                           std::to_string(kLeasePathBytes) +
                                           " bytes; its limits are not changed");
  const std::lock_guard lock(mutex_);
  const auto found = index_.find({id, knob});
  const auto place_index = found != index_.end() ? found->second : claim(id, path, knob);
  if (!place_index)
    return failure(ErrorKind::invalid, "all " + std::to_string(record_count()) +
                                           " leases are in use; no further limit is changed");
  const auto values = read_values(*place_index, id, knob);
  const bool known =
      values && (same_value(knob, values->original, previous) || values->is_ours(knob, previous));
  if (values && !known) begin_anew(*place_index);
  Record& place = file_->record(*place_index);
  const std::uint32_t identity_crc = place.identity.load().crc;
  const auto model = latest(place.model, identity_crc);
  ModelSlot slot = model.value.value_or(ModelSlot{});
  if (!known) {
    slot = ModelSlot{};
    slot.original = previous;
  } else if (!same_value(knob, slot.original, previous)) {
    push_front(slot.values, previous);
  }
  push_front(slot.values, next);
  slot.state = State::leased;
  if (deadline) slot.deadline_ns = deadline->time_since_epoch().count();
  slot.reason = {};
  reason.copy(slot.reason.data(), kLeaseReasonBytes);
  publish(place.model, model, slot, identity_crc);
  if (deadline) file_->deadlines.fetch_add(1);
  return *place_index;
}

LeaseValues LeaseTable::release(int record, CgroupId id, Knob knob) {
  CHECK_INVARIANT(owned_);
  const std::lock_guard lock(mutex_);
  Record& place = file_->record(record);
  const Identity identity = place.identity.load();
  if (!belongs_to(identity, id, knob)) return {};
  const auto model = latest(place.model, identity.crc);
  ModelSlot slot{};
  slot.state = State::released;
  publish(place.model, model, slot, identity.crc);
  LeaseValues last;
  if (model.value) {
    last.original = model.value->original;
    last.model = model.value->values;
  }
  if (const auto fast_path = latest(place.fast_path, identity.crc); fast_path.value)
    last.fast_path = fast_path.value->values;
  // A restorer that became the owner after mapping the file has no index.
  if (index_.erase({id, knob}) != 0) free_.push_back(record);
  return last;
}

bool LeaseTable::lease_for_fast_path(int record, CgroupId id, Knob knob, const KnobText& previous,
                            const KnobText& next) {
  Record& place = file_->record(record);
  const Identity identity = place.identity.load();
  if (!belongs_to(identity, id, knob)) return false;
  const auto model = latest(place.model, identity.crc);
  if (!model.value || model.value->state != State::leased) return false;
  const auto fast_path = latest(place.fast_path, identity.crc);
  FastPathSlot slot = fast_path.value.value_or(FastPathSlot{});
  push_front(slot.values, previous);
  push_front(slot.values, next);
  publish(place.fast_path, fast_path, slot, identity.crc);
  return true;
}

void LeaseTable::beat(MonotonicTime now) {
  file_->heartbeat_ns.store(static_cast<std::uint64_t>(now.time_since_epoch().count()));
}

MonotonicTime LeaseTable::last_beat() const {
  return MonotonicTime(
      std::chrono::nanoseconds(static_cast<std::int64_t>(file_->heartbeat_ns.load())));
}

std::uint64_t LeaseTable::deadlines() const { return file_->deadlines.load(); }

void LeaseTable::revoke() { file_->revocations.fetch_add(1); }

bool LeaseTable::revoked() const { return file_->revocations.load() != file_->acknowledged.load(); }

void LeaseTable::acknowledge_revocation() { file_->acknowledged.store(file_->revocations.load()); }

}  // namespace cgphase
