#include "control/lease/lease_table.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/crc32.h"
#include "tests/cgroupfs/fake_cgroup.h"

using namespace cgphase;

namespace {

constexpr CgroupId kBox{1, 42};
constexpr CgroupId kOther{1, 43};
constexpr std::size_t kHeaderBytes = 4096;
constexpr std::size_t kRecordBytes = 1024;
constexpr std::size_t kModelSlots = 400;  // offset in a record
constexpr std::size_t kModelSlotBytes = 232;

LeaseTable::Options options_in(const TemporaryDirectory& directory, int records = 4) {
  return {.runtime_dir = directory.path(), .records = records, .boot_id = "boot-one"};
}

std::unique_ptr<LeaseTable> open_in(const TemporaryDirectory& directory, int records = 4) {
  auto table = LeaseTable::open(options_in(directory, records));
  REQUIRE_MESSAGE(table, table.error().text);
  return std::move(*table);
}

int hold(LeaseTable& table, CgroupId id, std::string_view previous, std::string_view next) {
  const auto record =
      table.record(id, "/box", Knob::cpu_max, text_of(previous), text_of(next), "test");
  REQUIRE_MESSAGE(record, record.error().text);
  return *record;
}

std::string file_in(const TemporaryDirectory& directory) {
  return directory.path() + "/" + kLeaseFileName;
}

// Of all mappings of that file in this process.
std::size_t resident_bytes(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  std::size_t sum = 0;
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) here = line.ends_with(path);
    if (here && line.starts_with("Rss:")) sum += std::stoul(line.substr(4)) * 1024;
  }
  return sum;
}

void overwrite(const std::string& path, std::size_t offset, std::string_view bytes) {
  const Fd fd = open_path(path, O_WRONLY).value();
  REQUIRE(::pwrite(fd.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
          static_cast<ssize_t>(bytes.size()));
}

// The same file with the next format version.
std::string of_next_version(std::string file) {
  constexpr std::size_t kVersionAt = 8, kCrcAt = 60;
  const std::uint32_t version = kLeaseVersion + 1;
  std::memcpy(file.data() + kVersionAt, &version, sizeof version);
  const std::uint32_t crc = crc32c(std::string_view(file).substr(0, kCrcAt));
  std::memcpy(file.data() + kCrcAt, &crc, sizeof crc);
  return file;
}

}  // namespace

TEST_CASE("a lease is read back as it was stored") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory);
  const int record = hold(*table, kBox, "200000 100000", "150000 100000");
  const Lease lease = table->read(record).value();
  CHECK(lease.id == kBox);
  CHECK(lease.path == "/box");
  CHECK(lease.knob == Knob::cpu_max);
  CHECK(lease.reason == "test");
  CHECK(lease.values.original.view() == "200000 100000");
  CHECK(lease.values.is_ours(Knob::cpu_max, text_of("150000 100000")));
  CHECK_FALSE(lease.values.is_ours(Knob::cpu_max, text_of("200000 100000")));
}

TEST_CASE("the leases of an earlier process are found at any record, and the other records are "
          "free") {
  constexpr int kRecords = 150;
  const TemporaryDirectory directory;
  const auto box = [](int record) { return CgroupId{1, 100 + static_cast<std::uint64_t>(record)}; };
  {
    const auto table = open_in(directory, kRecords);
    for (int i = 0; i < kRecords; ++i)
      REQUIRE(hold(*table, box(i), "200000 100000", std::to_string(i + 1000) + " 100000") == i);
    for (int i = 0; i < kRecords; ++i)
      if (i % 64 != 0 && i % 64 != 63 && i != kRecords - 1)
        table->release(i, box(i), Knob::cpu_max);
  }
  const auto table = open_in(directory, kRecords);
  const std::vector<int> kept = {0, 63, 64, 127, 128, 149};
  CHECK(table->leased_records() == kept);
  for (const int record : kept) {
    CHECK(table->find(box(record), Knob::cpu_max) == record);
    CHECK(table->read(record)->values.is_ours(
        Knob::cpu_max, text_of(std::to_string(record + 1000) + " 100000")));
  }
  CHECK(hold(*table, box(500), "200000 100000", "150000 100000") == 1);
}

