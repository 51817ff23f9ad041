// The open files of one container that the fast path watches. The model plane opens and closes
// them. The fast path's thread reads and writes them and allocates nothing here.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "cgroupfs/knob_file.h"
#include "control/fast_path/rule.h"

namespace cgphase {

// Descriptors that the fast path leaves to the rest of the process, above all to the writer.
inline constexpr int kSpareDescriptors = 64;
// Whether `fd` is one of them. This works because the kernel assigns the lowest free number.
bool is_spare(const Fd& fd);

class FastPathFiles {
 public:
  // Skips a file that this kernel or this cgroup does not have. Errors: gone (see watches()), io
  // (descriptors ran out, so that a rule could not read).
  Status open(int directory_fd, Knob must_watch);
  void close();
  // Whether `knob` can be raised and the files that its rules need can be read. After a controller
  // was disabled, open files fail with ENODEV, even if it is enabled again. Errors: gone.
  Status watches(Knob knob) const;

  // Reads the values that the rules need. `with_high`: memory.high is leased, so its delay counts.
  void read(FastPathReading& reading, bool with_high) const;
  void read_detail(FastPathReading& reading) const;
  std::optional<KnobText> read(Knob knob) const;
  bool write(Knob knob, const KnobText& value) const;

 private:
  void read_pressure(FastPathReading& reading) const;

  std::array<Fd, kKnobCount> knobs_;
  Fd memory_current_, memory_stat_, memory_swap_, memory_events_, memory_pressure_, cpu_stat_,
      cgroup_events_;
};

}  // namespace cgphase
