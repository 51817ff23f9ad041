#include "collectors/ebpf/per_cpu_map.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/parse.h"

namespace cgphase {
namespace {

constexpr std::size_t kAtOnce = 64;
}  // namespace

std::size_t possible_processors() {
  return static_cast<std::size_t>(std::max(1, libbpf_num_possible_cpus()));
}

PerCpuMap::PerCpuMap(int fd, std::size_t record_bytes, std::size_t max_entries)
    : fd_(fd),
      max_entries_(max_entries),
      entry_bytes_(record_bytes * possible_processors()),
      keys_(std::min(kAtOnce, max_entries)),
      records_(keys_.size() * entry_bytes_) {}

Status PerCpuMap::read(const Take& take) {
  std::uint64_t position = 0;  // opaque position of the kernel
  bool first = true;
  for (;;) {
    auto count = static_cast<__u32>(keys_.size());
    const int error = bpf_map_lookup_batch(fd_, first ? nullptr : &position, &position,
                                           keys_.data(), records_.data(), &count, nullptr);
    // One bucket of the hash has more entries than fit here.
    if (error == -ENOSPC && keys_.size() < max_entries_) {
      keys_.resize(std::min(2 * keys_.size(), max_entries_));
      records_.resize(keys_.size() * entry_bytes_);
      continue;
    }
    if (error != 0 && error != -ENOENT)
      return errno_failure("reading a map of the kernel", -error);
    for (std::size_t i = 0; i < count; ++i)
      take(keys_[i], std::span(records_).subspan(i * entry_bytes_, entry_bytes_));
    if (error == -ENOENT) return {};  // end of the map
    first = false;
  }
}

void PerCpuMap::lookup(std::uint64_t cgroup, const Take& take) {
  if (bpf_map_lookup_elem(fd_, &cgroup, records_.data()) == 0)
    take(cgroup, std::span(records_).first(entry_bytes_));
}

void PerCpuMap::remove(std::uint64_t cgroup) { (void)bpf_map_delete_elem(fd_, &cgroup); }

std::uint64_t map_memory_bytes(int fd) {
  const auto account = read_file("/proc/self/fdinfo/" + std::to_string(fd), 4096);
  if (!account) return 0;
  std::string_view rest = *account, line;
  while (next_line(rest, line)) {
    std::string_view word;
    if (next_word(line, word) && word == "memlock:" && next_word(line, word))
      return parse_u64(word).value_or(0);
  }
  return 0;
}

}  // namespace cgphase
