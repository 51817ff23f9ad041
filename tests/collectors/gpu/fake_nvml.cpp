// A libnvidia-ml.so.1 that returns the content of the text file named by FAKE_NVML, which it reads
// again at each call. Each line is one fact, with words separated by blanks:
//   device UUID TOTAL USED GPU MEMORY         a whole GPU: bytes, per cent
//   instance PARENT UUID TOTAL USED GI CI     of a GPU in MIG mode
//   process UUID PID BYTES KIND GI CI         KIND: compute, graphics or both; BYTES may be "none"
//   sample UUID PID TIME SM MEMORY            microseconds, per cent
//   result FUNCTION CODE                      the result of a function, whatever else is given
//   tell FUNCTION COUNT                       the count that it reports
//   hang FUNCTION FIFO                        it waits until the FIFO is opened for writing
//   needs FILE                                nvmlInit_v2 finds no driver unless it may write FILE
//                                             (or no driver is behind that: ENXIO)
//   stride BYTES                              size of the entries of running processes; default 24
//   clear                                     their buffer is zeroed before it is filled
// FAKE_NVML_WITHOUT_PROCESSES omits the functions that libraries of some platforms lack.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "collectors/gpu/nvml_abi.h"

namespace {

using namespace cgphase::nvml;

constexpr Return kInvalidArgument = 2;

using Words = std::vector<std::string>;

std::vector<Words> lines_of(const std::string& kind) {
  const char* const path = std::getenv("FAKE_NVML");
  std::ifstream file(path == nullptr ? "" : path);
  std::vector<Words> lines;
  for (std::string line; std::getline(file, line);) {
    std::istringstream stream(line);
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    if (!words.empty() && words[0] == kind) lines.push_back(words);
  }
  return lines;
}

std::uint64_t number(const std::string& word) { return std::stoull(word); }
unsigned small(const std::string& word) { return static_cast<unsigned>(std::stoul(word)); }

// The result of the function `name` in the file; hangs if the file says so.
Return result_of(const std::string& name) {
  for (const Words& line : lines_of("hang"))
    if (line[1] == name) ::close(::open(line[2].c_str(), O_RDONLY | O_CLOEXEC));
  for (const Words& line : lines_of("result"))
    if (line[1] == name) return std::stoi(line[2]);
  return kSuccess;
}

unsigned reported(const std::string& name, std::size_t count) {
  for (const Words& line : lines_of("tell"))
    if (line[1] == name) return small(line[2]);
  return static_cast<unsigned>(count);
}

// A handle is the index among devices, then instances, plus one.
std::vector<Words> all_devices() {
  std::vector<Words> all = lines_of("device");
  for (const Words& line : lines_of("instance"))
    all.push_back({"instance", line[2], line[3], line[4], line[1], line[5], line[6]});
  return all;
}

Device handle_of(std::size_t index) { return reinterpret_cast<Device>(index + 1); }
Words line_of(Device device) {
  return all_devices().at(reinterpret_cast<std::uintptr_t>(device) - 1);
}
std::string uuid_of(Device device) { return line_of(device)[1]; }
[[maybe_unused]] bool is_instance(Device device) { return line_of(device)[0] == "instance"; }

std::size_t stride() {
  const std::vector<Words> lines = lines_of("stride");
  return lines.empty() ? sizeof(ProcessInfo) : number(lines[0][1]);
}

[[maybe_unused]] Return running(const std::string& name, const std::string& kind, Device device,
                                unsigned* count, void* buffer) {
  if (const Return result = result_of(name); result != kSuccess) return result;
  std::vector<Words> mine;
  for (const Words& line : lines_of("process"))
    if (line[1] == uuid_of(device) && (line[4] == kind || line[4] == "both")) mine.push_back(line);
  const unsigned room = *count;
  *count = reported(name, mine.size());
  if (*count > room || (buffer == nullptr && *count > 0)) return kInsufficientSize;
  if (!lines_of("clear").empty()) std::memset(buffer, 0, room * stride());
  for (std::size_t i = 0; i < mine.size(); ++i) {
    unsigned char entry[kLongProcessInfoBytes] = {};
    const ProcessInfo info{small(mine[i][2]),
                           mine[i][3] == "none" ? kNotAvailable : number(mine[i][3]),
                           small(mine[i][5]), small(mine[i][6])};
    std::memcpy(entry, &info, sizeof info);
    std::memcpy(static_cast<unsigned char*>(buffer) + i * stride(), entry, stride());
  }
  return kSuccess;
}

Return copy_text(const std::string& text, char* out, unsigned bytes) {
  std::strncpy(out, text.c_str(), bytes);
  return kSuccess;
}

bool may_write(const std::string& file) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  return fd >= 0 ? ::close(fd) == 0 : errno == ENXIO;
}

}  // namespace

