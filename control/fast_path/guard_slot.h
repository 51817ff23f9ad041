// The descriptors of one container that the guard watches. Opened and closed by the model plane;
// read and written by the guard's thread, which allocates nothing here.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "cgroupfs/knob_file.h"
#include "control/fast_path/guard_rule.h"

namespace cgphase {

// Descriptors that the guard leaves to the rest of the process, the writer before all.
inline constexpr int kSpareDescriptors = 64;
// Whether `fd` is one of them: the kernel gives out the lowest that is free.
bool is_spare(const Fd& fd);

class GuardFiles {
 public:
  // A file that this kernel or this cgroup does not have is left out. Errors: gone (see watches()),
  // io (descriptors ran out, so that a rule would be blind).
  Status open(int directory_fd, Knob must_watch);
  void close();
  // Whether `knob` can be raised, and what its rules read is there: files held open say ENODEV once
  // their controller was switched off, also after it is on again. Errors: gone.
  Status watches(Knob knob) const;

  // What the rule wants to know; `with_high`: memory.high is leased, so its delay counts.
  void read(GuardReading& reading, bool with_high) const;
  void read_detail(GuardReading& reading) const;
  std::optional<KnobText> read(Knob knob) const;
  bool write(Knob knob, const KnobText& value) const;

 private:
  void read_pressure(GuardReading& reading) const;

  std::array<Fd, kKnobCount> knobs_;
  Fd memory_current_, memory_stat_, memory_swap_, memory_events_, memory_pressure_, cpu_stat_,
      cgroup_events_;
  bool plain_ = false;  // a plain directory in tests: a shorter text must cut the file
};

}  // namespace cgphase
