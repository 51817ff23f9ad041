// Which programs start in containers, and which read the container's limits (programs.bpf.c).
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
#include "base/program_starts.h"

namespace cgphase {

// A record of the ring buffer (program_record.h). Nothing where it is shorter than one, or of an
// unknown act.
std::optional<ProgramAct> parse_program_act(std::span<const std::byte> record);

// Owned and used by one thread, but for what starts() gives.
class ProgramProbe {
 public:
  // Errors: unsupported, denied, and what the kernel says besides (collectors/ebpf/probe.h).
  static Result<ProgramProbe> start();
  ProgramProbe(ProgramProbe&&) noexcept;
  ProgramProbe& operator=(ProgramProbe&&) noexcept;
  ~ProgramProbe();

  // Of one container from now on, or no longer. False where the kernel has no room for more.
  bool watch(std::uint64_t container, bool wanted);
  // As ProbeSource::ignore_program().
  void ignore(std::uint64_t container, std::uint64_t key, bool ignored);
  // As ProbeSource::take_program_acts().
  std::vector<ProgramAct> take();
  // What is told: "starts and reads", or "starts" where this kernel tells of no more.
  std::string tier() const;
  bool tells_reads() const;
  // Acts that nobody will tell of: there were more at once than the ring has room for.
  std::uint64_t lost() const;
  // Outlives this object.
  std::shared_ptr<ProgramStarts> starts() const;

 private:
  struct Impl;
  explicit ProgramProbe(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace cgphase
