#include "collectors/neighbours.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

// A /proc of files, in which this process is none of those that a test makes.
class Processes {
 public:
  Processes() { set_self("1000000"); }
  void set_self(const std::string& pid) const {
    tree.remove("/self");
    std::filesystem::create_symlink(pid, tree.root() + "/self");
  }
  // Of root, started by init, in the host's pid namespace and in a system service.
  void add(int pid, const std::string& comm, const std::string& cgroup = "/system.slice/x.service",
           const std::string& pids = "", int uid = 0, int parent = 1, char state = 'S') const {
    const std::string at = "/" + std::to_string(pid);
    const std::string id = std::to_string(uid);
    tree.write(at + "/comm", comm + "\n");
    tree.write(at + "/cgroup", "1:name=systemd:/\n0::" + cgroup + "\n");
    tree.write(at + "/status", "Name:\t" + comm + "\nState:\t" + state + " (x)\nPPid:\t" +
                                   std::to_string(parent) + "\nUid:\t1\t" + id +
                                   "\t1\t1\nNSpid:\t" + std::to_string(pid) + pids + "\n");
  }
  void set_program(int pid, const std::string& path) const {
    std::filesystem::create_symlink(path, tree.root() + "/" + std::to_string(pid) + "/exe");
  }
  Neighbours find() const { return find_neighbours(tree.root()).value(); }
  // "kubelet 7, nomad 9".
  std::string text() const {
    std::string out;
    for (const Neighbour& one : find().seen)
      out += (out.empty() ? "" : ", ") + std::string(one.name->process) + " " +
             std::to_string(one.pid);
    return out;
  }

  FakeTree tree;
};

const std::string kDocker = "/system.slice/docker-" + std::string(64, 'a') + ".scope";

}  // namespace

TEST_CASE("every neighbour is found by the name of its process, managers first") {
  Processes processes;
  int pid = 900;
  for (const NeighbourName& name : neighbour_names())
    processes.add(--pid, std::string(name.process));
  processes.add(1, "systemd");
  processes.add(2, "kubelet-helper");
  processes.add(3, "xkubelet");
  processes.tree.write("/thread-self/comm", "kubelet\n");
  const Neighbours found = processes.find();
  REQUIRE(found.seen.size() == neighbour_names().size());
  CHECK(found.complete);
  const auto kind = [](const Neighbour& one) { return one.name->kind; };
  CHECK(std::ranges::is_sorted(found.seen, {}, kind));
  CHECK(describe(found.seen.front()) == "the kubelet manages limits here (pid 899)");
}

TEST_CASE("a process that changed its name is found by its program, also after an upgrade") {
  const Processes processes;
  processes.add(7, "main-loop");
  processes.set_program(7, "/usr/bin/kubelet (deleted)");
  processes.add(8, "main-loop");
  processes.set_program(8, "/usr/bin/python3.11");
  CHECK(processes.text() == "kubelet 7");
}

TEST_CASE("a thread of the kernel is not read again while it lives") {
  const Processes processes;
  const auto thread = [&](int pid, const char* parent, const char* flags) {
    const std::string at = "/" + std::to_string(pid);
    processes.tree.write(at + "/comm", "odd) name\n");
    processes.tree.write(at + "/stat", std::to_string(pid) + " (odd) name) S " + parent +
                                           " 0 0 0 -1 " + flags + " 0 0\n");
  };
  constexpr const char* kThread = "2129984";    // PF_KTHREAD among others
  constexpr const char* kProgram = "4194560";
  thread(20, "2", kThread);
  thread(21, "1", kThread);   // not of kthreadd's
  thread(22, "2", kProgram);  // without a program that could be read
  thread(24, "2", kThread);
  processes.set_program(24, "/usr/bin/python3.11");
  KernelThreads threads;
  const auto seen = [&] {
    std::vector<pid_t> pids;
    const Neighbours found = find_neighbours(processes.tree.root(), &threads).value();
    for (const Neighbour& one : found.seen) pids.push_back(one.pid);
    std::ranges::sort(pids);
    return pids;
  };
  CHECK(seen().empty());
  CHECK(seen().empty());
  const auto name_all = [&](const std::vector<int>& pids) {
    for (const int pid : pids) processes.tree.write("/" + std::to_string(pid) + "/comm",
                                                    "kubelet\n");
  };
  name_all({20, 21, 22, 24});
  CHECK(seen() == std::vector<pid_t>{21, 22, 24});
  // Another process of that pid: the directory is another one.
  std::filesystem::rename(processes.tree.root() + "/20", processes.tree.root() + "/former");
  thread(20, "2", kThread);
  name_all({20});
  CHECK(seen() == std::vector<pid_t>{20, 21, 22, 24});
}

