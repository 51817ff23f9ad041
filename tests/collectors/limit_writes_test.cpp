#include "collectors/ebpf/limit_writes.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/file.h"
#include "collectors/ebpf/limit_write_record.h"
#include "collectors/ebpf/probe.h"
#include "collectors/ebpf/tiers.h"
#include "tests/collectors/fake_tree.h"
#include "tests/emulation.h"

using namespace cgphase;

namespace {

limit_write_record record_of(const char* file, const char* value) {
  limit_write_record record{};
  record.time_ns = 5'000'000'000;
  record.directory = 23;
  record.writer_cgroup = 68;
  record.pid = 812;
  std::strcpy(record.command, "runc");
  std::strcpy(record.file, file);
  std::strcpy(record.value, value);
  return record;
}

std::optional<LimitWrite> parsed(const limit_write_record& record,
                                 std::size_t bytes = sizeof(limit_write_record)) {
  return parse_limit_write(std::as_bytes(std::span(&record, 1)).first(bytes));
}

constexpr double kBpfBudget = 0.005;

std::vector<std::string> probe_log;

// Runs in a thread without capabilities, because they are a property of a thread.
void without_capabilities(const std::function<void()>& act) {
  int dropped = -1;
  std::thread([&] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
    dropped = static_cast<int>(::syscall(SYS_capset, &header, none));
    if (dropped == 0) act();
  }).join();
  REQUIRE(dropped == 0);
}

Source limit_writes_of(const ProbeSource& probes) {
  const std::vector<Source> sources = probes.sources();
  REQUIRE_FALSE(sources.empty());
  return sources[0];
}

// Captures standard error during its lifetime.
class StandardError {
 public:
  explicit StandardError(const FakeTree& tree)
      : path_(tree.root() + "/stderr"), before_(::dup(STDERR_FILENO)) {
    const Result<Fd> file = open_path(path_, O_WRONLY | O_CREAT, 0600);
    REQUIRE(file);
    ::dup2(file->get(), STDERR_FILENO);
  }
  ~StandardError() { ::dup2(before_.get(), STDERR_FILENO); }
  std::string text() const { return read_file(path_, 65536).value(); }

 private:
  std::string path_;
  Fd before_;
};

}  // namespace

TEST_CASE("a record of the kernel becomes a write with all fields") {
  const auto write = parsed(record_of("memory.max", "536870912\n"));
  REQUIRE(write);
  CHECK(write->time == MonotonicTime(std::chrono::seconds(5)));
  CHECK(write->directory == 23);
  CHECK(write->file == "memory.max");
  CHECK(write->value == "536870912");
  CHECK(write->pid == 812);
  CHECK(write->command == "runc");
  CHECK(write->writer_cgroup == 68);
  CHECK(write->writer_path.empty());
}

TEST_CASE("a record that is too short is no write, a longer one is") {
  std::array<std::byte, sizeof(limit_write_record) + 8> bytes{};
  const limit_write_record record = record_of("cpu.max", "50000 100000\n");
  std::memcpy(bytes.data(), &record, sizeof(record));
  const auto first = [&](std::size_t count) {
    return parse_limit_write(std::span(bytes).first(count));
  };
  CHECK_FALSE(first(0));
  CHECK_FALSE(first(sizeof(record) - 1));
  CHECK(first(sizeof(record))->value == "50000 100000");
  CHECK(first(bytes.size())->value == "50000 100000");
}

TEST_CASE("a record of another file is no write") {
  for (const char* file : {"", "cpu", "cpu.maximum", "memory.low", "memory.max.x"})
    CHECK_FALSE(parsed(record_of(file, "1")));
  for (const char* file : {"cpu.max", "cpu.max.burst", "memory.max", "memory.high"})
    CHECK(parsed(record_of(file, "1")));
}

TEST_CASE("texts without a terminating 0 are used to their last byte") {
  limit_write_record record = record_of("cpu.max", "");
  std::memset(record.command, 'c', sizeof(record.command));
  std::memset(record.value, 'v', sizeof(record.value));
  const auto write = parsed(record);
  REQUIRE(write);
  CHECK(write->command == std::string(16, 'c'));
  CHECK(write->value == std::string(44, 'v'));
  std::memset(record.file, 'm', sizeof(record.file));
  CHECK_FALSE(parsed(record));
}

