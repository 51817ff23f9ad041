#include "control/memory_reading.h"

#include <fcntl.h>

#include <array>
#include <string>

#include "base/fd.h"
#include "base/parse.h"
#include "collectors/sample.h"
#include "control/knob_file.h"

namespace cgphase {
namespace {

struct Field {
  std::string_view name;
  Counter MemoryStat::*into;
};
constexpr std::array<Field, 8> kFields = {
    {{"anon", &MemoryStat::anon_bytes},
     {"file", &MemoryStat::file_bytes},
     {"shmem", &MemoryStat::shmem_bytes},
     {"unevictable", &MemoryStat::unevictable_bytes},
     {"inactive_file", &MemoryStat::inactive_file_bytes},
     {"active_file", &MemoryStat::active_file_bytes},
     {"kernel", &MemoryStat::kernel_bytes},
     {"slab_reclaimable", &MemoryStat::slab_reclaimable_bytes}}};

// What `kernel` is made of, which has no sockets in it; older kernels have only these.
constexpr std::array<std::string_view, 4> kKernelParts = {"kernel_stack", "pagetables", "percpu",
                                                          "slab"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  for (const std::string_view one : names)
    if (one == name) return true;
  return false;
}

Result<std::string_view> read_text(int directory_fd, const char* name, std::span<char> buffer) {
  const auto fd = open_at(directory_fd, name, O_RDONLY | O_NOFOLLOW);
  if (!fd && !directory_alive(directory_fd))
    return failure(ErrorKind::gone, std::string(name) + ": the cgroup was removed");
  if (!fd) return std::unexpected(fd.error());
  const auto text = pread_text(fd->get(), buffer);
  if (text && !text->ends_with('\n'))
    return failure(ErrorKind::io, std::string(name) + ": cut short");
  return text;
}

}  // namespace

std::optional<Bytes> need_of(std::string_view memory_stat, Bytes swap_current) {
  Sample sample;
  std::uint64_t kernel_parts = 0, sockets = 0;
  std::string_view line, name, number;
  while (next_line(memory_stat, line)) {
    if (!next_word(line, name) || !next_word(line, number)) continue;
    const auto value = parse_u64(number);
    if (!value) continue;
    for (const Field& field : kFields)
      if (field.name == name) sample.memory.*field.into = *value;
    if (contains(kKernelParts, name)) kernel_parts += *value;
    if (name == "sock") sockets = *value;
  }
  sample.memory.kernel_bytes = sample.memory.kernel_bytes.value_or(kernel_parts) + sockets;
  sample.swap_current = swap_current;
  return memory_need(sample);
}

Result<Bytes> read_byte_count(int directory_fd, const char* name) {
  std::array<char, 64> buffer;
  const auto text = read_text(directory_fd, name, buffer);
  if (!text) return std::unexpected(text.error());
  const auto value = parse_u64(trim(*text));
  if (!value) return failure(ErrorKind::invalid, std::string(name) + ": not a number");
  return Bytes{*value};
}

Result<Bytes> read_memory_need(int directory_fd) {
  std::array<char, kMemoryStatBytes> buffer;
  const auto text = read_text(directory_fd, "memory.stat", buffer);
  if (!text) return std::unexpected(text.error());
  // Without swap there is no such file.
  const auto swap = read_byte_count(directory_fd, "memory.swap.current");
  const auto need = need_of(*text, swap.value_or(Bytes{}));
  if (!need) return failure(ErrorKind::invalid, "memory.stat: no anon line");
  return *need;
}

}  // namespace cgphase
