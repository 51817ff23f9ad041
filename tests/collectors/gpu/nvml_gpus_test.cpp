#include "collectors/gpu/nvml_gpus.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "tests/collectors/gpu/fake_driver.h"

using namespace cgphase;
using namespace cgphase::test;
using std::chrono::seconds;

namespace {

constexpr const char* kOne = "device GPU-1 1000 600 80 40\n";

// A driver that is read once per second.
class ReadDriver : public FakeDriver {
 public:
  explicit ReadDriver(const std::string& library = CGPHASE_FAKE_NVML) : gpus(library) {}

  GpuReading read(seconds later = seconds(1)) {
    now += later;
    GpuReading reading;
    reading.time = now;
    gpus.read(now, reading);
    return reading;
  }
  // Sets the configuration and reads until processes have a utilisation.
  GpuReading settled(const std::string& text) {
    says(text);
    read();
    return read();
  }

  NvmlGpus gpus;
  MonotonicTime now;
};

std::vector<nvml::ProcessInfo> three() {
  return {{11, 100, 0, 0}, {12, nvml::kNotAvailable, 1, 2}, {13, 300, nvml::kNoInstance, 0}};
}

// A buffer as a driver with entries of `stride` bytes fills it.
std::vector<unsigned char> filled(const std::vector<nvml::ProcessInfo>& infos, std::size_t stride,
                                  std::size_t room, bool clear) {
  std::vector<unsigned char> buffer((room + 1) * nvml::kLongProcessInfoBytes, kNvmlSentinel);
  if (clear) std::fill_n(buffer.begin(), room * stride, static_cast<unsigned char>(0));
  for (std::size_t i = 0; i < infos.size(); ++i) {
    std::memset(buffer.data() + i * stride, 0, stride);
    std::memcpy(buffer.data() + i * stride, &infos[i], sizeof infos[i]);
  }
  return buffer;
}

}  // namespace

TEST_CASE("running processes are read with entries of 24 bytes and of 32") {
  for (const std::size_t stride : {std::size_t{24}, nvml::kLongProcessInfoBytes})
    for (const bool clear : {false, true})
      for (std::size_t count = 0; count <= 3; ++count) {
        CAPTURE(stride);
        CAPTURE(clear);
        std::vector<nvml::ProcessInfo> wanted = three();
        wanted.resize(count);
        const auto read = decode_processes(filled(wanted, stride, 8, clear), count);
        REQUIRE(read.size() == count);
        for (std::size_t i = 0; i < count; ++i) {
          CHECK(read[i].pid == wanted[i].pid);
          CHECK(read[i].used_memory == wanted[i].used_memory);
          CHECK(read[i].gpu_instance == wanted[i].gpu_instance);
          CHECK(read[i].compute_instance == wanted[i].compute_instance);
        }
      }
}

TEST_CASE("a GPU has its use, and each process its part of it") {
  ReadDriver driver;
  driver.says(std::string(kOne) + "process GPU-1 11 400 compute 0 0\n"
                                  "process GPU-1 12 none graphics 0 0\n");
  GpuReading reading = driver.read();
  REQUIRE(reading.devices.size() == 1);
  CHECK(reading.devices[0] == GpuDevice{.id = "GPU-1", .name = "Fake GPU",
                                        .use = {0.8, 0.4, Bytes{600}}, .memory_total = {{1000}}});
  REQUIRE(reading.clients.size() == 2);
  CHECK(reading.clients[0].pid == 11);
  // The start of its activity is unknown.
  CHECK(reading.clients[0].use == GpuStat{{}, {}, Bytes{400}});
  CHECK(reading.clients[1].use.memory_bytes == std::nullopt);
  driver.says(std::string(kOne) + "process GPU-1 11 400 compute 0 0\nsample GPU-1 11 1000 70 30\n");
  reading = driver.read();
  CHECK(reading.clients.at(0).use == GpuStat{0.7, 0.3, Bytes{400}});
  CHECK(driver.gpus.trouble().empty());
}

TEST_CASE("samples from before the first query belong to nobody") {
  ReadDriver driver;
  const std::string text = std::string(kOne) + "process GPU-1 11 400 compute 0 0\n"
                                               "sample GPU-1 11 1000 70 30\n";
  CHECK(driver.settled(text).clients.at(0).use.utilisation_ratio == 0.0);
}

