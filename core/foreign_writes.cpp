#include "core/foreign_writes.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>

#include "base/parse.h"
#include "base/text.h"

namespace cgphase {
namespace {

constexpr std::string_view kMaxWord = "max";
constexpr std::size_t kMostText = 255;

// What the kernel makes of a value for memory.max or memory.high: whole pages.
bool sets_memory(std::string_view value, const MemoryLimit& limit) {
  if (value == kMaxWord) return !limit.bytes;
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::optional<std::uint64_t> bytes = parse_bytes(value);
  return bytes && limit.bytes && *bytes / page * page == limit.bytes->value;
}

// "QUOTA PERIOD" or "QUOTA"; one that is not given stays as it was.
bool sets_cpu(std::string_view value, const CpuMax& limit) {
  std::string_view quota, period;
  if (!next_word(value, quota)) return false;
  const bool same_quota = quota == kMaxWord ? !limit.quota
                                            : limit.quota && parse_u64(quota) == limit.quota->value;
  return same_quota && (!next_word(value, period) || parse_u64(period) == limit.period.value);
}

// Whether what was written is what is in force.
bool in_force(const LimitWrite& write, const Limits& limits) {
  if (write.file == "memory.max")
    return limits.memory_max && sets_memory(write.value, *limits.memory_max);
  if (write.file == "memory.high")
    return limits.memory_high && sets_memory(write.value, *limits.memory_high);
  if (write.file == "cpu.max") return limits.cpu_max && sets_cpu(write.value, *limits.cpu_max);
  return limits.cpu_max_burst && parse_u64(write.value) == limits.cpu_max_burst->value;
}

// A name that others choose, or what they wrote: in quotes where it has anything that could pass
// for words of ours ("systemd (pid 1,"). The journal takes no more than a kibibyte of all.
std::string named(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@+/\\";
  // Again, for the cut may go through a character.
  const std::string name = printable(escape_name(text).substr(0, kMostText));
  if (!name.empty() && name.find_first_not_of(kPlain) == std::string::npos) return name;
  std::string quoted = "\"";
  for (const char byte : name) {
    if (byte == '"') quoted += '\\';
    quoted += byte;
  }
  return quoted + '"';
}

// What the kernel took as a limit may be followed by what it did not read: two words at most.
std::string value_text(const std::string& value) {
  std::string_view rest = value, first, second;
  (void)next_word(rest, first);
  return next_word(rest, second) && trim(rest).empty()
             ? named(std::string(first)) + " " + named(std::string(second))
             : named(value);
}

std::string text_of(const LimitWrite& write) {
  std::string text = named(write.command) + " (pid " + std::to_string(write.pid);
  if (!write.writer_path.empty()) text += ", " + named(unit_of(write.writer_path));
  return text + ") wrote " + write.file + " " + value_text(write.value);
}

bool same_again(const LimitWrite& a, const LimitWrite& b) {
  return a.pid == b.pid && a.file == b.file && a.value == b.value;
}

}  // namespace

std::string unit_of(const CgroupPath& path) {
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::size_t slash = rest.rfind('/');
    const std::string_view name = rest.substr(slash + 1);  // npos + 1 is 0
    if (name.ends_with(".service") || name.ends_with(".scope")) return std::string(name);
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(0, slash);
  }
  return path;
}

void ForeignWrites::observe(std::vector<LimitWrite> writes, std::span<const Reading> readings,
                            MonotonicTime begin) {
  std::vector<LimitWrite> all = std::exchange(waiting_, {}), changing;
  std::ranges::move(writes, std::back_inserter(all));
  std::vector<CgroupId> containers;
  for (const Reading& reading : readings) containers.push_back(reading.container);
  for (LimitWrite& write : all) {
    const auto reading = std::ranges::find(readings, write.directory, [](const Reading& one) {
      return one.container.inode;
    });
    if (reading == readings.end()) continue;
    if (in_force(write, *reading->now) && !in_force(write, *reading->before))
      changing.push_back(std::move(write));
    else if (write.time >= begin && waiting_.size() < kWaiting)
      waiting_.push_back(std::move(write));
  }
  remember(std::move(changing), containers);
}

void ForeignWrites::remember(std::vector<LimitWrite> writes, std::span<const CgroupId> containers) {
  for (LimitWrite& write : writes) {
    if (std::ranges::find(containers, write.directory, &CgroupId::inode) == containers.end())
      continue;
    std::deque<LimitWrite>& known = writes_[write.directory];
    std::erase_if(known, [&](const LimitWrite& old) { return same_again(old, write); });
    if (known.size() == kRemembered) known.pop_front();
    known.push_back(std::move(write));
  }
}

std::string ForeignWrites::writer(CgroupId container, const Limits& limits,
                                  MonotonicTime since) const {
  const auto known = writes_.find(container.inode);
  if (known == writes_.end()) return {};
  for (const LimitWrite& write : std::views::reverse(known->second))
    if (write.time >= since && in_force(write, limits)) return text_of(write);
  return {};
}

}  // namespace cgphase