TEST_CASE("a refused program is reported, without output on standard error") {
  const FakeTree tree;
  const auto probes = open_kernel_probes(tree.root(), kBpfBudget);
  std::string noise;
  {
    const StandardError error(tree);
    without_capabilities([&] { probes->set_wanted(true); });
    noise = error.text();
  }
  CHECK(noise.empty());
  CHECK(probes->drain_limit_writes().empty());
  const Source source = limit_writes_of(*probes);
  CHECK(source.name == "eBPF: who writes limits");
  REQUIRE_FALSE(source.present);
  CAPTURE(source.detail);
  const auto says = [&](const char* words) { return source.detail.contains(words); };
  const bool attempted = says("the BPF program limit_writes: ");
  CHECK((attempted ? says("EPERM") && (says("CAP_BPF") || says("lockdown"))
                   : says("CONFIG_DEBUG_INFO_BTF") || says("pid namespace")));
}

TEST_CASE("a refused counter is reported once per signal, and samples stay empty") {
  const FakeTree tree;
  tree.write("/cgroup.controllers", "cpu io memory\n");
  const auto probes = open_kernel_probes(tree.root(), kBpfBudget);
  NodeSample tick;
  tick.containers.resize(1);
  const auto of_counters = [&] {
    std::vector<Source> sources = probes->sources();
    sources.erase(sources.begin(), sources.begin() + 2);  // writes and programs
    return sources;
  };
  for (const Source& source : of_counters()) CHECK(source.detail == "not started yet");
  std::string noise;
  {
    const StandardError error(tree);
    without_capabilities([&] { probes->fill_counters(tick); });
    noise = error.text();
  }
  CHECK(noise.empty());
  CHECK(tick.containers[0].network == NetworkStat{});
  CHECK(tick.containers[0].run_queue == RunQueueStat{});
  CHECK(tick.containers[0].block == BlockStat{});
  const std::vector<Source> sources = of_counters();
  REQUIRE(sources.size() == 4);
  for (const Source& source : sources) {
    CAPTURE(source.name);
    CAPTURE(source.detail);
    CHECK_FALSE(source.present);
    const bool no_call = test::kMayBeEmulated && source.detail.contains("ENOSYS");
    CHECK((source.detail.contains("EPERM") || no_call ||
           source.detail.contains("CONFIG_DEBUG_INFO_BTF")));
  }
}

TEST_CASE("libbpf's messages about a refusal go to the log, if there is one") {
  const FakeTree tree;
  const auto probes = open_kernel_probes(tree.root(), kBpfBudget);
  probe_log.clear();
  set_probe_log([](const std::string& line) { probe_log.push_back(line); });
  without_capabilities([&] { probes->set_wanted(true); });
  set_probe_log(nullptr);
  const bool attempted = limit_writes_of(*probes).detail.contains("the BPF program limit_writes: ");
  CHECK(attempted == std::ranges::any_of(probe_log, [](const std::string& line) {
    return line.contains("limit_writes");
  }));
}

TEST_CASE("nothing is loaded before it is wanted, or if it is switched off") {
  const FakeTree tree;
  probe_log.clear();
  set_probe_log([](const std::string& line) { probe_log.push_back(line); });
  const auto idle = open_kernel_probes(tree.root(), kBpfBudget);
  CHECK_FALSE(limit_writes_of(*idle).present);
  CHECK(limit_writes_of(*idle).detail == "not needed while all containers are only observed");
  idle->set_wanted(false);
  const auto off = no_probes("bpf.enabled is false");
  off->set_wanted(true);
  CHECK(limit_writes_of(*off).name == "eBPF: who writes limits");
  CHECK_FALSE(limit_writes_of(*off).present);
  CHECK(limit_writes_of(*off).detail == "bpf.enabled is false");
  CHECK(off->drain_limit_writes().empty());
  set_probe_log(nullptr);
  CHECK(probe_log.empty());
}