TEST_CASE("a process without a new sample is idle after the sampling period of drivers") {
  ReadDriver driver;
  const std::string base = std::string(kOne) + "process GPU-1 11 400 compute 0 0\n";
  driver.settled(base);
  driver.says(base + "sample GPU-1 11 1000 70 30\n");
  CHECK(driver.read().clients.at(0).use.utilisation_ratio == 0.7);
  CHECK(driver.read(NvmlGpus::kIdle).clients.at(0).use.utilisation_ratio == 0.7);
  CHECK(driver.read().clients.at(0).use.utilisation_ratio == 0.0);
}

TEST_CASE("an unused GPU is not queried for samples, and a new process is reported at once") {
  ReadDriver driver;
  const std::string process = "process GPU-1 11 400 compute 0 0\n";
  driver.settled(kOne + process);
  driver.says(std::string(kOne) + "result nvmlDeviceGetProcessUtilization 2\n");
  CHECK(driver.read(seconds(60)).clients.empty());
  CHECK(driver.gpus.trouble().empty());
  driver.says(kOne + process + "sample GPU-1 11 2000 60 30\n");
  CHECK(driver.read().clients.at(0).use == GpuStat{0.6, 0.3, Bytes{400}});
}

TEST_CASE("a process that works after an idle time is reported within a second") {
  const std::string base = std::string(kOne) + "process GPU-1 11 400 compute 0 0\n";
  for (int idle = 0; idle < 25; ++idle) {
    CAPTURE(idle);
    ReadDriver driver;
    driver.now += std::chrono::hours(5);
    driver.settled(base);
    for (int second = 0; second < idle; ++second)
      CHECK(driver.read().clients.at(0).use.utilisation_ratio == 0.0);
    driver.says(base + "sample GPU-1 11 1000 70 30\n");
    const auto first = driver.read().clients.at(0).use.utilisation_ratio;
    CHECK((first == 0.7 || (first == 0.0 && idle % 10 == 9)));
    driver.says(base + "sample GPU-1 11 2000 60 30\n");
    CHECK(driver.read().clients.at(0).use.utilisation_ratio == 0.6);
  }
}

TEST_CASE("after the clock was set back a process is idle for at most ten seconds") {
  ReadDriver driver;
  const std::string base = std::string(kOne) + "process GPU-1 11 400 compute 0 0\n";
  driver.settled(base);
  driver.says(base + "sample GPU-1 11 9000 70 30\n");
  CHECK(driver.read().clients.at(0).use.utilisation_ratio == 0.7);
  driver.says(base + "sample GPU-1 11 1000 60 30\n");
  CHECK(driver.read(NvmlGpus::kListPeriod).clients.at(0).use.utilisation_ratio == 0.0);
  CHECK(driver.read().clients.at(0).use.utilisation_ratio == 0.0);  // its time is unknown
  driver.says(base + "sample GPU-1 11 2000 50 30\n");
  CHECK(driver.read().clients.at(0).use.utilisation_ratio == 0.5);
}

TEST_CASE("the newest of several samples counts, and nonsense is absent") {
  ReadDriver driver;
  const std::string base = std::string(kOne) + "process GPU-1 11 400 compute 0 0\n"
                                               "process GPU-1 12 400 compute 0 0\n";
  driver.settled(base);
  driver.says(base + "sample GPU-1 11 2000 50 20\nsample GPU-1 11 1000 10 10\n"
                     "sample GPU-1 12 2000 4000000 20\nsample GPU-1 0 3000 90 90\n");
  const GpuReading reading = driver.read();
  CHECK(reading.clients.at(0).use.utilisation_ratio == 0.5);
  CHECK(reading.clients.at(1).use.utilisation_ratio == std::nullopt);
  CHECK(reading.clients.at(1).use.memory_utilisation_ratio == 0.2);
}

TEST_CASE("a process with contexts of both kinds counts once") {
  ReadDriver driver;
  driver.says(std::string(kOne) + "process GPU-1 11 400 both 0 0\n");
  CHECK(driver.read().clients.size() == 1);
}

TEST_CASE("entries of 32 bytes are read through the library too") {
  ReadDriver driver;
  driver.says(std::string(kOne) + "stride 32\nprocess GPU-1 11 400 compute 0 0\n"
                                  "process GPU-1 12 500 compute 0 0\n");
  const GpuReading reading = driver.read();
  REQUIRE(reading.clients.size() == 2);
  CHECK(reading.clients[1].pid == 12);
  CHECK(reading.clients[1].use.memory_bytes == Bytes{500});
}

