// The files of a cgroup and their texts.
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <limits>

#include "tests/simulator/cgroup_kernel.h"

namespace cgphase::simulator {
namespace {

struct FileKind {
  std::string_view name;
  bool at_root, readable, writable;
};
constexpr std::array<FileKind, 27> kFiles = {{
    {"cgroup.controllers", true, true, false},
    {"cgroup.events", false, true, false},
    {"cgroup.freeze", false, true, true},
    {"cgroup.procs", true, true, true},
    {"cgroup.subtree_control", true, true, true},
    {"cpu.max", false, true, true},
    {"cpu.max.burst", false, true, true},
    {"cpu.pressure", true, true, true},
    {"cpu.stat", true, true, false},
    {"cpu.weight", false, true, true},
    {"io.pressure", true, true, true},
    {"io.stat", true, true, false},
    {"memory.current", false, true, false},
    {"memory.events", false, true, false},
    {"memory.events.local", false, true, false},
    {"memory.high", false, true, true},
    {"memory.low", false, true, true},
    {"memory.max", false, true, true},
    {"memory.min", false, true, true},
    {"memory.oom.group", false, true, true},
    {"memory.peak", false, true, false},
    {"memory.pressure", true, true, true},
    {"memory.reclaim", true, false, true},
    {"memory.stat", true, true, false},
    {"memory.swap.current", false, true, false},
    {"memory.swap.max", false, true, true},
    {"pids.current", false, true, false},
}};

const FileKind* kind_of(std::string_view file) {
  const auto found = std::find_if(kFiles.begin(), kFiles.end(),
                                  [&](const FileKind& one) { return one.name == file; });
  return found == kFiles.end() ? nullptr : &*found;
}

bool is_pressure(std::string_view file) { return file.ends_with(".pressure"); }

std::string_view strip(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  while (!text.empty() && kBlanks.find(text.front()) != kBlanks.npos) text.remove_prefix(1);
  while (!text.empty() && kBlanks.find(text.back()) != kBlanks.npos) text.remove_suffix(1);
  return text;
}

// Digits in base 10, 8 (leading 0) or 16 (0x). `rest` receives the remaining text.
std::optional<std::uint64_t> digits(std::string_view text, std::string_view& rest) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    base = 16;
    text.remove_prefix(2);
  } else if (text.size() > 1 && text.front() == '0') {
    base = 8;
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc{}) return std::nullopt;
  return number;
}

class Text {
 public:
  explicit Text(std::string& into) : into_(into) { into_.clear(); }
  Text& line(std::string_view key, std::uint64_t value) {
    into_.append(key).push_back(' ');
    return number(value);
  }
  Text& number(std::uint64_t value) {
    std::array<char, 24> digit;
    const auto end = std::to_chars(digit.data(), digit.data() + digit.size(), value).ptr;
    into_.append(digit.data(), end).push_back('\n');
    return *this;
  }
  Text& limit(const std::optional<std::uint64_t>& value) {
    if (value) return number(*value);
    into_.append("max\n");
    return *this;
  }
  Text& words(std::string_view text) {
    into_.append(text);
    return *this;
  }

 private:
  std::string& into_;
};

void write_events(Text& text, const MemoryEventCounts& events) {
  text.line("low", events.low).line("high", events.high).line("max", events.max);
  text.line("oom", events.oom).line("oom_kill", events.oom_kill).line("oom_group_kill", 0);
}

void write_cpu_stat(Text& text, const CpuController& cpu) {
  text.line("usage_usec", cpu.usage_usec).line("user_usec", cpu.usage_usec).line("system_usec", 0);
  text.line("nr_periods", cpu.nr_periods).line("nr_throttled", cpu.nr_throttled);
  text.line("throttled_usec", cpu.throttled_usec).line("nr_bursts", 0).line("burst_usec", 0);
}

