// The open descriptors of the simulated hierarchy. Any thread may use it.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

namespace cgphase::simulator {

// Far above the numbers that the real kernel uses.
inline constexpr int kFirstDescriptor = 1 << 24;

struct OpenFile {
  std::uint64_t inode = 0;
  std::string_view file;  // static text; empty: the directory
  std::size_t offset = 0;
  bool open = false;
};

class Descriptors {
 public:
  static bool simulated(int fd) { return fd >= kFirstDescriptor; }
  int add(const OpenFile& file);
  // Absent means EBADF.
  std::optional<OpenFile> find(int fd);
  void advance(int fd, std::size_t bytes);
  bool close(int fd);
  std::size_t count();

 private:
  std::mutex mutex_;
  std::vector<OpenFile> files_;
  std::vector<int> free_;
};

}  // namespace cgphase::simulator
