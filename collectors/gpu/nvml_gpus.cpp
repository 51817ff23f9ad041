#include "collectors/gpu/nvml_gpus.h"

#include <algorithm>

#include "base/text.h"

namespace cgphase {
namespace {

constexpr unsigned kWholePercent = 100;

// Some drivers report nonsense while a process starts or ends.
std::optional<double> ratio_of_percent(unsigned percent) {
  if (percent > kWholePercent) return std::nullopt;
  return static_cast<double>(percent) / kWholePercent;
}

GpuStat use_of(const nvml::ProcessSample& sample) {
  return {.utilisation_ratio = ratio_of_percent(sample.sm),
          .memory_utilisation_ratio = ratio_of_percent(sample.memory)};
}

// A driver may also report the other instances of the same GPU instance, or the whole GPU.
bool is_in(const nvml::ProcessInfo& info, const NvmlLibrary::Instance& instance) {
  const auto fits = [](unsigned reported, unsigned own) {
    return reported == nvml::kNoInstance || own == nvml::kNoInstance || reported == own;
  };
  return fits(info.gpu_instance, instance.gpu_instance) &&
         fits(info.compute_instance, instance.compute_instance);
}

GpuClient client_of(const nvml::ProcessInfo& info, std::size_t device) {
  GpuClient client{.pid = static_cast<pid_t>(info.pid), .cgroup = {}, .device = device, .use = {}};
  if (info.used_memory != nvml::kNotAvailable) client.use.memory_bytes = Bytes{info.used_memory};
  return client;
}

}  // namespace

// Only the first error is kept, because the others mostly follow from it.
void NvmlGpus::record_error(const Error& error) {
  lost_ = lost_ || error.kind == ErrorKind::gone;
  if (trouble_.empty()) trouble_ = error.text;
}

bool NvmlGpus::open(MonotonicTime now) {
  if (library_) return true;
  if (next_probe_ && now < *next_probe_) return false;
  next_probe_ = now + kProbe;
  Result<NvmlLibrary> library = NvmlLibrary::open(path_);
  trouble_ = library ? "" : library.error().text;
  if (library) library_.emplace(std::move(*library));
  present_ = present_ || library;
  return library.has_value();
}

void NvmlGpus::read(MonotonicTime now, GpuReading& reading) {
  if (!open(now)) return;
  trouble_.clear();
  lost_ = false;
  const std::size_t before = reading.devices.size();
  const Result<unsigned> count = library_->device_count();
  if (!count) record_error(count.error());
  if (!next_list_ || now >= *next_list_ || count.value_or(0) != units_count_) {
    list_all(count.value_or(0));
    next_list_ = now + kListPeriod;
  }
  for (const Unit& unit : units_) read_unit(unit, now, reading);
  if (!trouble_.empty() || std::ranges::any_of(units_, [](const Unit& unit) {
        return unit.instance.has_value();
      }))
    next_list_.reset();
  if (count && *count == 0) trouble_ = "the driver has no GPU";
  if (count.value_or(0) > kMostGpus)
    trouble_ = "the driver reports " + std::to_string(*count) + " GPUs, of which " +
               std::to_string(kMostGpus) + " are read";
  std::erase_if(histories_, [&](const auto& one) {
    return std::ranges::find(reading.devices, one.first, &GpuDevice::id) == reading.devices.end();
  });
  // A driver that lost all its devices does not find them again until it is reopened.
  if (reading.devices.size() > before || (count && !lost_)) return;
  units_.clear();  // their handles belong to the library
  next_list_.reset();
  library_.reset();
  next_probe_ = now + kProbe;
}

void NvmlGpus::list_all(unsigned count) {
  units_.clear();
  units_count_ = count;
  for (unsigned i = 0; i < std::min<unsigned>(count, kMostGpus); ++i) list_units(i);
}

void NvmlGpus::list_units(unsigned index) {
  const Result<nvml::Device> device = library_->device(index);
  if (!device) return record_error(device.error());
  const auto instances = library_->instances(*device);
  if (!instances && instances.error().kind != ErrorKind::unsupported)
    record_error(instances.error());
  if (!instances && instances.error().kind == ErrorKind::gone) return;
  if (!instances || instances->empty()) return add_unit(*device, std::nullopt);
  for (const NvmlLibrary::Instance& instance : *instances) add_unit(instance.device, instance);
}

// A unit without an identity could not be distinguished from others.
void NvmlGpus::add_unit(nvml::Device device, std::optional<NvmlLibrary::Instance> instance) {
  const Result<std::string> uuid = library_->uuid(device);
  if (!uuid) return record_error(uuid.error());
  units_.push_back({device, *uuid, library_->name(device).value_or(""), instance});
}

void NvmlGpus::read_unit(const Unit& unit, MonotonicTime now, GpuReading& reading) {
  if (reading.devices.size() == kMostGpus) return;
  GpuDevice one{.id = unit.id, .name = unit.name, .use = {}, .memory_total = {}};
  const Result<nvml::Memory> memory = library_->memory(unit.device);
  if (memory) one.use.memory_bytes = Bytes{memory->used};
  if (memory) one.memory_total = Bytes{memory->total};
  else if (memory.error().kind != ErrorKind::unsupported)
    record_error(memory.error());
  // No driver reports the utilisation of an instance.
  if (!unit.instance) {
    if (const Result<nvml::Utilization> busy = library_->utilization(unit.device)) {
      one.use.utilisation_ratio = ratio_of_percent(busy->gpu);
      one.use.memory_utilisation_ratio = ratio_of_percent(busy->memory);
    } else if (busy.error().kind != ErrorKind::unsupported) {
      record_error(busy.error());
    }
  }
  reading.devices.push_back(std::move(one));
  add_processes(unit, now, reading);
}

// Adds the processes of the device that was added last.
void NvmlGpus::add_processes(const Unit& unit, MonotonicTime now, GpuReading& reading) {
  const auto processes = library_->processes(unit.device);
  if (!processes && (unit.instance || processes.error().kind != ErrorKind::unsupported))
    record_error(processes.error());
  if (!processes) return;
  if (processes->empty()) return;  // there are no processes, and this query takes the most time
  History* const history = unit.instance ? nullptr : &histories_[unit.id];
  const bool reported = history != nullptr && read_samples(unit.device, now, *history);
  for (const nvml::ProcessInfo& info : *processes) {
    if (unit.instance && !is_in(info, *unit.instance)) continue;
    if (reading.clients.size() == kMostGpuClients) return;
    GpuClient client = client_of(info, reading.devices.size() - 1);
    if (reported) {
      const auto busy = history->processes.find(info.pid);
      const bool idle = busy == history->processes.end();
      client.use.utilisation_ratio = idle ? 0.0 : busy->second.use.utilisation_ratio;
      client.use.memory_utilisation_ratio = idle ? 0.0 : busy->second.use.memory_utilisation_ratio;
    }
    reading.clients.push_back(std::move(client));
  }
}

bool NvmlGpus::read_samples(nvml::Device device, MonotonicTime now, History& history) {
  const auto samples = library_->samples(device, history.last_seen_usec.value_or(0));
  if (!samples) {
    if (samples.error().kind != ErrorKind::unsupported) record_error(samples.error());
    history = {};
    return false;
  }
  // The result of a request for all samples may be old.
  const bool all = !history.last_seen_usec;
  const unsigned long long before = history.last_seen_usec.value_or(0);
  unsigned long long newest = before;
  std::map<unsigned, unsigned long long> newest_of;
  for (const nvml::ProcessSample& sample : *samples) {
    newest = std::max(newest, sample.time_usec);
    // Skips entries that were not filled, and samples that were reported before.
    if (all || sample.pid == 0 || sample.time_usec <= before) continue;
    const auto [at, fresh] = newest_of.try_emplace(sample.pid, sample.time_usec);
    if (!fresh && sample.time_usec < at->second) continue;
    at->second = sample.time_usec;
    history.processes[sample.pid] = {now, use_of(sample)};
  }
  history.last_seen_usec = newest;
  if (newest > before || !history.asked) {
    history.newer = now;
  } else if (now - history.newer >= kListPeriod) {
    // All processes are idle, or the clock that dates the samples was set back.
    history.last_seen_usec.reset();
    history.newer = now;
  }
  std::erase_if(history.processes,
                [now](const auto& one) { return now - one.second.heard > kIdle; });
  return std::exchange(history.asked, true);
}

}  // namespace cgphase
