// Who writes the files with limits (limit_writes.bpf.c): from the kernel's ring buffer to nouns.
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

// A record of the ring buffer (limit_write_record.h), without writer_path. Nothing where it is
// shorter than one, or of a file that is no limit.
std::optional<LimitWrite> parse_limit_write(std::span<const std::byte> record);

// Owned and used by one thread.
class LimitWriteProbe {
 public:
  // Tells of what all processes but this one write from now on. Errors: unsupported, denied, and
  // what the kernel says besides (collectors/ebpf/probe.h).
  static Result<LimitWriteProbe> start(const std::string& cgroup_root);
  LimitWriteProbe(LimitWriteProbe&&) noexcept;
  LimitWriteProbe& operator=(LimitWriteProbe&&) noexcept;
  ~LimitWriteProbe();

  // As ProbeSource::take_limit_writes().
  std::vector<LimitWrite> take();
  // Writes that nobody will tell of: there were more at once than the ring has room for.
  std::uint64_t lost() const;

 private:
  struct Impl;
  explicit LimitWriteProbe(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
