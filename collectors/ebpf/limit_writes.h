// Reports which processes write limit files (limit_writes.bpf.c). It converts records of the
// kernel's ring buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "collectors/ebpf/probe_source.h"

namespace cgphase {

// Parses a record of the ring buffer (limit_write_record.h), without writer_path. Absent if it is
// too short, or if the file is not a limit.
std::optional<LimitWrite> parse_limit_write(std::span<const std::byte> record);

// Owned and used by one thread.
class LimitWriteProbe {
 public:
  // Reports writes by all processes except this one from now on. Errors: unsupported, denied, and
  // other errors of the kernel (collectors/ebpf/probe.h).
  static Result<LimitWriteProbe> start(const std::string& cgroup_root);
  LimitWriteProbe(LimitWriteProbe&&) noexcept;
  LimitWriteProbe& operator=(LimitWriteProbe&&) noexcept;
  ~LimitWriteProbe();

  // As ProbeSource::drain_limit_writes().
  std::vector<LimitWrite> drain();
  // Number of writes that were lost because the ring was full.
  std::uint64_t lost() const;

 private:
  struct Impl;
  explicit LimitWriteProbe(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