TEST_CASE("the original survives later changes, and earlier values still count as ours") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory);
  hold(*table, kBox, "200000 100000", "150000 100000");
  const int record = hold(*table, kBox, "150000 100000", "120000 100000");
  const LeaseValues values = table->read(record)->values;
  CHECK(values.original.view() == "200000 100000");
  CHECK(values.is_ours(Knob::cpu_max, text_of("150000 100000")));
  CHECK(values.is_ours(Knob::cpu_max, text_of("120000 100000")));
}

TEST_CASE("a foreign value under a new change becomes the original") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory);
  const int first = hold(*table, kBox, "200000 100000", "150000 100000");
  REQUIRE(table->lease_for_fast_path(first, kBox, Knob::cpu_max, text_of("150000 100000"),
                            text_of("200000 100000")));
  const int record = hold(*table, kBox, "300000 100000", "250000 100000");
  const LeaseValues values = table->read(record)->values;
  CHECK(values.original.view() == "300000 100000");
  for (const char* former : {"150000 100000", "200000 100000"})  // also a value of the fast path
    CHECK_FALSE(values.is_ours(Knob::cpu_max, text_of(former)));
  CHECK(record == first);  // the fast path uses this number
  REQUIRE(table->lease_for_fast_path(record, kBox, Knob::cpu_max, text_of("250000 100000"),
                            text_of("280000 100000")));
  CHECK(table->read(record)->values.is_ours(Knob::cpu_max, text_of("280000 100000")));
}

TEST_CASE("a released record is free and is used again") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory, 1);
  const int record = hold(*table, kBox, "200000 100000", "150000 100000");
  table->release(record, kBox, Knob::cpu_max);
  CHECK(table->leased_records().empty());
  CHECK_FALSE(table->find(kBox, Knob::cpu_max).has_value());
  CHECK(hold(*table, kOther, "80000 100000", "60000 100000") == record);
  CHECK(table->read(record)->id == kOther);
  CHECK(table->release(record, kBox, Knob::cpu_max).original.empty());  // by its previous owner
  CHECK(table->find(kOther, Knob::cpu_max) == record);
  CHECK(table->read(record)->id == kOther);
}

TEST_CASE("a full table refuses the next lease and keeps the others") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory, 1);
  hold(*table, kBox, "200000 100000", "150000 100000");
  const auto refused = table->record(kOther, "/other", Knob::cpu_max, text_of("max 100000"),
                                   text_of("1000 100000"), "test");
  CHECK(refused.error().kind == ErrorKind::invalid);
  CHECK(table->leased_records().size() == 1);
}

TEST_CASE("the longest path is leased, one byte more is refused") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory);
  const std::string longest = "/" + std::string(kLeasePathBytes - 1, 'p');
  const auto record = table->record(kBox, longest, Knob::cpu_max, text_of("max 100000"),
                                  text_of("1000 100000"), "test");
  CHECK(table->read(record.value())->path == longest);
  const auto refused = table->record(kOther, longest + "p", Knob::cpu_max, text_of("max 100000"),
                                   text_of("1000 100000"), "test");
  CHECK(refused.error().kind == ErrorKind::invalid);
}

TEST_CASE("a reason longer than its bound is cut") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory);
  const auto record = table->record(kBox, "/box", Knob::cpu_max, text_of("max 100000"),
                                  text_of("1000 100000"), std::string(kLeaseReasonBytes + 1, 'r'));
  CHECK(table->read(record.value())->reason == std::string(kLeaseReasonBytes, 'r'));
}

TEST_CASE("the root of the leases survives the process and cannot change while a lease exists") {
  const TemporaryDirectory directory;
  {
    const auto table = open_in(directory);
    CHECK_FALSE(table->cgroup_root().has_value());
    REQUIRE(table->set_cgroup_root("/one"));
    hold(*table, kBox, "200000 100000", "150000 100000");
  }
  const auto table = open_in(directory);
  CHECK(table->cgroup_root() == "/one");
  CHECK(table->set_cgroup_root("/one"));
  const Status refused = table->set_cgroup_root("/two");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::invalid);
  CHECK(refused.error().text.find("/one") != std::string::npos);
  CHECK(table->cgroup_root() == "/one");
  table->release(table->leased_records().front(), kBox, Knob::cpu_max);
  CHECK(table->set_cgroup_root("/two"));
  CHECK(table->cgroup_root() == "/two");
}

