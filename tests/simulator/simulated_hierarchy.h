// The simulated kernel as a Hierarchy.
#pragma once

#include <optional>
#include <string>

#include "tests/simulator/cgroup_kernel.h"
#include "tests/simulator/kernel_claims.h"

namespace cgphase::simulator {

class SimulatedHierarchy final : public Hierarchy {
 public:
  int make(const std::string& path) override;
  int remove(const std::string& path) override;
  std::uint64_t inode(const std::string& path) override;
  int write(const std::string& path, const std::string& file, const std::string& text) override;
  std::string read(const std::string& path, const std::string& file) override;
  int hold(const std::string& path, const std::string& file) override;
  std::string read_held() override;
  int write_held(const std::string& text) override;
  int hold_directory(const std::string& path) override;
  int open_in_held(const std::string& file) override;
  int spawn(const std::string& path) override;
  bool alive(int process) override { return kernel_.alive(process); }
  void end(int process) override { kernel_.end(process); }
  void take_anon(int process, std::uint64_t bytes) override;
  void take_shmem(int process, std::uint64_t bytes) override;
  void take_file(int process, std::uint64_t bytes) override;
  void spin(int process, int milliseconds) override;

 private:
  void take(int process, MemoryKind kind, std::uint64_t bytes);
  std::string read_text(std::uint64_t inode, const std::string& file) const;

  CgroupKernel kernel_{{.cores = 1, .pressure = false}};
  std::uint64_t held_ = 0, held_directory_ = 0;
  std::string held_file_;
};

}  // namespace cgphase::simulator
