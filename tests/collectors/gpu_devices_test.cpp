#include "collectors/cgroup_processes.h"
#include "collectors/gpu_devices.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "base/fd.h"
#include "collectors/cgroup_tree.h"
#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

// A container's cgroup, and a /proc of plain files; the host has a GPU.
class GpuBox {
 public:
  GpuBox() {
    tree.make_device("/proc/1/root/dev/nvidia0");
    tree.make_device("/proc/1/root/dev/null");
    tree.write("/box/cgroup.procs", "");
  }

  // A process with the host's /dev and only standard input.
  void add(int pid, const std::string& cgroup = "/box") const {
    list(pid, cgroup);
    tree.link(at(pid) + "/fd/0", "/dev/null");
    tree.link(at(pid) + "/root", tree.root() + "/proc/1/root");
  }
  // A process with a /dev of its own.
  void add_apart(int pid, const std::string& cgroup = "/box") const {
    list(pid, cgroup);
    tree.link(at(pid) + "/fd/0", "/dev/null");
    tree.make_device(at(pid) + "/root" + "/dev/null");
  }
  void list(int pid, const std::string& cgroup = "/box") const {
    tree.make(cgroup);
    std::ofstream(tree.root() + cgroup + "/cgroup.procs", std::ios::app) << pid << "\n";
  }
  static std::string at(int pid) { return "/proc/" + std::to_string(pid); }