void write_pressure(Text& text, const PressureState& state, bool with_full) {
  for (const char* who : {"some", "full"}) {
    // The model has one task at a time, so every stall is a full stall.
    const PressureState shown = *who == 's' || with_full ? state : PressureState{};
    std::array<char, 128> line;
    const int length = std::snprintf(
        line.data(), line.size(), "%s avg10=%.2f avg60=%.2f avg300=%.2f total=%llu\n", who,
        shown.avg10 * 100, shown.avg60 * 100, shown.avg300 * 100,
        static_cast<unsigned long long>(shown.total_usec));
    text.words({line.data(), static_cast<std::size_t>(length)});
  }
}

void write_bandwidth(Text& text, const CpuController& cpu) {
  text.words(cpu.quota_usec ? std::to_string(*cpu.quota_usec) : "max").words(" ");
  text.number(cpu.period_usec);
}

}  // namespace

std::optional<ParsedMemory> parse_memory_text(std::string_view text) {
  text = strip(text);
  if (text == "max") return ParsedMemory{};
  if (text.empty()) return ParsedMemory{0};
  std::string_view rest;
  const auto number = digits(text, rest);
  if (!number) return std::nullopt;
  unsigned shift = 0;
  if (!rest.empty()) {
    constexpr std::string_view kSuffixes = "kmgtpe";
    const auto suffix = kSuffixes.find(static_cast<char>(rest.front() | 0x20));
    if (suffix == kSuffixes.npos) return std::nullopt;
    shift = 10 * (static_cast<unsigned>(suffix) + 1);
    rest.remove_prefix(1);
  }
  if (!rest.empty()) return std::nullopt;
  const std::uint64_t bytes = *number << shift;
  // PAGE_COUNTER_MAX pages or more mean no limit.
  if (bytes >= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) /
                   kSimulatedPage * kSimulatedPage)
    return ParsedMemory{};
  return ParsedMemory{bytes / kSimulatedPage * kSimulatedPage};
}

std::optional<std::uint64_t> parse_number_text(std::string_view text) {
  std::string_view rest;
  const auto number = digits(strip(text), rest);
  if (!number || !rest.empty()) return std::nullopt;
  return number;
}

std::string_view file_named(std::string_view name) {
  const FileKind* const kind = kind_of(name);
  return kind == nullptr ? std::string_view() : kind->name;
}

bool CgroupKernel::has_file(std::uint64_t inode, std::string_view file) const {
  const FileKind* const kind = kind_of(file);
  if (kind == nullptr || !cgroups_.contains(inode)) return false;
  if (is_pressure(file) && !machine_.pressure) return false;
  return inode != kRoot || kind->at_root;
}

int CgroupKernel::check_open(std::uint64_t inode, std::string_view file, bool for_writing) const {
  if (!has_file(inode, file)) return ENOENT;
  const FileKind& kind = *kind_of(file);
  return (for_writing ? kind.writable : kind.readable) ? 0 : EINVAL;
}

namespace {

std::string pids_text(const std::map<int, SimulatedProcess>& processes, std::uint64_t inode) {
  std::string text;
  for (const auto& [pid, process] : processes)
    if (process.cgroup == inode) text += std::to_string(pid) + "\n";
  return text;
}

// `held`: by kind, including descendants.
std::string stat_text(const MemoryController& memory,
                      const std::array<std::uint64_t, kMemoryKinds>& held) {
  std::string text;
  Text to(text);
  const auto of = [&](MemoryKind kind) { return held[static_cast<std::size_t>(kind)]; };
  const std::uint64_t file = of(MemoryKind::file_inactive) +
                             of(MemoryKind::file_active) + of(MemoryKind::shmem);
  const std::uint64_t slab = of(MemoryKind::slab);
  to.line("anon", of(MemoryKind::anon)).line("file", file);
  to.line("kernel", of(MemoryKind::kernel) + slab).line("kernel_stack", 0);
  to.line("sock", 0).line("shmem", of(MemoryKind::shmem));
  to.line("inactive_anon", of(MemoryKind::anon)).line("active_anon", 0);
  to.line("inactive_file", of(MemoryKind::file_inactive));
  to.line("active_file", of(MemoryKind::file_active)).line("unevictable", 0);
  to.line("slab_reclaimable", slab).line("slab_unreclaimable", of(MemoryKind::kernel));
  to.line("workingset_refault_anon", 0).line("workingset_refault_file", memory.refaults);
  to.line("pgscan", memory.pgscan).line("pgsteal", memory.pgsteal);
  to.line("pgscan_direct", 0).line("pgfault", memory.pgfault).line("pgmajfault", 0);
  return text;
}

}  // namespace