TEST_CASE("MIG instances are GPUs of their own, with memory only") {
  ReadDriver driver;
  driver.says(std::string(kOne) + "device GPU-2 500 50 10 10\n"
              "instance GPU-1 MIG-a 400 300 1 0\ninstance GPU-1 MIG-b 200 100 1 1\n"
              "process MIG-a 11 300 compute 1 0\nprocess MIG-a 12 100 compute 1 1\n"
              "process MIG-b 12 100 compute 1 1\nsample GPU-1 11 1000 50 50\n");
  driver.read();
  const GpuReading reading = driver.read();
  REQUIRE(reading.devices.size() == 3);
  CHECK(reading.devices[0].id == "MIG-a");
  CHECK(reading.devices[0].use == GpuStat{{}, {}, Bytes{300}});
  CHECK(reading.devices[0].memory_total == Bytes{400});
  CHECK(reading.devices[1].id == "MIG-b");
  CHECK(reading.devices[2].id == "GPU-2");
  // 12 was reported in both instances, and is in one.
  REQUIRE(reading.clients.size() == 2);
  CHECK(reading.clients[0] == GpuClient{.pid = 11, .device = 0, .use = {{}, {}, Bytes{300}}});
  CHECK(reading.clients[1] == GpuClient{.pid = 12, .device = 1, .use = {{}, {}, Bytes{100}}});
}

TEST_CASE("more processes and samples than the usual room are read") {
  ReadDriver driver;
  std::string text = kOne;
  for (int pid = 1; pid <= 200; ++pid)
    text += "process GPU-1 " + std::to_string(pid) + " 10 compute 0 0\n";
  driver.settled(text);
  for (int pid = 1; pid <= 200; ++pid)
    text += "sample GPU-1 " + std::to_string(pid) + " 1000 " + std::to_string(pid % 100) + " 0\n";
  driver.says(text);
  const GpuReading reading = driver.read();
  REQUIRE(reading.clients.size() == 200);
  CHECK(reading.clients[198].pid == 199);
  CHECK(reading.clients[198].use.utilisation_ratio == 0.99);
  CHECK(driver.gpus.trouble().empty());
}

TEST_CASE("a divided GPU is reported as its parts within ten seconds, a new GPU at once") {
  ReadDriver driver;
  driver.settled(kOne);
  const std::string two = std::string(kOne) + "device GPU-2 500 50 10 10\n";
  driver.says(two);
  CHECK(driver.read().devices.size() == 2);
  driver.says(two + "instance GPU-1 MIG-a 400 300 1 0\n");
  CHECK(driver.read(NvmlGpus::kListPeriod - seconds(1)).devices.at(0).id == "GPU-1");
  CHECK(driver.read().devices.at(0).id == "MIG-a");
}

TEST_CASE("an instance whose handle is reused is reported as the new one at once") {
  ReadDriver driver;
  driver.settled(std::string(kOne) + "instance GPU-1 MIG-a 400 300 1 0\n");
  driver.says(std::string(kOne) + "instance GPU-1 MIG-b 400 200 1 0\n");
  const GpuReading reading = driver.read();
  CHECK(reading.devices.at(0).id == "MIG-b");
  CHECK(reading.devices.at(0).use.memory_bytes == Bytes{200});
  driver.says(kOne);
  CHECK(driver.read().devices.at(0).id == "GPU-1");
}

TEST_CASE("a GPU with an unknown MIG mode is reported as whole, and queried again") {
  ReadDriver driver;
  const std::string divided = std::string(kOne) + "instance GPU-1 MIG-a 400 300 1 0\n";
  driver.says(divided + "result nvmlDeviceGetMigMode 999\n");
  CHECK(driver.read().devices.at(0).id == "GPU-1");
  CHECK(driver.gpus.trouble() == "nvmlDeviceGetMigMode: fake trouble (999)");
  driver.says(divided);
  CHECK(driver.read().devices.at(0).id == "MIG-a");
}

TEST_CASE("after any error the GPUs are listed again at once, not in ten seconds") {
  ReadDriver driver;
  driver.settled(kOne);
  driver.says(std::string(kOne) + "result nvmlDeviceGetMemoryInfo 15\n"
                                  "result nvmlDeviceGetHandleByIndex_v2 15\n");
  CHECK(driver.read().devices.at(0).memory_total == std::nullopt);
  CHECK(driver.gpus.trouble() == "nvmlDeviceGetMemoryInfo: GPU is lost (15)");
  CHECK(driver.read().devices.empty());
  CHECK(driver.gpus.trouble() == "nvmlDeviceGetHandleByIndex_v2: GPU is lost (15)");
}