extern "C" {

Return nvmlInit_v2() {
  for (const Words& line : lines_of("needs"))
    if (!may_write(line[1])) return kDriverNotLoaded;
  return result_of("nvmlInit_v2");
}
Return nvmlShutdown() { return result_of("nvmlShutdown"); }
const char* nvmlErrorString(Return result) {
  if (result == kDriverNotLoaded) return "Driver Not Loaded";
  return result == kGpuIsLost ? "GPU is lost" : "fake trouble";
}

Return nvmlDeviceGetCount_v2(unsigned* count) {
  *count = reported("nvmlDeviceGetCount_v2", lines_of("device").size());
  return result_of("nvmlDeviceGetCount_v2");
}

Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  *device = handle_of(index);
  if (index >= lines_of("device").size()) return kInvalidArgument;
  return result_of("nvmlDeviceGetHandleByIndex_v2");
}

Return nvmlDeviceGetUUID(Device device, char* text, unsigned bytes) {
  if (const Return result = result_of("nvmlDeviceGetUUID"); result != kSuccess) return result;
  return copy_text(uuid_of(device), text, bytes);
}

#ifndef FAKE_NVML_WITHOUT_PROCESSES

Return nvmlDeviceGetName(Device device, char* text, unsigned bytes) {
  return copy_text(is_instance(device) ? "Fake MIG" : "Fake GPU", text, bytes);
}

Return nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  const Words line = line_of(device);
  *memory = {number(line[2]), number(line[2]) - number(line[3]), number(line[3])};
  return result_of("nvmlDeviceGetMemoryInfo");
}

Return nvmlDeviceGetUtilizationRates(Device device, Utilization* utilization) {
  if (is_instance(device)) return kNotSupported;
  const Words line = line_of(device);
  *utilization = {small(line[4]), small(line[5])};
  return result_of("nvmlDeviceGetUtilizationRates");
}

Return nvmlDeviceGetMigMode(Device device, unsigned* current, unsigned* pending) {
  *current = *pending = 0;
  for (const Words& line : lines_of("instance"))
    if (line[1] == uuid_of(device)) *current = *pending = kMigEnabled;
  return result_of("nvmlDeviceGetMigMode");
}

// There are as many slots as instances on all GPUs, and not all belong to this one.
Return nvmlDeviceGetMaxMigDeviceCount(Device, unsigned* count) {
  *count = reported("nvmlDeviceGetMaxMigDeviceCount", lines_of("instance").size());
  return result_of("nvmlDeviceGetMaxMigDeviceCount");
}

Return nvmlDeviceGetMigDeviceHandleByIndex(Device parent, unsigned index, Device* device) {
  const std::size_t at = lines_of("device").size() + index;
  if (at >= all_devices().size() || line_of(handle_of(at))[4] != uuid_of(parent)) return kNotFound;
  *device = handle_of(at);
  return kSuccess;
}

Return nvmlDeviceGetGpuInstanceId(Device device, unsigned* id) {
  *id = small(line_of(device)[5]);
  return kSuccess;
}

Return nvmlDeviceGetComputeInstanceId(Device device, unsigned* id) {
  *id = small(line_of(device)[6]);
  return kSuccess;
}

Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count, void* infos) {
  return running("nvmlDeviceGetComputeRunningProcesses_v3", "compute", device, count, infos);
}

Return nvmlDeviceGetGraphicsRunningProcesses_v2(Device device, unsigned* count, void* infos) {
  return running("nvmlDeviceGetGraphicsRunningProcesses_v2", "graphics", device, count, infos);
}

Return nvmlDeviceGetProcessUtilization(Device device, ProcessSample* samples, unsigned* count,
                                       unsigned long long last_seen) {
  const std::string name = "nvmlDeviceGetProcessUtilization";
  if (const Return result = result_of(name); result != kSuccess) return result;
  std::vector<ProcessSample> fresh;
  for (const Words& line : lines_of("sample"))
    if (line[1] == uuid_of(device) && number(line[3]) > last_seen)
      fresh.push_back({small(line[2]), number(line[3]), small(line[4]), small(line[5]), 0, 0});
  const unsigned room = *count;
  *count = reported(name, fresh.size());
  if (*count == 0) return kNotFound;
  if (samples == nullptr || room < *count) return kInsufficientSize;
  std::memcpy(samples, fresh.data(), fresh.size() * sizeof(ProcessSample));
  return kSuccess;
}

#endif

}  // extern "C"