TEST_CASE("a refusal because of a lockdown names the lockdown") {
  CHECK(lockdown_refusal("none integrity [confidentiality]\n").contains("locked down"));
  CHECK(lockdown_refusal("none [integrity] confidentiality\n").empty());
  CHECK(lockdown_refusal("[none] integrity confidentiality\n").empty());
  CHECK(lockdown_refusal("").empty());
}

namespace {

constexpr std::uint64_t bit(int capability) { return std::uint64_t{1} << capability; }
constexpr std::uint64_t kEnough = bit(CAP_BPF) | bit(CAP_PERFMON) | bit(CAP_NET_ADMIN);

std::string reason_for(ProbeKind kind, int error_number, std::uint64_t capabilities,
                       const char* lockdown = "[none] integrity confidentiality\n") {
  return refusal_reason(kind, error_number,
                        {.capabilities = capabilities, .lockable_bytes = RLIM_INFINITY,
                         .lockdown = lockdown});
}

}  // namespace

TEST_CASE("a refusal names the capabilities that this process lacks, and no others") {
  const auto lacks = [](ProbeKind kind, std::uint64_t ancestor_limits) {
    return reason_for(kind, EPERM, ancestor_limits);
  };
  using enum ProbeKind;
  CHECK(lacks(packets, 0) == "this process lacks CAP_BPF and CAP_NET_ADMIN");
  CHECK(lacks(packets, bit(CAP_BPF)) == "this process lacks CAP_NET_ADMIN");
  CHECK(lacks(packets, bit(CAP_NET_ADMIN)) == "this process lacks CAP_BPF");
  CHECK(lacks(packets, bit(CAP_SYS_ADMIN)) == "this process lacks CAP_NET_ADMIN");
  CHECK(lacks(typed, 0) == "this process lacks CAP_BPF and CAP_PERFMON");
  CHECK(lacks(copying, bit(CAP_BPF)) == "this process lacks CAP_PERFMON");
  CHECK(reason_for(typed, EACCES, bit(CAP_PERFMON)) == "this process lacks CAP_BPF");
  for (const std::uint64_t ancestor_limits : {kEnough, bit(CAP_SYS_ADMIN)})
    for (const ProbeKind kind : {typed, copying})
      CHECK_FALSE(lacks(kind, ancestor_limits).contains("lacks"));
  CHECK(reason_for(typed, EINVAL, 0).empty());
  CHECK(reason_for(classic, EINVAL, kEnough).contains("CONFIG_BPF_EVENTS"));
}

TEST_CASE("a lockdown is the reason only for copying programs with all capabilities") {
  const char* locked = "none integrity [confidentiality]\n";
  using enum ProbeKind;
  for (const int error : {EINVAL, EPERM})
    CHECK(reason_for(copying, error, kEnough, locked).contains("locked down"));
  CHECK(reason_for(typed, EINVAL, kEnough, locked).empty());
  CHECK_FALSE(reason_for(packets, EPERM, kEnough, locked).contains("locked down"));
  CHECK(reason_for(copying, EPERM, 0, locked) == "this process lacks CAP_BPF and CAP_PERFMON");
}

TEST_CASE("a refusal that no capability explains names the limit of locked memory") {
  const auto says = [](std::uint64_t lockable_bytes) {
    return refusal_reason(ProbeKind::typed, EPERM,
                          {.capabilities = kEnough, .lockable_bytes = lockable_bytes});
  };
  CHECK(says(65536).contains("than 64.0 KiB (LimitMEMLOCK=infinity)"));
  CHECK_FALSE(says(RLIM_INFINITY).contains("LimitMEMLOCK"));
  CHECK(says(RLIM_INFINITY).contains("CAP_BPF"));
}

TEST_CASE("a reason that several tiers share is reported once") {
  const auto reported = [](std::initializer_list<std::pair<const char*, const char*>> refused) {
    Refusals refusals;
    for (const auto& [tier, why] : refused) refusals.add(tier, {ErrorKind::denied, why});
    return refusals.take();
  };
  CHECK(reported({{"tp_btf", "x"}, {"raw_tp", "x"}}).text == "tp_btf and raw_tp: x");
  CHECK(reported({{"tp_btf", "x"}, {"raw_tp", "y"}}).text == "tp_btf: x; raw_tp: y");
  CHECK(reported({{"tp_btf", "x"}}).kind == ErrorKind::denied);
}