TEST_CASE("a GPU that reports no values is listed without numbers") {
  ReadDriver driver;
  driver.says(std::string(kOne) + "process GPU-1 11 400 compute 0 0\n"
              "result nvmlDeviceGetUtilizationRates 3\nresult nvmlDeviceGetMemoryInfo 3\n"
              "result nvmlDeviceGetProcessUtilization 3\nresult nvmlDeviceGetMigMode 3\n");
  driver.read();
  const GpuReading reading = driver.read();
  REQUIRE(reading.devices.size() == 1);
  CHECK(reading.devices[0].use == GpuStat{});
  CHECK(reading.devices[0].memory_total == std::nullopt);
  CHECK(reading.clients.at(0).use == GpuStat{{}, {}, Bytes{400}});
  CHECK(driver.gpus.trouble().empty());
}

TEST_CASE("a library without functions for processes reports devices") {
  ReadDriver driver(CGPHASE_FAKE_NVML_OLD);
  driver.says(std::string(kOne) + "process GPU-1 11 400 compute 0 0\n");
  const GpuReading reading = driver.read();
  CHECK(reading.devices.size() == 1);
  CHECK(reading.clients.empty());
  CHECK(driver.gpus.trouble().empty());
}

TEST_CASE("an invalid or missing library is reported, and retried in a minute") {
  ReadDriver none("/nowhere/libnvidia-ml.so.1");
  CHECK(none.read().devices.empty());
  CHECK(none.gpus.trouble().find("/nowhere/libnvidia-ml.so.1") != std::string::npos);
  ReadDriver wrong("libc.so.6");
  CHECK(wrong.read().devices.empty());
  CHECK(wrong.gpus.trouble().find("it has no nvmlInit_v2") != std::string::npos);
  ReadDriver late;
  late.says(std::string(kOne) + "result nvmlInit_v2 9\n");
  CHECK(late.read().devices.empty());
  CHECK(late.gpus.trouble() == "nvmlInit_v2: Driver Not Loaded (9)");
  late.says(kOne);
  CHECK(late.read(NvmlGpus::kProbe - seconds(1)).devices.empty());
  CHECK(late.gpus.trouble() == "nvmlInit_v2: Driver Not Loaded (9)");
  CHECK(late.read().devices.size() == 1);
  CHECK(late.gpus.trouble().empty());
}

TEST_CASE("lost GPUs are reported, and the driver is reopened a minute later") {
  ReadDriver driver;
  driver.settled(kOne);
  driver.says(std::string(kOne) + "result nvmlDeviceGetHandleByIndex_v2 15\n");
  CHECK(driver.read(NvmlGpus::kListPeriod).devices.empty());
  CHECK(driver.gpus.trouble() == "nvmlDeviceGetHandleByIndex_v2: GPU is lost (15)");
  driver.says(kOne);
  CHECK(driver.read().devices.empty());
  CHECK(driver.read(NvmlGpus::kProbe).devices.size() == 1);
}

TEST_CASE("a host with a driver but without a GPU is reported") {
  ReadDriver driver;
  CHECK(driver.read().devices.empty());
  CHECK(driver.gpus.trouble() == "the driver has no GPU");
}

TEST_CASE("absurd counts are an error and allocate nothing") {
  ReadDriver driver;
  driver.says(std::string(kOne) + "tell nvmlDeviceGetComputeRunningProcesses_v3 4000000000\n"
              "process GPU-1 12 10 graphics 0 0\n");
  CHECK(driver.read().clients.size() == 1);
  driver.says(std::string(kOne) + "tell nvmlDeviceGetComputeRunningProcesses_v3 4000000000\n"
              "tell nvmlDeviceGetGraphicsRunningProcesses_v2 4294967295\n");
  CHECK(driver.read().clients.empty());
  CHECK(driver.gpus.trouble() ==
        "nvmlDeviceGetComputeRunningProcesses: it reports 4000000000 processes");
  driver.says(std::string(kOne) + "process GPU-1 11 400 compute 0 0\n"
              "tell nvmlDeviceGetProcessUtilization 4000000000\n");
  CHECK(driver.read().clients.at(0).use == GpuStat{{}, {}, Bytes{400}});
  driver.says(std::string(kOne) + "tell nvmlDeviceGetCount_v2 4294967295\n");
  CHECK(driver.read().devices.size() == 1);
  CHECK(driver.gpus.trouble() == "the driver reports 4294967295 GPUs, of which 64 are read");
}

TEST_CASE("processes that a driver counts but does not name are ignored") {
  ReadDriver driver;
  driver.says(std::string(kOne) + "tell nvmlDeviceGetComputeRunningProcesses_v3 100\n");
  CHECK(driver.read().clients.empty());
}