TEST_CASE("a manager inside a container is none of this host") {
  const Processes processes;
  processes.add(7, "kubelet", "/", "\t1");  // a pid namespace of its own
  processes.add(8, "kubelet", kDocker);
  processes.add(9, "kubelet", kDocker + "/kubelet/inner");
  processes.add(10, "nomad", "/lxc.payload.web/system.slice/nomad.service");
  processes.add(11, "systemd-oomd", kDocker);
  CHECK(processes.text().empty());
}

TEST_CASE("a job's manager is found within the job") {
  const Processes processes;
  processes.add(7, "slurmstepd", "/system.slice/slurmstepd.scope/job_42/step_0/slurm");
  CHECK(processes.text() == "slurmstepd 7");
}

TEST_CASE("a manager has the rights to be one; who kills needs none") {
  const Processes processes;
  processes.add(7, "kubelet", "/user.slice", "", 1234);
  processes.add(8, "cgphased", "/user.slice", "", 1234);
  processes.add(9, "earlyoom", "/system.slice/earlyoom.service", "", 1234);
  CHECK(processes.text() == "earlyoom 9");
  processes.add(10, "kubelet", "/user.slice", "", static_cast<int>(::geteuid()));
  CHECK(processes.text() == "kubelet 10, earlyoom 9");
}

TEST_CASE("this process, its children and the dead do not count") {
  const Processes processes;
  processes.set_self("41");
  processes.add(41, "cgphased");
  processes.add(42, "cgphased", "/system.slice/cgphased.service", "", 0, 41);
  processes.add(43, "kubelet", "/", "", 0, 1, 'Z');
  CHECK(processes.text().empty());
  processes.add(44, "cgphased");
  CHECK(processes.text() == "cgphased 44");
}

TEST_CASE("without a link to itself this process goes by its own pid") {
  const Processes processes;
  processes.tree.remove("/self");
  processes.add(static_cast<int>(::getpid()), "cgphased");
  CHECK(processes.text().empty());
}

TEST_CASE("what kills inside a container is found there, with its cgroup") {
  const Processes processes;
  processes.add(7, "raylet", kDocker + "/ray", "\t1", 1000);
  const Neighbours found = processes.find();
  REQUIRE(found.seen.size() == 1);
  CHECK(found.seen[0].cgroup == kDocker + "/ray");
}

TEST_CASE("cgroups are told from the root that is watched, and managers outside it count") {
  const Processes processes;
  processes.add(7, "raylet", "/jobs/a/ray");
  processes.add(8, "raylet", "/jobs2/a");
  processes.add(9, "kubelet", "/system.slice/kubelet.service");
  processes.add(10, "kubelet", kDocker);  // a container all the same
  const Neighbours found = find_neighbours(processes.tree.root(), nullptr, "/jobs").value();
  REQUIRE(found.seen.size() == 3);
  for (const Neighbour& one : found.seen) CHECK(one.cgroup == (one.pid == 7 ? "/a/ray" : ""));
  CHECK(found.seen[0].pid == 9);
}

TEST_CASE("what cannot be read of a manager counts against us") {
  const Processes processes;
  processes.tree.write("/7/comm", "kubelet\n");
  processes.tree.write("/8/comm", "nomad\n");
  processes.tree.write("/8/status", "Uid:\nNSpid:\nPPid:\tx\nState:\n");
  processes.tree.write("/8/cgroup", "no colons\n0:\n");
  CHECK(processes.text() == "kubelet 7, nomad 8");
}

TEST_CASE("a /proc that is missing or cannot be read is an error, not an empty host") {
  const Processes processes;
  CHECK_FALSE(find_neighbours(processes.tree.root() + "/none").has_value());
  processes.tree.make("/7/comm");  // EISDIR: neither hidden nor ended
  CHECK_FALSE(find_neighbours(processes.tree.root()).has_value());
}

TEST_CASE("as many monitors as the bound are told, one past it says so and hides no manager") {
  const Processes processes;
  for (std::size_t i = 0; i < kMostMonitors; ++i)
    processes.tree.write("/" + std::to_string(i + 1) + "/comm", "raylet\n");
  CHECK(processes.find().complete);
  processes.tree.write("/99998/comm", "raylet\n");
  CHECK(processes.find().seen.size() == kMostMonitors);
  CHECK_FALSE(processes.find().complete);
  processes.tree.write("/99999/comm", "kubelet\n");
  CHECK(processes.find().seen.front().pid == 99999);
}

TEST_CASE("as many processes as the bound are looked at, one past it says so") {
  const Processes processes;
  processes.add(1, "systemd");
  const auto add_twin = [&](std::size_t pid) {
    const std::string path = processes.tree.root() + "/" + std::to_string(pid);
    std::filesystem::create_directory_symlink("1", path);
  };
  for (std::size_t pid = 2; pid <= kMostProcesses; ++pid) add_twin(pid);
  CHECK(processes.find().complete);
  add_twin(kMostProcesses + 1);
  CHECK_FALSE(processes.find().complete);
}
