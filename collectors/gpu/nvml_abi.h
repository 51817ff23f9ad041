// The part of the binary interface of NVIDIA's management library that is used, stable since driver
// 450. Names, numbers and layouts follow NVIDIA's NVML API reference. The library is loaded at run
// time, because it comes with the driver and Debian has no header of it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cgphase::nvml {

// The values of nvmlReturn_t that the code distinguishes.
using Return = int;
inline constexpr Return kSuccess = 0;
inline constexpr Return kUninitialized = 1;
inline constexpr Return kNotSupported = 3;
inline constexpr Return kNoPermission = 4;
inline constexpr Return kNotFound = 6;          // for process utilisation: no new samples
inline constexpr Return kInsufficientSize = 7;  // the required count is returned too
inline constexpr Return kDriverNotLoaded = 9;
inline constexpr Return kGpuIsLost = 15;

using Device = void*;  // nvmlDevice_t

inline constexpr unsigned kTextBytes = 96;  // NVML_DEVICE_UUID_V2_BUFFER_SIZE, ..NAME_V2..
inline constexpr std::uint64_t kNotAvailable = ~std::uint64_t{0};  // NVML_VALUE_NOT_AVAILABLE
inline constexpr unsigned kNoInstance = ~0U;    // of gpu_instance and compute_instance
inline constexpr unsigned kMigEnabled = 1;      // NVML_DEVICE_MIG_ENABLE

struct Memory {  // nvmlMemory_t, bytes
  unsigned long long total, free, used;
};
static_assert(sizeof(Memory) == 24);

struct Utilization {  // nvmlUtilization_t, per cent of the time of the last sample period
  unsigned gpu, memory;
};
static_assert(sizeof(Utilization) == 8);

struct ProcessInfo {  // nvmlProcessInfo_v2_t, which is _v3's as well
  unsigned pid;
  unsigned long long used_memory;
  unsigned gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessInfo) == 24 && offsetof(ProcessInfo, used_memory) == 8);
// Some drivers of release 535 write this size through _v3: there is one more field at the end.
inline constexpr std::size_t kLongProcessInfoBytes = 32;

struct ProcessSample {  // nvmlProcessUtilizationSample_t
  unsigned pid;
  unsigned long long time_usec;           // CPU time stamp
  unsigned sm, memory, encoder, decoder;  // per cent
};
static_assert(sizeof(ProcessSample) == 32 && offsetof(ProcessSample, time_usec) == 8);

using Init = Return (*)();
using Shutdown = Return (*)();
using ErrorString = const char* (*)(Return);
using DeviceGetCount = Return (*)(unsigned* count);
using DeviceGetHandleByIndex = Return (*)(unsigned index, Device* device);
using DeviceGetInstance = Return (*)(Device parent, unsigned index, Device* device);
using DeviceGetText = Return (*)(Device device, char* text, unsigned bytes);
using DeviceGetMemoryInfo = Return (*)(Device device, Memory* memory);
using DeviceGetUtilizationRates = Return (*)(Device device, Utilization* utilization);
using DeviceGetMigMode = Return (*)(Device device, unsigned* current, unsigned* pending);
using DeviceGetNumber = Return (*)(Device device, unsigned* number);
using DeviceGetRunningProcesses = Return (*)(Device device, unsigned* count, void* infos);
using DeviceGetProcessUtilization = Return (*)(Device device, ProcessSample* samples,
                                               unsigned* count, unsigned long long last_seen);

}  // namespace cgphase::nvml