  GpuUse use() const { return scan().use; }
  GpuScan scan() const {
    const std::string proc = tree.root() + "/proc";
    const Fd box(::open((tree.root() + "/box").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return find_gpu(box.get(), proc, read_host_devices(proc).value());
  }

  FakeTree tree;
};

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

}  // namespace

TEST_CASE("devices of NVIDIA, AMD, WSL, Jetson and every render node are GPUs") {
  for (const char* path :
       {"/dev/nvidia0", "/dev/nvidia15", "/dev/nvidiactl", "/dev/nvidia-uvm",
        "/dev/nvidia-uvm-tools", "/dev/kfd", "/dev/dri/renderD128", "/dev/dxg", "/dev/nvmap",
        "/dev/nvhost-ctrl-gpu", "/dev/nvgpu/igpu0/channel", "/dev/nvidia0 (deleted)"})
    CHECK_MESSAGE(is_gpu_device(path), path);
  for (const char* path :
       {"/dev/null", "/dev/nvme0n1", "/dev/nvidia", "/dev/nvidia-modeset", "/dev/dri/card0",
        "/dev/dri", "/dev/kvm", "/dev", "", "nvidia0", "/srv/nvidia0", "socket:[nvidia0]",
        "/dev/shm/nvidia0"})
    CHECK_MESSAGE(!is_gpu_device(path), path);
}

TEST_CASE("other accelerators count as GPUs") {
  for (const char* path :
       {"/dev/davinci0", "/dev/davinci_manager", "/dev/neuron0", "/dev/accel/accel0", "/dev/accel1",
        "/dev/hl0", "/dev/hl_controlD0", "/dev/apex_0", "/dev/hailo0"})
    CHECK_MESSAGE(is_gpu_device(path), path);
  for (const char* path : {"/dev/accel", "/dev/hl", "/dev/hlx", "/dev/neuron", "/dev/hailox"})
    CHECK_MESSAGE(!is_gpu_device(path), path);
}

TEST_CASE("a process with an open GPU is found, others of the host are not") {
  const GpuBox box;
  box.add(7);
  box.add(8);
  CHECK(box.use() == GpuUse::none);
  box.tree.link("/proc/8/fd/17", "/dev/nvidia0");
  CHECK(box.use() == GpuUse::seen);
}

TEST_CASE("a GPU in a private /dev is found, one in the shared /dev does not count") {
  const GpuBox box;
  box.add(7);        // the host's /dev has nvidia0
  box.add_apart(8);  // its own has none
  CHECK(box.use() == GpuUse::none);
  box.tree.make_device("/proc/8/root/dev/nvidiactl");
  CHECK(box.use() == GpuUse::seen);
}

TEST_CASE("a render node in a private /dev is found in its folder") {
  const GpuBox box;
  box.add_apart(7);
  box.tree.make_device("/proc/7/root/dev/dri/card0");
  CHECK(box.use() == GpuUse::none);
  box.tree.make_device("/proc/7/root/dev/dri/renderD128");
  CHECK(box.use() == GpuUse::seen);
}

TEST_CASE("a file with a GPU's name is no GPU, and links in a container are not followed") {
  const GpuBox box;
  box.add_apart(7);
  box.tree.write("/proc/7/root/dev/nvidia0", "a file");
  box.tree.link("/proc/7/root/dev/nvidia1", box.tree.root() + "/proc/1/root/dev/nvidia0");
  box.tree.link("/proc/7/root/dev/dri", box.tree.root() + "/elsewhere");
  box.tree.make_device("/elsewhere/renderD128");
  box.add_apart(8);
  box.tree.remove("/proc/8/root/dev");
  box.tree.link("/proc/8/root/dev", box.tree.root() + "/other");
  box.tree.make_device("/other/nvidia0");
  CHECK(box.use() == GpuUse::none);
}

TEST_CASE("processes of nested cgroups belong to the container") {
  const GpuBox box;
  box.add(7);
  box.add(8, "/box/init.scope");
  box.add(9, "/box/inner/deeper");
  box.tree.link("/proc/9/fd/3", "/dev/kfd");
  CHECK(box.use() == GpuUse::seen);
}

TEST_CASE("an ended process has no GPU, but if no process is found the result is unknown") {
  const GpuBox box;
  CHECK(box.use() == GpuUse::none);  // an empty container
  box.list(7);
  CHECK(box.use() == GpuUse::unknown);  // as with hidepid=2, or the /proc of another namespace
  box.add(8);
  CHECK(box.use() == GpuUse::none);
}

TEST_CASE("an unreadable process makes the result unknown, unless a GPU is seen") {
  const GpuBox box;
  box.add(7);
  box.list(0);  // of another pid namespace
  CHECK(box.use() == GpuUse::unknown);
  box.tree.link("/proc/7/fd/3", "/dev/dxg");
  CHECK(box.use() == GpuUse::seen);
}

TEST_CASE("a host without a GPU or without a /dev is recognised; self replaces init") {
  const FakeTree tree;
  const std::string proc = tree.root();
  CHECK_FALSE(read_host_devices(proc).value().gpu);
  tree.make_device("/self/root/dev/null");
  const HostDevices without = read_host_devices(proc).value();
  CHECK_FALSE(without.gpu);
  CHECK(without.inode != 0);
  tree.make_device("/self/root/dev/dri/renderD128");
  CHECK(read_host_devices(proc).value().gpu);
  tree.make("/1/root/dev");
  CHECK_FALSE(read_host_devices(proc).value().gpu);
  CHECK(read_host_devices(proc).value().inode != without.inode);
}

TEST_CASE("processes are scanned up to the limit, one more makes the rest unknown") {
  const GpuBox box;
  box.add(1'000);
  const auto add_twin = [&](std::size_t i) {
    const int pid = 1'000 + static_cast<int>(i);
    box.list(pid);
    box.tree.link(GpuBox::at(pid), "1000");
  };
  for (std::size_t i = 1; i < kMostGpuProcesses; ++i) add_twin(i);
  CHECK(box.use() == GpuUse::none);
  CHECK(box.scan().processes == kMostGpuProcesses);
  add_twin(kMostGpuProcesses);
  CHECK(box.use() == GpuUse::unknown);
  CHECK(box.scan().processes == kMostGpuProcesses);
}

TEST_CASE("descriptors are scanned up to the limit, one more makes the rest unknown") {
  const GpuBox box;
  box.add(7);
  for (std::size_t i = 1; i < kMostGpuDescriptors; ++i)
    box.tree.link("/proc/7/fd/" + std::to_string(i), "/dev/null");
  CHECK(box.use() == GpuUse::none);
  box.tree.link("/proc/7/fd/" + std::to_string(kMostGpuDescriptors), "/dev/null");
  CHECK(box.use() == GpuUse::unknown);
}

TEST_CASE("nested cgroups are scanned up to the limit, one more makes the rest unknown") {
  const GpuBox box;
  box.add(7);
  for (std::size_t i = 1; i < kMostVisitedCgroups; ++i)
    box.tree.make("/box/" + std::to_string(i));
  CHECK(box.use() == GpuUse::none);
  box.tree.make("/box/inner");
  CHECK(box.use() == GpuUse::unknown);
}

TEST_CASE("cgroups are scanned down to the depth limit, one level more is unknown") {
  const GpuBox box;
  box.add(7);
  std::string path = "/box";
  for (std::size_t depth = 0; depth < kMaxCgroupDepth; ++depth) box.tree.make(path += "/d");
  CHECK(box.use() == GpuUse::none);
  box.tree.make(path + "/d");
  CHECK(box.use() == GpuUse::unknown);
}

TEST_CASE("names in a private /dev are limited, one more makes the rest unknown") {
  const GpuBox box;
  box.add_apart(7);  // null, and the two entries of every folder
  for (std::size_t i = 3; i < kMostDeviceNames; ++i)
    box.tree.write("/proc/7/root/dev/" + std::to_string(i), "");
  CHECK(box.use() == GpuUse::none);
  box.tree.write("/proc/7/root/dev/one-more", "");
  CHECK(box.use() == GpuUse::unknown);
}

TEST_CASE("a scan leaves no descriptor open") {
  const GpuBox box;
  box.add(7);
  box.list(8);
  box.add_apart(9, "/box/a/b");
  box.add(10, "/box/c");
  const auto before = open_descriptors();
  CHECK(box.use() == GpuUse::none);
  CHECK(open_descriptors() == before);
  box.tree.link("/proc/10/fd/5", "/dev/nvidia0");
  CHECK(box.use() == GpuUse::seen);
  CHECK(open_descriptors() == before);
}

// No test host has a GPU: `tests/nvidia/telemetry` runs this on a cgroup that has one.
TEST_CASE("by hand: a process of a cgroup has a real GPU" *
          doctest::skip(std::getenv("CGPHASE_GPU_CGROUP") == nullptr)) {
  const char* const path = std::getenv("CGPHASE_GPU_CGROUP");
  REQUIRE(path != nullptr);
  const Fd cgroup(::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(cgroup.valid());
  const HostDevices host = read_host_devices("/proc").value();
  CHECK(host.gpu);
  CHECK(find_gpu(cgroup.get(), "/proc", host).use == GpuUse::seen);
}
