#include "tests/simulator/simulated_hierarchy.h"

#include <cerrno>

#include "base/result.h"
#include "base/units.h"

namespace cgphase::simulator {

int SimulatedHierarchy::make(const std::string& path) { return kernel_.make(path); }
int SimulatedHierarchy::remove(const std::string& path) { return kernel_.remove(path); }

std::uint64_t SimulatedHierarchy::inode(const std::string& path) {
  return kernel_.find(path).value_or(0);
}

int SimulatedHierarchy::write(const std::string& path, const std::string& file,
                              const std::string& text) {
  const auto found = kernel_.find(path);
  if (!found) return ENOENT;
  if (const int error = kernel_.check_open(*found, file, true); error != 0) return error;
  return kernel_.write(*found, file, text);
}

std::string SimulatedHierarchy::read_text(std::uint64_t inode, const std::string& file) const {
  std::string text;
  const int error = kernel_.read(inode, file, text);
  if (error != 0) return errno_word(error);
  return text.substr(0, text.empty() ? 0 : text.size() - 1);
}

std::string SimulatedHierarchy::read(const std::string& path, const std::string& file) {
  const auto found = kernel_.find(path);
  if (!found) return errno_word(ENOENT);
  if (const int error = kernel_.check_open(*found, file, false); error != 0)
    return errno_word(error);
  return read_text(*found, file);
}

int SimulatedHierarchy::hold(const std::string& path, const std::string& file) {
  held_ = kernel_.find(path).value_or(0);
  held_file_ = file;
  return kernel_.has_file(held_, file) ? 0 : ENOENT;
}

std::string SimulatedHierarchy::read_held() { return read_text(held_, held_file_); }

int SimulatedHierarchy::write_held(const std::string& text) {
  return kernel_.write(held_, held_file_, text);
}

int SimulatedHierarchy::hold_directory(const std::string& path) {
  held_directory_ = kernel_.find(path).value_or(0);
  return held_directory_ == 0 ? ENOENT : 0;
}

int SimulatedHierarchy::open_in_held(const std::string& file) {
  return kernel_.check_open(held_directory_, file, false);
}

int SimulatedHierarchy::spawn(const std::string& path) { return kernel_.spawn(inode(path)); }

// Memory is charged page by page, so a limit is reached on the way.
void SimulatedHierarchy::take(int process, MemoryKind kind, std::uint64_t bytes) {
  constexpr std::uint64_t kPiece = 32 * kSimulatedPage;
  for (std::uint64_t taken = 0; taken < bytes; taken += kPiece)
    if (!kernel_.allocate(process, kind, kPiece)) return;
}

void SimulatedHierarchy::take_anon(int process, std::uint64_t bytes) {
  take(process, MemoryKind::anon, bytes);
}
void SimulatedHierarchy::take_shmem(int process, std::uint64_t bytes) {
  take(process, MemoryKind::shmem, bytes);
}
void SimulatedHierarchy::take_file(int process, std::uint64_t bytes) {
  take(process, MemoryKind::file_inactive, bytes);
}

void SimulatedHierarchy::spin(int process, int milliseconds) {
  kernel_.want_cores(process, 1);
  kernel_.advance(static_cast<std::uint64_t>(milliseconds) * 1000);
  kernel_.want_cores(process, 0);
}

}  // namespace cgphase::simulator