TEST_CASE("the longest root is stored, one byte more is refused, a damaged root is absent") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory);
  const std::string longest = "/" + std::string(kLeaseRootBytes - 1, 'r');
  CHECK(table->set_cgroup_root(longest));
  CHECK(table->cgroup_root() == longest);
  CHECK(table->set_cgroup_root(longest + "r").error().kind == ErrorKind::invalid);
  CHECK(table->cgroup_root() == longest);
  std::string file = get_file(file_in(directory));
  overwrite(file_in(directory), file.find(longest) + 500, "torn");
  CHECK_FALSE(table->cgroup_root().has_value());
  CHECK(table->set_cgroup_root("/one"));
}

TEST_CASE("leases survive their process") {
  const TemporaryDirectory directory;
  { hold(*open_in(directory), kBox, "200000 100000", "150000 100000"); }
  const auto table = open_in(directory);
  REQUIRE(table->leased_records().size() == 1);
  CHECK(table->read(table->leased_records().front())->values.original.view() == "200000 100000");
  CHECK(table->find(kBox, Knob::cpu_max) == table->leased_records().front());
}

TEST_CASE("if the newest slot of a record is damaged, the previous copy is used") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory, 1);
  const int record = hold(*table, kBox, "200000 100000", "150000 100000");
  hold(*table, kBox, "150000 100000", "120000 100000");
  // The first hold went to slot 0, the second to slot 1.
  overwrite(file_in(directory), kHeaderBytes + kModelSlots + kModelSlotBytes + 60, "torn");
  const LeaseValues values = table->read(record)->values;
  CHECK(values.original.view() == "200000 100000");
  CHECK(values.is_ours(Knob::cpu_max, text_of("150000 100000")));
  CHECK_FALSE(values.is_ours(Knob::cpu_max, text_of("120000 100000")));
}

TEST_CASE("a first lease that was not stored completely is no lease") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory, 1);
  hold(*table, kBox, "200000 100000", "150000 100000");
  overwrite(file_in(directory), kHeaderBytes + kModelSlots + 60, "torn");
  CHECK(table->leased_records().empty());
}

TEST_CASE("slots of one cgroup are never read with the identity of another") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory, 1);
  hold(*table, kBox, "200000 100000", "150000 100000");
  const std::uint64_t inode = 43;
  overwrite(file_in(directory), kHeaderBytes + 8,
            {reinterpret_cast<const char*>(&inode), sizeof inode});
  CHECK(table->leased_records().empty());
}

TEST_CASE("a checksum covers every byte of a leased record") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory, 1);
  const int record = hold(*table, kBox, "200000 100000", "150000 100000");
  const std::string before = get_file(file_in(directory)).substr(kHeaderBytes, kRecordBytes);
  for (std::size_t i = 0; i < kModelSlots + kModelSlotBytes; ++i) {
    const char flipped = static_cast<char>(before[i] ^ 0x10);
    overwrite(file_in(directory), kHeaderBytes + i, {&flipped, 1});
    CAPTURE(i);
    CHECK_FALSE(table->read(record).has_value());
    overwrite(file_in(directory), kHeaderBytes + i, {&before[i], 1});
  }
  CHECK(table->read(record).has_value());
}

TEST_CASE("values of the fast path count as ours") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory);
  const int record = hold(*table, kBox, "200000 100000", "100000 100000");
  REQUIRE(table->lease_for_fast_path(record, kBox, Knob::cpu_max, text_of("100000 100000"),
                            text_of("120000 100000")));
  CHECK(table->read(record)->values.is_ours(Knob::cpu_max, text_of("120000 100000")));
  CHECK_FALSE(table->lease_for_fast_path(record, kOther, Knob::cpu_max, text_of("100000 100000"),
                                text_of("120000 100000")));
  const LeaseValues last = table->release(record, kBox, Knob::cpu_max);
  CHECK(last.is_ours(Knob::cpu_max, text_of("120000 100000")));
  CHECK_FALSE(table->lease_for_fast_path(record, kBox, Knob::cpu_max, text_of("100000 100000"),
                                text_of("120000 100000")));
}

