// Reports which programs start in containers, and which of them read the container's limits
// (programs.bpf.c).
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

// Parses a record of the ring buffer (program_record.h). Absent if it is too short, or if the
// action is unknown.
std::optional<ProgramAct> parse_program_act(std::span<const std::byte> record);

// Owned and used by one thread, except the result of starts().
class ProgramProbe {
 public:
  // Errors: unsupported, denied, and other errors of the kernel (collectors/ebpf/probe.h).
  static Result<ProgramProbe> start();
  ProgramProbe(ProgramProbe&&) noexcept;
  ProgramProbe& operator=(ProgramProbe&&) noexcept;
  ~ProgramProbe();

  // Turns reports of one container on or off. False if the kernel has no room for more.
  bool watch(std::uint64_t container, bool wanted);
  // As ProbeSource::ignore_program().
  void ignore(std::uint64_t container, std::uint64_t key, bool ignored);
  // As ProbeSource::drain_program_acts().
  std::vector<ProgramAct> drain();
  // The reported actions: "starts and reads", or "starts" if this kernel cannot report reads.
  std::string tier() const;
  bool reports_reads() const;
  // Number of actions that were lost because the ring was full.
  std::uint64_t lost() const;
  // The result may outlive this object.
  std::shared_ptr<ProgramStarts> starts() const;

 private:
  struct Impl;
  explicit ProgramProbe(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace cgphase
