// NVIDIA's GPUs as the driver's own library tells of them.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "collectors/gpu/gpu_reading.h"
#include "collectors/gpu/nvml_library.h"

namespace cgphase {

// Owned and used by one thread; a call takes as long as the driver does.
class NvmlGpus {
 public:
  // Without a driver, or after it was lost, the library is tried anew at most so often: loading it
  // may make the driver wake its devices.
  static constexpr std::chrono::seconds kProbe{60};
  // Drivers take a sample at least once a second: a process without a new one for longer is idle.
  static constexpr std::chrono::seconds kIdle{2};
  // Which GPUs there are, and whether they are divided, is asked once in this time, and again after
  // any trouble: whether one is divided takes 0.3 ms, a tenth of a reading and more. Instances are
  // asked for each time, as handles of those that are gone may come to stand for others.
  static constexpr std::chrono::seconds kLook{10};

  explicit NvmlGpus(std::string path) : path_(std::move(path)) {}

  // Adds devices and clients (without cgroups) to `reading`. What could not be read is absent.
  void read(MonotonicTime now, GpuReading& reading);
  // What the last read() came to: why there are no devices, or which of them told nothing. Empty
  // where all is well.
  const std::string& trouble() const { return trouble_; }
  // There is, or was, a driver behind the library.
  bool present() const { return present_; }

 private:
  // Of one process on one device; absent: told nothing of yet.
  struct Busy {
    MonotonicTime heard;
    GpuStat use;
  };
  // What has to be kept of a device from one reading to the next.
  struct History {
    std::optional<unsigned long long> last_seen_usec;
    MonotonicTime newer;  // when something newer was told, or all was asked for
    bool asked = false;
    std::map<unsigned, Busy> processes;
  };

  // A whole GPU, or an instance of one.
  struct Unit {
    nvml::Device device = nullptr;
    std::string id, name;
    std::optional<NvmlLibrary::Instance> instance;
  };

  bool open(MonotonicTime now);
  void look(unsigned count);
  void look_at(unsigned index);
  void add_unit(nvml::Device device, std::optional<NvmlLibrary::Instance> instance);
  void read_unit(const Unit& unit, MonotonicTime now, GpuReading& reading);
  void add_processes(const Unit& unit, MonotonicTime now, GpuReading& reading);
  // False where the device does not tell how busy processes are.
  bool hear(nvml::Device device, MonotonicTime now, History& history);
  void note(const Error& error);

  std::string path_, trouble_;
  std::optional<NvmlLibrary> library_;
  std::optional<MonotonicTime> next_probe_;
  std::vector<Unit> units_;
  unsigned units_count_ = 0;  // of whole GPUs, as the driver told when `units_` were looked at
  std::optional<MonotonicTime> next_look_;
  std::map<std::string, History> histories_;  // by uuid
  bool lost_ = false, present_ = false;
};

}  // namespace cgphase