TEST_CASE("fast-path values of the record's previous container are forgotten") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory, 1);
  const int record = hold(*table, kBox, "200000 100000", "100000 100000");
  table->lease_for_fast_path(record, kBox, Knob::cpu_max, text_of("100000 100000"),
                    text_of("120000 100000"));
  table->release(record, kBox, Knob::cpu_max);
  hold(*table, kBox, "200000 100000", "100000 100000");
  CHECK_FALSE(table->read(record)->values.is_ours(Knob::cpu_max, text_of("120000 100000")));
}

TEST_CASE("the file is private, and a second owner is refused while the first lives") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory);
  struct stat status;
  REQUIRE(::stat(file_in(directory).c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  const auto second = LeaseTable::open(options_in(directory));
  CHECK(second.error().kind == ErrorKind::io);
  CHECK(second.error().text.find(std::to_string(::getpid())) != std::string::npos);
}

TEST_CASE("a restorer reads the leases of a living owner without owning them") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory);
  hold(*table, kBox, "200000 100000", "150000 100000");
  const auto restorer = LeaseTable::open_existing(options_in(directory));
  REQUIRE(restorer);
  CHECK((*restorer)->leased_records().size() == 1);
  CHECK_FALSE((*restorer)->try_own());
}

TEST_CASE("a restorer finds leases at any record, and unused pages do not become resident") {
  constexpr int kRecords = kLeaseRecords;
  const TemporaryDirectory directory;
  const auto table = open_in(directory, kRecords);
  std::vector<int> records;
  for (std::uint64_t i = 0; i < 150; ++i)
    records.push_back(hold(*table, CgroupId{1, 100 + i}, "200000 100000", "150000 100000"));
  std::ranges::sort(records);
  const auto restorer = LeaseTable::open_existing(options_in(directory, kRecords));
  REQUIRE(restorer);
  const auto before = resident_bytes(file_in(directory));
  CHECK((*restorer)->leased_records() == records);
  // The pages of those leases; the kernel maps some more around each.
  CHECK(resident_bytes(file_in(directory)) - before < kRecords * kRecordBytes / 4);
}

// rule: S-02
TEST_CASE("leases of an earlier boot are discarded") {
  const TemporaryDirectory directory;
  { hold(*open_in(directory), kBox, "200000 100000", "150000 100000"); }
  LeaseTable::Options later = options_in(directory);
  later.boot_id = "boot-two";
  CHECK(LeaseTable::open_existing(later).error().kind == ErrorKind::not_found);
  const auto table = LeaseTable::open(later);
  REQUIRE_MESSAGE(table, table.error().text);
  CHECK((*table)->leased_records().empty());
}

TEST_CASE("the owner creates a missing file, a restorer does not find it") {
  const TemporaryDirectory directory;
  CHECK(LeaseTable::open_existing(options_in(directory)).error().kind == ErrorKind::not_found);
  LeaseTable::Options deeper = options_in(directory);
  deeper.runtime_dir += "/run";
  CHECK(LeaseTable::open(deeper));
  CHECK(std::filesystem::exists(deeper.runtime_dir + "/" + kLeaseFileName));
}

// rule: S-02
TEST_CASE("at its end the owner removes a file without leases, and only such a file") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory);
  const int record = hold(*table, kBox, "200000 100000", "150000 100000");
  table->remove_unused();
  CHECK(std::filesystem::exists(file_in(directory)));
  table->release(record, kBox, Knob::cpu_max);
  table->remove_unused();
  CHECK_FALSE(std::filesystem::exists(file_in(directory)));
  { std::ofstream(file_in(directory)) << "of a later owner"; }
  table->remove_unused();
  CHECK(std::filesystem::exists(file_in(directory)));
}

