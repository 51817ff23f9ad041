#include "cgroupfs/memory_reading.h"

#include <fcntl.h>

#include <array>
#include <string>

#include "base/fd.h"
#include "base/parse.h"
#include "cgroupfs/cgroup_directory.h"
#include "cgroupfs/cgroup_stats.h"
#include "cgroupfs/kernel_text.h"
#include "cgroupfs/knob_file.h"

namespace cgphase {
namespace {

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
  const auto current = read_byte_count(directory_fd, "memory.current");
  if (!current) return std::unexpected(current.error());
  const auto text = read_text(directory_fd, "memory.stat", buffer);
  if (!text) return std::unexpected(text.error());
  // The file does not exist on a kernel without swap.
  const auto swap = read_byte_count(directory_fd, "memory.swap.current");
  if (!swap && swap.error().kind != ErrorKind::not_found) return std::unexpected(swap.error());
  const auto need = memory_need(scan_memory_stat(*text), *current,
                                swap ? std::optional(*swap) : std::nullopt);
  if (!need) return failure(ErrorKind::invalid, "memory.stat: no anon, file or kernel line");
  return *need;
}

}  // namespace cgphase
