// The space on the disk that the history lies on: how much is left, and a reserve that is given up
// when there is none, so that decisions can still be written (docs/internals/storage.md,
// "Durability").
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"

namespace cgphase {

// Owned by the thread that owns the Store. Without `min_free` nothing is held back and there is no
// reserve. That is a file beside the database, PATH.reserve, whose blocks are allocated.
class DiskSpace {
 public:
  // `path` is of the database; ":memory:" has space without end and no reserve.
  DiskSpace(std::string path, Bytes min_free, Bytes reserve);

  // Looks how much is free. Whether samples must not be written: from less than min_free on, until
  // there is room for that and the reserve, which is taken then, or taken again.
  bool scarce();
  // A write found the disk full, whatever a look says: holding() until the next look.
  void found_full();
  // The same, and the reserve is given up; false where there was none.
  bool give_up_reserve();

  // As scarce() said last.
  bool holding() const { return holding_; }
  // What is wrong, for people: that, or that the file system is read-only, which open files need
  // not notice (ext4 with delayed allocation). Empty while all is well.
  std::string reason() const;

 private:
  bool read_only() const;
  std::optional<std::uint64_t> free_bytes() const;
  void take_reserve(std::uint64_t free_bytes);

  std::string path_, reserve_path_;
  std::uint64_t min_free_, reserve_;
  bool holding_ = false, full_ = false;
  std::uint64_t seen_free_ = 0;
};

}  // namespace cgphase