TEST_CASE("a damaged or foreign file is refused and left unchanged") {
  const TemporaryDirectory directory;
  { open_in(directory); }
  const std::string whole = get_file(file_in(directory));
  const auto check = [&](const std::string& content, ErrorKind kind) {
    put_file(file_in(directory), content);
    CHECK(LeaseTable::open(options_in(directory)).error().kind == kind);
    CHECK(LeaseTable::open_existing(options_in(directory)).error().kind == kind);
    CHECK(check_lease_file(directory.path()).error().kind == kind);
    CHECK(get_file(file_in(directory)) == content);
  };
  check("", ErrorKind::invalid);
  check("not leases", ErrorKind::invalid);
  check(std::string(whole.size(), '\0'), ErrorKind::invalid);
  check(whole.substr(0, whole.size() - 1), ErrorKind::invalid);
  std::string flipped = whole;
  flipped[9] = static_cast<char>(flipped[9] ^ 1);
  check(flipped, ErrorKind::invalid);
  check(of_next_version(whole), ErrorKind::unsupported);
}

TEST_CASE("a check accepts a complete file, owned or not, and a missing file") {
  const TemporaryDirectory directory;
  CHECK(check_lease_file(directory.path() + "/none"));
  CHECK(check_lease_file(directory.path()));
  CHECK_FALSE(std::filesystem::exists(file_in(directory)));
  auto table = open_in(directory);
  const std::string before = get_file(file_in(directory));
  CHECK(check_lease_file(directory.path()));
  table.reset();
  CHECK(check_lease_file(directory.path()));
  CHECK(get_file(file_in(directory)) == before);
}

// rule: SEC-04
TEST_CASE("the lease file is never opened through a symbolic link") {
  const TemporaryDirectory directory, elsewhere;
  { open_in(elsewhere); }
  std::filesystem::create_symlink(file_in(elsewhere), file_in(directory));
  CHECK_FALSE(LeaseTable::open(options_in(directory)));
  CHECK_FALSE(LeaseTable::open_existing(options_in(directory)));
  CHECK_FALSE(check_lease_file(directory.path()));
}

TEST_CASE("a revocation lasts until the owner acknowledges it") {
  const TemporaryDirectory directory;
  const auto table = open_in(directory);
  CHECK_FALSE(table->revoked());
  const auto restorer = std::move(*LeaseTable::open_existing(options_in(directory)));
  restorer->revoke();
  CHECK(table->revoked());
  table->acknowledge_revocation();
  CHECK_FALSE(table->revoked());
}

TEST_CASE("other processes see the heartbeat, and each owner starts it anew") {
  const TemporaryDirectory directory;
  {
    const auto table = open_in(directory);
    CHECK(table->last_beat() == MonotonicTime{});
    table->beat(MonotonicTime(std::chrono::seconds(7)));
    const auto watcher = std::move(*LeaseTable::open_existing(options_in(directory)));
    CHECK(watcher->last_beat() == MonotonicTime(std::chrono::seconds(7)));
  }
  CHECK(open_in(directory)->last_beat() == MonotonicTime{});
}

TEST_CASE("an owner that is killed while storing leaves a usable lease") {
  const TemporaryDirectory directory;
  const KnobText first = text_of("150000 100000"), second = text_of("120000 100000");
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto table = LeaseTable::open(options_in(directory, 1));
    const KnobText original = text_of("200000 100000");
    (void)(*table)->record(kBox, "/box", Knob::cpu_max, original, first, "test");
    if (::write(ready[1], "r", 1) != 1) ::_exit(1);
    for (;;) {
      (void)(*table)->record(kBox, "/box", Knob::cpu_max, first, second, "test");
      (void)(*table)->record(kBox, "/box", Knob::cpu_max, second, first, "test");
    }
  }
  char byte;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  const auto table = open_in(directory, 1);
  REQUIRE(table->leased_records().size() == 1);
  const LeaseValues values = table->read(0)->values;
  CHECK(values.original.view() == "200000 100000");
  CHECK(values.is_ours(Knob::cpu_max, first));
}
