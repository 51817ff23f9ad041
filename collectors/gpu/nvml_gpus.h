// Reads NVIDIA's GPUs through the driver's own library.
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

// Owned and used by one thread. A call takes as long as the driver needs.
class NvmlGpus {
 public:
  // Minimum interval between attempts to load the library if there is no driver or it was lost.
  // Loading may make the driver wake its devices.
  static constexpr std::chrono::seconds kProbe{60};
  // Drivers sample at least once a second. A process without a new sample for longer is idle.
  static constexpr std::chrono::seconds kIdle{2};
  // Interval for listing the GPUs and whether they are divided; also done after any error. The
  // query for a divided GPU takes 0.3 ms, a tenth of a reading and more. Instances are listed each
  // time, because handles of removed ones may be reused.
  static constexpr std::chrono::seconds kListPeriod{10};

  explicit NvmlGpus(std::string path) : path_(std::move(path)) {}

  // Adds devices and clients (without cgroups) to `reading`. A value that could not be read is
  // absent.
  void read(MonotonicTime now, GpuReading& reading);
  // The error of the last read(): why there are no devices, or which device failed. Empty if there
  // was none.
  const std::string& trouble() const { return trouble_; }
  // True if the library has, or had, a driver.
  bool present() const { return present_; }

 private:
  // The use of one device by one process; absent values were not reported yet.
  struct Busy {
    MonotonicTime heard;
    GpuStat use;
  };
  // State of a device between two readings.
  struct History {
    std::optional<unsigned long long> last_seen_usec;
    MonotonicTime newer;  // last time with a newer sample, or with a request for all samples
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
  void list_all(unsigned count);
  void list_units(unsigned index);
  void add_unit(nvml::Device device, std::optional<NvmlLibrary::Instance> instance);
  void read_unit(const Unit& unit, MonotonicTime now, GpuReading& reading);
  void add_processes(const Unit& unit, MonotonicTime now, GpuReading& reading);
  // False if the device does not report the use of processes.
  bool read_samples(nvml::Device device, MonotonicTime now, History& history);
  void record_error(const Error& error);

  std::string path_, trouble_;
  std::optional<NvmlLibrary> library_;
  std::optional<MonotonicTime> next_probe_;
  std::vector<Unit> units_;
  unsigned units_count_ = 0;  // number of whole GPUs when `units_` were listed
  std::optional<MonotonicTime> next_list_;
  std::map<std::string, History> histories_;  // by uuid
  bool lost_ = false, present_ = false;
};

}  // namespace cgphase
