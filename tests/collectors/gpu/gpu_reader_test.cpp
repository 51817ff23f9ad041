#include "collectors/gpu/gpu_reader.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/collectors/gpu/fake_driver.h"

using namespace cgphase;
using namespace cgphase::test;
using std::chrono::seconds;

namespace {

GpuReader reader_of(const FakeDriver& driver) {
  return GpuReader({.nvml = CGPHASE_FAKE_NVML, .proc_root = driver.proc(),
                    .sys_root = driver.tree.root() + "/sys",
                    .cgroup_root = driver.tree.root() + "/cg"});
}

}  // namespace

TEST_CASE("each process on a GPU has its cgroup, and an ended one has none") {
  const FakeDriver driver;
  driver.says("device GPU-1 1000 600 80 40\ndevice GPU-2 1000 600 80 40\n"
              "process GPU-1 11 400 compute 0 0\nprocess GPU-2 11 100 compute 0 0\n"
              "process GPU-1 12 100 compute 0 0\n");
  driver.tree.write("/proc/11/cgroup", "9:name=systemd:/x\n0::/system.slice/docker-a.scope\n");
  const GpuReading reading = reader_of(driver).read(MonotonicTime(seconds(1)), {});
  CHECK(reading.time == MonotonicTime(seconds(1)));
  REQUIRE(reading.clients.size() == 3);
  CHECK(reading.clients[0].cgroup == "/system.slice/docker-a.scope");
  CHECK(reading.clients[1].cgroup.empty());
  CHECK(reading.clients[2].cgroup == "/system.slice/docker-a.scope");
  CHECK(reading.clients[2].device == 1);
  CHECK(reading.summary == "2 GPUs (Fake GPU, ...), 3 processes");
}

TEST_CASE("paths of cgroups begin at the watched root, which may be below the mount") {
  const FakeDriver driver;
  driver.says("device GPU-1 1000 600 80 40\nprocess GPU-1 11 400 compute 0 0\n"
              "process GPU-1 12 100 compute 0 0\nprocess GPU-1 13 100 compute 0 0\n");
  driver.put(11, "/jobs/a");
  driver.put(12, "/jobs");
  driver.put(13, "/jobs2/a");
  driver.tree.make("/mount/jobs");
  const std::string mount = std::filesystem::canonical(driver.tree.root() + "/mount");
  driver.tree.write("/proc/self/mountinfo", "30 25 0:26 / " + mount + " rw - cgroup2 cgroup2 rw\n");
  GpuReader reader({.nvml = CGPHASE_FAKE_NVML, .proc_root = driver.proc(),
                    .sys_root = driver.tree.root() + "/sys", .cgroup_root = mount + "/jobs"});
  const GpuReading reading = reader.read({}, {});
  REQUIRE(reading.clients.size() == 3);
  for (const GpuClient& client : reading.clients) {
    CAPTURE(client.pid);
    CHECK(client.cgroup == (client.pid == 11 ? "/a" : client.pid == 12 ? "/" : ""));
  }
}

TEST_CASE("the GPUs are summarised in one sentence") {
  const FakeDriver driver;
  driver.says("device GPU-1 1000 600 80 40\nprocess GPU-1 11 400 compute 0 0\n"
              "result nvmlDeviceGetUtilizationRates 999\n");
  GpuReader reader = reader_of(driver);
  CHECK(reader.read({}, {}).summary == "1 GPU (Fake GPU), 1 process; NVML: "
                                    "nvmlDeviceGetUtilizationRates: fake trouble (999)");
  driver.says("");
  CHECK(reader.read(MonotonicTime(seconds(9)), {}).summary ==
        "NVML: the driver has no GPU; no other GPU");
}

TEST_CASE("devices of the host that this process does not see are reported as hidden") {
  const FakeDriver driver;
  driver.says("needs /nowhere/nvidiactl\n");
  const std::string trouble = "NVML: nvmlInit_v2: Driver Not Loaded (9)";
  CHECK(reader_of(driver).read({}, {}).summary == trouble + "; no other GPU");
  driver.tree.write("/proc/1/root/dev/nvidiactl", "");
  CHECK(reader_of(driver).read({}, {}).summary ==
        trouble + "; the NVIDIA devices of this host are hidden from the daemon, gpu.conf "
                  "(docs/operations.md) shows them; no other GPU");
  driver.tree.write("/proc/self/root/dev/nvidiactl", "");
  CHECK(reader_of(driver).read({}, {}).summary == trouble + "; no other GPU");
}

TEST_CASE("the GPU of a Jetson, which NVML does not report, has its load") {
  const FakeDriver driver;
  driver.says("device GPU-1 0 0 0 0\nresult nvmlDeviceGetUtilizationRates 3\n"
              "result nvmlDeviceGetMemoryInfo 3\nresult nvmlDeviceGetProcessUtilization 3\n");
  GpuReader reader = reader_of(driver);
  CHECK(reader.read({}, {}).devices.at(0).use == GpuStat{});
  driver.tree.write("/sys/devices/gpu.0/load", "250\n");
  GpuReading reading = reader.read({}, {});
  REQUIRE(reading.devices.size() == 1);
  CHECK(reading.devices[0].use == GpuStat{0.25, {}, {}});
  driver.tree.write("/sys/devices/platform/gpu.0/load", "1001\n");  // out of range
  CHECK(reader.read({}, {}).devices.at(0).use.utilisation_ratio == 0.25);
  // The same without NVML.
  GpuReader bare({.nvml = "/nowhere", .proc_root = driver.proc(),
                  .sys_root = driver.tree.root() + "/sys", .cgroup_root = driver.tree.root()});
  reading = bare.read({}, {});
  REQUIRE(reading.devices.size() == 1);
  CHECK(reading.devices[0].id == "gpu.0");
  CHECK(reading.summary == "1 GPU (Tegra), 0 processes");
}

TEST_CASE("a GPU that NVML reports is not taken for a Jetson's") {
  const FakeDriver driver;
  driver.says("device GPU-1 1000 600 80 40\n");
  driver.tree.write("/sys/devices/gpu.0/load", "250\n");
  CHECK(reader_of(driver).read({}, {}).devices.at(0).use.utilisation_ratio == 0.8);
}
