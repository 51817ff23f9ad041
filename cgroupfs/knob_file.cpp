#include "cgroupfs/knob_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>
#include <string>

#include "base/fd.h"
#include "base/parse.h"
#include "cgroupfs/cgroup_directory.h"
#include "cgroupfs/kernel_text.h"

namespace cgphase {
namespace {

std::unexpected<Error> refuse(Knob knob, std::string_view text) {
  return failure(ErrorKind::invalid, std::string(file_name(knob)) + ": '" +
                                         std::string(text.substr(0, 64)) +
                                         "' is not a value of this file");
}

std::string_view first_line(std::string_view text) { return trim(text.substr(0, text.find('\n'))); }

Status parse_cpu_max_into(std::string_view text, Limits& limits) {
  const auto limit = parse_cpu_max(text);
  if (!limit || limit->period.value < kSmallestPeriodUsec ||
      limit->period.value > kLargestPeriodUsec)
    return refuse(Knob::cpu_max, text);
  limits.cpu_max = limit;
  return {};
}

Status parse_memory_into(Knob knob, std::string_view text, std::optional<MemoryLimit>& field) {
  const auto limit = parse_limit(text);
  if (!limit) return refuse(knob, text);
  field = limit;
  return {};
}

std::uint64_t page_bytes() {
  static const long bytes = ::sysconf(_SC_PAGESIZE);
  return bytes > 0 ? static_cast<std::uint64_t>(bytes) : kPageBytes;
}

// Fills a KnobText piece by piece. The longest value (two 64-bit numbers) fits.
class TextBuilder {
 public:
  TextBuilder& text(std::string_view piece) {
    std::memcpy(at_, piece.data(), piece.size());
    at_ += piece.size();
    return *this;
  }
  TextBuilder& number(std::uint64_t value) {
    at_ = std::to_chars(at_, bytes_ + sizeof bytes_, value).ptr;
    return *this;
  }
  KnobText done() const {
    return KnobText::from({bytes_, static_cast<std::size_t>(at_ - bytes_)}).value_or(KnobText{});
  }

