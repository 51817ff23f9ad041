#include "collectors/gpu/drm_gpus.h"

#include <doctest/doctest.h>

#include "tests/collectors/fake_tree.h"

using namespace cgphase;
using std::chrono::seconds;

namespace {

// A host with one amdgpu card and the containers "/a" (process 11, and 12 below it) and "/b" (13).
class DrmHost {
 public:
  DrmHost() {
    add_card("card1", "0000:03:00.0", "amdgpu", true);
    tree.write("/sys/devices/0000:03:00.0/gpu_busy_percent", "75\n");
    tree.write("/sys/devices/0000:03:00.0/mem_info_vram_used", "600\n");
    tree.write("/sys/devices/0000:03:00.0/mem_info_vram_total", "1000\n");
    tree.write("/cg/a/cgroup.procs", "11\n");
    tree.write("/cg/a/below/cgroup.procs", "12\n0\n");
    tree.write("/cg/b/cgroup.procs", "13\n");
  }
  void add_card(const std::string& card, const std::string& address, const std::string& driver,
                bool renders) const {
    const std::string device = "/sys/devices/" + address;
    tree.link("/sys/class/drm/" + card + "/device", tree.root() + device);
    tree.link(device + "/driver", "/sys/bus/pci/drivers/" + driver);
    tree.make(device + (renders ? "/drm/renderD128" : "/drm/card9"));
  }
  void open(int pid, int fd, int client, std::uint64_t busy_ms, int vram_kib,
            const std::string& address = "0000:03:00.0") const {
    const std::string process = "/proc/" + std::to_string(pid), name = std::to_string(fd);
    tree.remove(process + "/fd/" + name);
    tree.link(process + "/fd/" + name, "/dev/dri/renderD128");
    tree.write(process + "/fdinfo/" + name,
               "drm-driver:\tamdgpu\n" + (address.empty() ? "" : "drm-pdev:\t" + address + "\n") +
                   "drm-client-id:\t" + std::to_string(client) + "\ndrm-engine-gfx:\t" +
                   std::to_string(busy_ms) + "000000 ns\ndrm-memory-vram:\t" +
                   std::to_string(vram_kib) + " KiB\n");
  }
  GpuReading read(seconds later = DrmGpus::kPeriod) {
    now += later;
    GpuReading reading;
    gpus.read(now, containers, reading);
    return reading;
  }

  FakeTree tree;
  DrmGpus gpus{{tree.root() + "/sys", tree.root() + "/proc", tree.root() + "/cg"}};
  std::vector<CgroupPath> containers = {"/a", "/b"};
  MonotonicTime now;
};

}  // namespace

TEST_CASE("a card in sysfs is reported, but displays and NVIDIA's own driver are not") {
  DrmHost host;
  host.add_card("card0", "0000:01:00.0", "ast", false);
  host.add_card("card2", "0000:04:00.0", "nvidia", true);
  host.add_card("card3", "0000:05:00.0", "virtio-pci", true);
  host.tree.make("/sys/class/drm/card1-DP-1");
  const GpuReading reading = host.read();
  REQUIRE(reading.devices.size() == 1);
  CHECK(reading.devices[0] == GpuDevice{.id = "0000:03:00.0", .name = "amdgpu",
                                        .use = {0.75, {}, Bytes{600}}, .memory_total = {{1000}}});
}

TEST_CASE("the use of a card by a process comes from the fdinfo of its descriptors") {
  DrmHost host;
  host.open(11, 5, 1, 0, 100);
  host.open(11, 7, 2, 0, 10);
  host.open(12, 5, 3, 0, 1);
  host.tree.link("/proc/11/fd/4", "/etc/passwd");
  GpuReading reading = host.read();
  REQUIRE(reading.clients.size() == 2);
  CHECK(reading.clients[0] == GpuClient{.pid = 11, .use = {{}, {}, Bytes{110 * 1024}}});
  host.open(11, 5, 1, 1000, 100);
  host.open(11, 7, 2, 250, 10);
  host.open(12, 5, 3, 5000, 1);
  reading = host.read();
  REQUIRE(reading.clients.size() == 2);
  CHECK(reading.clients[0].use.utilisation_ratio == doctest::Approx(0.25));
  CHECK(reading.clients[1].pid == 12);
  CHECK(reading.clients[1].use.utilisation_ratio == 1.0);
}

TEST_CASE("a client that descriptors and processes share counts once") {
  DrmHost host;
  for (const int pid : {11, 12}) {
    host.open(pid, 5, 1, 0, 100);
    host.open(pid, 6, 1, 0, 100);
  }
  const GpuReading reading = host.read();
  REQUIRE(reading.clients.size() == 1);
  CHECK(reading.clients[0].pid == 11);
  CHECK(reading.clients[0].use.memory_bytes == Bytes{100 * 1024});
}

TEST_CASE("only processes of containers are scanned, each once") {
  DrmHost host;
  for (const int pid : {11, 12, 13}) host.open(pid, 5, pid, 0, 1);
  host.containers = {"/a", "/a/below", "/gone"};
  const GpuReading reading = host.read();
  REQUIRE(reading.clients.size() == 2);
  CHECK(reading.clients[1].pid == 12);
  CHECK_FALSE(host.gpus.incomplete());
}

TEST_CASE("processes are scanned every five seconds and reported in between") {
  DrmHost host;
  host.open(13, 5, 1, 0, 1);
  CHECK(host.read().clients.size() == 1);
  host.open(11, 5, 2, 0, 1);
  CHECK(host.read(DrmGpus::kPeriod - seconds(1)).clients.size() == 1);
  CHECK(host.read(seconds(1)).clients.size() == 2);
}

TEST_CASE("a card without a PCI bus is recognised by its driver, unknown cards are not") {
  DrmHost host;
  host.open(11, 5, 1, 0, 1, "");
  host.open(13, 5, 2, 0, 1, "0000:99:00.0");
  const GpuReading reading = host.read();
  REQUIRE(reading.clients.size() == 1);
  CHECK(reading.clients[0].pid == 11);
}

TEST_CASE("the indices of these GPUs follow those of the others") {
  DrmHost host;
  host.open(11, 5, 1, 0, 1);
  GpuReading reading;
  reading.devices.resize(2);
  host.gpus.read(MonotonicTime(seconds(1)), host.containers, reading);
  CHECK(reading.devices.size() == 3);
  CHECK(reading.clients.at(0).device == 2);
}

TEST_CASE("one process above the limit is left out, and that is reported") {
  DrmHost host;
  std::string pids;
  for (std::size_t i = 0; i < kMostDrmProcesses; ++i) pids += std::to_string(1000 + i) + "\n";
  host.tree.write("/cg/b/cgroup.procs", pids);
  host.containers = {"/b"};
  host.read();
  CHECK_FALSE(host.gpus.incomplete());
  host.tree.write("/cg/b/cgroup.procs", pids + "13\n");
  host.open(13, 5, 1, 0, 1);
  CHECK(host.read().clients.empty());
  CHECK(host.gpus.incomplete());
}