int CgroupKernel::read(std::uint64_t inode, std::string_view file, std::string& text) const {
  if (!cgroups_.contains(inode)) return ENODEV;
  if (!has_file(inode, file)) return ENOENT;
  const Cgroup& one = cgroups_.at(inode);
  const MemoryController& memory = one.memory;
  const auto most = [](std::uint64_t bytes) {
    return bytes == ~std::uint64_t{0} ? std::nullopt : std::optional(bytes);
  };
  Text to(text);
  if (file == "memory.current") to.number(memory.current);
  else if (file == "memory.stat") text = stat_text(memory, held_bytes(inode));
  else if (file == "cpu.stat") write_cpu_stat(to, one.cpu);
  else if (file == "memory.max") to.limit(memory.max);
  else if (file == "memory.high") to.limit(memory.high);
  else if (file == "memory.low") to.limit(most(memory.low));
  else if (file == "memory.min") to.limit(most(memory.min));
  else if (file == "memory.events") write_events(to, memory.events);
  else if (file == "memory.events.local") write_events(to, memory.local_events);
  else if (file == "memory.peak") to.number(memory.peak);
  else if (file == "memory.swap.max") to.limit(std::nullopt);
  else if (file == "memory.swap.current") to.number(0);
  else if (file == "memory.oom.group") to.number(memory.oom_group ? 1 : 0);
  else if (file == "cpu.max") write_bandwidth(to, one.cpu);
  else if (file == "cpu.max.burst") to.number(one.cpu.burst_usec);
  else if (file == "cpu.weight") to.number(one.cpu.weight);
  else if (file == "cpu.pressure") write_pressure(to, one.cpu_pressure, true);
  else if (file == "memory.pressure") write_pressure(to, one.memory_pressure, true);
  else if (file == "io.pressure") write_pressure(to, {}, true);
  else if (file == "pids.current") to.number(populated(inode) ? 1 : 0);
  else if (file == "cgroup.procs") text = pids_text(processes_, inode);
  else if (file == "cgroup.freeze") to.number(one.frozen ? 1 : 0);
  else if (file == "cgroup.events")
    to.line("populated", populated(inode) ? 1 : 0).line("frozen", one.frozen ? 1 : 0);
  else if (file == "cgroup.controllers" || file == "cgroup.subtree_control")
    to.words("cpu io memory pids\n");
  return 0;
}

int CgroupKernel::write_value(Cgroup& cgroup, std::string_view file, std::string_view text) {
  if (file == "cpu.max") return write_cpu_max(cgroup, text);
  if (file == "cpu.max.burst") return write_cpu_burst(cgroup, text);
  if (file == "cpu.weight") return write_cpu_weight(cgroup, text);
  if (file == "memory.reclaim") return parse_memory_text(text) ? 0 : EINVAL;
  if (file == "memory.max" || file == "memory.high" || file == "memory.low" ||
      file == "memory.min")
    return write_memory_limit(cgroup, file, text);
  if (file == "memory.oom.group" || file == "cgroup.freeze") {
    const auto number = parse_number_text(text);
    if (!number) return EINVAL;
    if (*number > 1) return file == "cgroup.freeze" ? ERANGE : EINVAL;
    (file == "cgroup.freeze" ? cgroup.frozen : cgroup.memory.oom_group) = *number == 1;
    return 0;
  }
  // Every controller is enabled everywhere, and a pressure trigger belongs to its descriptor.
  return is_pressure(file) || file == "cgroup.subtree_control" ? 0 : EINVAL;
}

int CgroupKernel::begin_write(std::uint64_t inode, std::string_view file, std::string_view text) {
  Cgroup* const one = at(inode);
  if (one == nullptr) return ENODEV;
  if (const int error = check_open(inode, file, true); error != 0) return error;
  return write_value(*one, file, text);
}

}  // namespace cgphase::simulator