 private:
  char bytes_[64];
  char* at_ = bytes_;
};

std::unexpected<Error> out_of_bounds(Knob knob) {
  return failure(ErrorKind::invalid,
                 std::string(file_name(knob)) + ": the value is out of the kernel's bounds");
}

std::unexpected<Error> absent(Knob knob) {
  return failure(ErrorKind::not_found, std::string(file_name(knob)) + ": no value to write");
}

Result<KnobText> format_cpu_max(const Limits& limits) {
  if (!limits.cpu_max) return absent(Knob::cpu_max);
  const CpuMax& cpu = *limits.cpu_max;
  if (cpu.period.value < kSmallestPeriodUsec || cpu.period.value > kLargestPeriodUsec)
    return out_of_bounds(Knob::cpu_max);
  TextBuilder text;
  if (!cpu.quota) return text.text("max ").number(cpu.period.value).done();
  if (cpu.quota->value < kSmallestQuotaUsec || cpu.quota->value > kLargestQuotaUsec)
    return out_of_bounds(Knob::cpu_max);
  return text.number(cpu.quota->value).text(" ").number(cpu.period.value).done();
}

Result<KnobText> format_memory(Knob knob, const std::optional<MemoryLimit>& field) {
  if (!field) return absent(knob);
  if (!field->bytes) return TextBuilder().text("max").done();
  if (field->bytes->value > kLargestMemoryBytes) return out_of_bounds(knob);
  const std::uint64_t pages = (field->bytes->value + page_bytes() - 1) / page_bytes();
  return TextBuilder().number(pages * page_bytes()).done();
}

std::strong_ordering compare_memory(const std::optional<MemoryLimit>& after,
                                    const std::optional<MemoryLimit>& before) {
  if (!after || !before) return std::strong_ordering::equal;
  const auto key = [](const MemoryLimit& limit) {
    return limit.bytes ? limit.bytes->value : ~0ULL;
  };
  return key(*after) <=> key(*before);
}

std::strong_ordering compare_cpu(const std::optional<CpuMax>& after,
                                 const std::optional<CpuMax>& before) {
  if (!after || !before) return std::strong_ordering::equal;
  if (!after->quota || !before->quota) return !after->quota <=> !before->quota;
  // Compares quota / period without division. 128 bits are enough for every product.
  __extension__ using Wide = unsigned __int128;
  const Wide left = Wide{after->quota->value} * before->period.value;
  const Wide right = Wide{before->quota->value} * after->period.value;
  if (left == right) return std::strong_ordering::equal;
  return left < right ? std::strong_ordering::less : std::strong_ordering::greater;
}

template <class T>
std::strong_ordering compare_number(const std::optional<T>& after, const std::optional<T>& before) {
  if (!after || !before) return std::strong_ordering::equal;
  return *after <=> *before;
}

// ENOENT in a removed cgroup means that the cgroup is gone, not only the file.
std::unexpected<Error> classify(int directory_fd, const char* name, int error_number) {
  if (error_number == ENODEV || !directory_alive(directory_fd))
    return failure(ErrorKind::gone, std::string(name) + ": the cgroup was removed");
  return errno_failure(name, error_number);
}

// Memory is allocated only for errors.
Result<std::string_view> read_small(int directory_fd, const char* name, std::span<char> buffer) {
  const Fd fd(::openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return classify(directory_fd, name, errno);
  auto text = pread_text(fd.get(), buffer);
  if (!text && text.error().kind == ErrorKind::gone) return classify(directory_fd, name, ENODEV);
  // A part of a number is also a number. Taken for the value, it would look like somebody else's
  // write.
  if (text && !text->ends_with('\n'))
    return failure(ErrorKind::io, std::string(name) + ": the text was cut short");
  return text;
}

// A plain file, as in tests, keeps the rest of a longer text; the kernel's files have no size. The
// file is cut after the write and not before, so that its first line is complete at any moment.
void cut_plain_file(int fd, off_t bytes) {
  struct stat status;
  if (::fstat(fd, &status) != 0 || status.st_size <= bytes) return;
  // Readers ignore everything after the first line, so a failure does no harm.
  if (::ftruncate(fd, bytes) != 0) return;
}

}  // namespace

std::optional<KnobText> KnobText::from(std::string_view text) {
  if (text.size() >= kKnobTextBytes) return std::nullopt;
  KnobText result;
  std::memcpy(result.bytes_.data(), text.data(), text.size());
  return result;
}

std::string_view KnobText::view() const {
  return {bytes_.data(), ::strnlen(bytes_.data(), bytes_.size())};
}

Status parse_knob(Knob knob, std::string_view text, Limits& limits) {
  const std::string_view line = first_line(text);
  switch (knob) {
    case Knob::cpu_max: return parse_cpu_max_into(line, limits);
    case Knob::memory_max: return parse_memory_into(knob, line, limits.memory_max);
    case Knob::memory_high: return parse_memory_into(knob, line, limits.memory_high);
    case Knob::cpu_max_burst:
    case Knob::cpu_weight:
    case Knob::cgroup_freeze: break;
  }
  const auto number = parse_u64(line);
  if (!number) return refuse(knob, line);
  if (knob == Knob::cpu_max_burst) {
    limits.cpu_max_burst = Microseconds{*number};
    return {};
  }
  if (knob == Knob::cgroup_freeze) {
    if (*number > 1) return refuse(knob, line);
    limits.frozen = *number == 1;
    return {};
  }
  if (*number > kLargestWeight) return refuse(knob, line);
  limits.cpu_weight = static_cast<std::uint32_t>(*number);
  return {};
}

Result<KnobText> format_knob(Knob knob, const Limits& limits) {
  switch (knob) {
    case Knob::cpu_max: return format_cpu_max(limits);
    case Knob::cpu_max_burst:
      if (!limits.cpu_max_burst) return absent(knob);
      if (limits.cpu_max_burst->value > kLargestQuotaUsec) return out_of_bounds(knob);
      return TextBuilder().number(limits.cpu_max_burst->value).done();
    case Knob::cpu_weight:
      if (!limits.cpu_weight) return absent(knob);
      if (*limits.cpu_weight < kSmallestWeight || *limits.cpu_weight > kLargestWeight)
        return out_of_bounds(knob);
      return TextBuilder().number(*limits.cpu_weight).done();
    case Knob::memory_max: return format_memory(knob, limits.memory_max);
    case Knob::memory_high: return format_memory(knob, limits.memory_high);
    case Knob::cgroup_freeze:
      if (!limits.frozen) return absent(knob);
      return TextBuilder().number(*limits.frozen ? 1 : 0).done();
  }
  return absent(knob);
}

Result<KnobText> normal_text(Knob knob, std::string_view text) {
  Limits limits;
  if (Status parsed = parse_knob(knob, text, limits); !parsed)
    return std::unexpected(parsed.error());
  return format_knob(knob, limits);
}

bool same_value(Knob knob, const KnobText& left, const KnobText& right) {
  if (left == right) return true;
  const auto normal_left = normal_text(knob, left.view());
  const auto normal_right = normal_text(knob, right.view());
  return normal_left && normal_right && *normal_left == *normal_right;
}

std::strong_ordering compare_knob(Knob knob, const Limits& after, const Limits& before) {
  switch (knob) {
    case Knob::cpu_max: return compare_cpu(after.cpu_max, before.cpu_max);
    case Knob::cpu_max_burst: return compare_number(after.cpu_max_burst, before.cpu_max_burst);
    case Knob::cpu_weight: return compare_number(after.cpu_weight, before.cpu_weight);
    case Knob::memory_max: return compare_memory(after.memory_max, before.memory_max);
    case Knob::memory_high: return compare_memory(after.memory_high, before.memory_high);
    case Knob::cgroup_freeze: return compare_number(before.frozen, after.frozen);
  }
  return std::strong_ordering::equal;
}

void copy_knob(Knob knob, const Limits& from, Limits& to) {
  switch (knob) {
    case Knob::cpu_max: to.cpu_max = from.cpu_max; return;
    case Knob::cpu_max_burst: to.cpu_max_burst = from.cpu_max_burst; return;
    case Knob::cpu_weight: to.cpu_weight = from.cpu_weight; return;
    case Knob::memory_max: to.memory_max = from.memory_max; return;
    case Knob::memory_high: to.memory_high = from.memory_high; return;
    case Knob::cgroup_freeze: to.frozen = from.frozen; return;
  }
}

std::optional<KnobText> cut_to_quota(const KnobText& burst, const KnobText& quota) {
  Limits limits;
  if (!parse_knob(Knob::cpu_max, quota.view(), limits) ||
      !parse_knob(Knob::cpu_max_burst, burst.view(), limits))
    return std::nullopt;
  const std::optional<Microseconds> most = limits.cpu_max->quota;
  if (!most || *limits.cpu_max_burst <= *most) return std::nullopt;
  return KnobText::from(std::to_string(most->value));
}

std::array<Knob, kKnobCount> write_order(const Limits& before, const Limits& after) {
  const auto rises = [&](Knob first, Knob second) {
    const auto direction = compare_knob(first, after, before);
    return direction != 0 ? direction > 0 : compare_knob(second, after, before) > 0;
  };
  std::array<Knob, kKnobCount> order = {Knob::cpu_max_burst, Knob::cpu_max, Knob::cpu_weight,
                                        Knob::memory_high, Knob::memory_max,
                                        Knob::cgroup_freeze};
  if (rises(Knob::cpu_max, Knob::cpu_max_burst)) std::swap(order[0], order[1]);
  if (rises(Knob::memory_max, Knob::memory_high)) std::swap(order[3], order[4]);
  return order;
}

Result<KnobText> read_knob(int directory_fd, Knob knob) {
  std::array<char, kKnobFileBytes> buffer;
  const auto text = read_small(directory_fd, file_name(knob), buffer);
  if (!text) return std::unexpected(text.error());
  const auto value = KnobText::from(first_line(*text));
  if (!value) return refuse(knob, *text);
  return *value;
}

Result<Limits> read_limits(int directory_fd) {
  Limits limits;
  std::array<char, kKnobFileBytes> buffer;
  for (const Knob knob : kKnobs) {
    const auto text = read_small(directory_fd, file_name(knob), buffer);
    if (!text && text.error().kind == ErrorKind::not_found) continue;
    if (!text) return std::unexpected(text.error());
    if (Status parsed = parse_knob(knob, *text, limits); !parsed)
      return std::unexpected(parsed.error());
  }
  if (const auto low = read_small(directory_fd, "memory.low", buffer))
    limits.memory_low = scan_limit(*low);
  if (const auto min = read_small(directory_fd, "memory.min", buffer))
    limits.memory_min = scan_limit(*min);
  return limits;
}

Status write_knob(int directory_fd, Knob knob, const KnobText& text) {
  const char* name = file_name(knob);
  const Fd fd(::openat(directory_fd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid() || !write_open_knob(fd.get(), text)) return classify(directory_fd, name, errno);
  return {};
}

bool write_open_knob(int fd, const KnobText& text) {
  std::array<char, kKnobTextBytes + 1> line;
  const std::string_view value = text.view();
  std::memcpy(line.data(), value.data(), value.size());
  line[value.size()] = '\n';
  const ssize_t count = ::pwrite(fd, line.data(), value.size() + 1, 0);
  if (count <= 0) return false;
  cut_plain_file(fd, count);
  return true;
}

}  // namespace cgphase
