#include "collectors/neighbours.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

// A /proc of plain files without this process.
class Processes {
 public:
  Processes() { set_self("1000000"); }
  void set_self(const std::string& pid) const {
    tree.remove("/self");
    std::filesystem::create_symlink(pid, tree.root() + "/self");
  }
  // A process of root, started by init, in the host's pid namespace and in a system service.
  void add(int pid, const std::string& comm, const std::string& cgroup = "/system.slice/x.service",
           const std::string& pids = "", int uid = 0, int parent = 1, char state = 'S',
           const std::string& capabilities = "0000000000000000") const {
    const std::string at = "/" + std::to_string(pid);
    const std::string id = std::to_string(uid);
    tree.write(at + "/comm", comm + "\n");
    tree.write(at + "/cgroup", "1:name=systemd:/\n0::" + cgroup + "\n");
    tree.write(at + "/status", "Name:\t" + comm + "\nState:\t" + state + " (x)\nPPid:\t" +
                                   std::to_string(parent) + "\nUid:\t" + id + "\t" + id +
                                   "\t1\t1\nNSpid:\t" + std::to_string(pid) + pids +
                                   "\nCapEff:\t" + capabilities + "\n");
  }
  void set_program(int pid, const std::string& path) const {
    std::filesystem::create_symlink(path, tree.root() + "/" + std::to_string(pid) + "/exe");
  }
  // An existing program of this user that only this user can change.
  std::string make_program(const std::string& name) const {
    tree.write("/bin/" + name, "");
    std::filesystem::permissions(tree.root() + "/bin/" + name, std::filesystem::perms(0755));
    return tree.root() + "/bin/" + name;
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

TEST_CASE("every neighbour is found by its process name, managers first") {
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
  CHECK(describe(found.seen.front()) == "the kubelet manages limits here (pid " +
                                            std::to_string(found.seen.front().pid) + ")");
}

TEST_CASE("a process that changed its name is found by its program, also after an upgrade") {
  const Processes processes;
  processes.add(7, "main-loop");
  processes.set_program(7, "/usr/bin/kubelet (deleted)");
  processes.add(8, "main-loop");
  processes.set_program(8, "/usr/bin/python3.11");
  CHECK(processes.text() == "kubelet 7");
}

TEST_CASE("a kernel thread is not read again while it exists") {
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
  thread(21, "1", kThread);   // not a child of kthreadd
  thread(22, "2", kProgram);  // without a readable program
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
  CHECK(seen() == std::vector<pid_t>{21, 22});  // 24 has another program
  // Another process with that pid has another directory.
  std::filesystem::rename(processes.tree.root() + "/20", processes.tree.root() + "/former");
  thread(20, "2", kThread);
  name_all({20});
  CHECK(seen() == std::vector<pid_t>{20, 21, 22});
}

TEST_CASE("a manager inside a container does not count") {
  const Processes processes;
  processes.add(7, "kubelet", "/", "\t1");  // its own pid namespace
  processes.add(8, "kubelet", kDocker);
  processes.add(9, "kubelet", kDocker + "/kubelet/inner");
  processes.add(10, "nomad", "/lxc.payload.web/system.slice/nomad.service");
  processes.add(11, "systemd-oomd", kDocker);
  CHECK(processes.text().empty());
}

TEST_CASE("a manager of a job is found within the job") {
  const Processes processes;
  processes.add(7, "slurmstepd", "/system.slice/slurmstepd.scope/job_42/step_0/slurm");
  CHECK(processes.text() == "slurmstepd 7");
}

TEST_CASE("a manager runs as root, by its real user too, or as the user of this process") {
  const Processes processes;
  processes.add(7, "kubelet", "/system.slice/a.service", "", 1234);
  processes.add(8, "cgphased", "/system.slice/a.service", "", 1234);
  processes.add(9, "nomad");
  processes.tree.write("/9/status", "State:\tS\nPPid:\t1\nUid:\t1234\t0\t0\t0\n");  // set-uid
  CHECK(processes.text().empty());
  processes.add(10, "kubelet", "/system.slice/a.service", "", static_cast<int>(::geteuid()));
  CHECK(processes.text() == "kubelet 10");
}

TEST_CASE("a killer is root or has CAP_KILL, and is not a user's") {
  const Processes processes;
  constexpr const char* kCapKill = "0000000000000020";
  processes.add(7, "earlyoom", "/system.slice/earlyoom.service", "", 1234);
  processes.add(8, "earlyoom", "/user.slice/user-1.slice/session-1.scope", "", 1234, 1, 'S',
                kCapKill);
  CHECK(processes.text().empty());
  processes.add(9, "earlyoom", "/system.slice/earlyoom.service", "", 1234, 1, 'S', kCapKill);
  CHECK(processes.text() == "earlyoom 9");
}

TEST_CASE("a name that a process chose itself makes it no manager") {
  const Processes processes;
  // A link called kubelet to a set-uid program. The kernel reports the real program.
  processes.add(7, "kubelet", "/user.slice/user-1000.slice/session-1.scope");
  processes.set_program(7, "/usr/bin/su");
  processes.add(8, "cgphased");
  processes.set_program(8, "/usr/bin/sleep");
  processes.add(9, "systemd-oomd");
  processes.set_program(9, "/usr/bin/python3.11");
  CHECK(processes.text().empty());
}

TEST_CASE("a program with many names counts only under the managing name") {
  const Processes processes;
  for (const auto& [pid, comm] : {std::pair(7, "k3s-server"), {8, "kubectl"}, {9, "k3s-agent"}}) {
    processes.add(pid, comm);
    processes.set_program(pid, "/var/lib/rancher/k3s/data/1/bin/k3s");
  }
  processes.add(10, "kubelet");
  processes.set_program(10, "/snap/kubelet/3/kubelet");
  CHECK(processes.text() == "kubelet 10, k3s-server 7, k3s-agent 9");
}

TEST_CASE("a manager that an interpreter runs is found by its unit") {
  const Processes processes;
  processes.add(7, "python3", "/system.slice/lxc_autoscale.service");
  processes.add(8, "python3", "/system.slice/other.service");
  processes.add(9, "python3", "/user.slice/user-1.slice/user@1.service/app.slice/"
                              "lxc_autoscale.service");
  processes.add(10, "python3", "/lxc/101/ns/system.slice/lxc_autoscale.service");
  for (const int pid : {7, 8, 9, 10}) processes.set_program(pid, "/usr/bin/python3.11");
  CHECK(processes.text() == "lxc_autoscale 7");
}

TEST_CASE("Sablier, BuildKit and GitLab Runner are found in a container, too") {
  const Processes processes;
  processes.add(7, "sablier", kDocker);
  processes.add(8, "buildkitd", kDocker);
  processes.add(9, "gitlab-runner", "/system.slice/gitlab-runner.service");
  CHECK(processes.text() == "sablier 7, gitlab-runner 9, buildkitd 8");
}

TEST_CASE("a program that another user can change is no manager") {
  const Processes processes;
  const std::string program = processes.make_program("kubelet");
  processes.add(7, "kubelet");
  processes.set_program(7, program);
  CHECK(processes.text() == "kubelet 7");
  const auto set_mode = [](const std::string& path, unsigned mode) {
    std::filesystem::permissions(path, std::filesystem::perms(mode));
  };
  for (const unsigned mode : {0775U, 0757U, 04755U, 02755U}) {
    CAPTURE(mode);
    set_mode(program, mode);
    CHECK(processes.text().empty());
  }
  set_mode(program, 0755);
  set_mode(processes.tree.root() + "/bin", 0777);
  CHECK(processes.text().empty());
  set_mode(processes.tree.root() + "/bin", 0755);
  CHECK(processes.text() == "kubelet 7");
  if (::chown(program.c_str(), 1234, 1234) != 0) return;  // only root can change the owner
  CHECK(processes.text().empty());
}

TEST_CASE("a second copy of this program counts anywhere") {
  const Processes processes;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  // On the same file system, in a place that others can change.
  const std::filesystem::path folder =
      program.parent_path() / ("copy-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  std::filesystem::permissions(folder, std::filesystem::perms(0777));
  std::filesystem::create_hard_link(program, folder / "cgphased");
  processes.add(7, "cgphased");
  processes.set_program(7, folder / "cgphased");
  const std::string found = processes.text();
  std::filesystem::remove_all(folder);
  CHECK(found == "cgphased 7");
}

TEST_CASE("services of a user's own manager do not count") {
  const Processes processes;
  const std::string user = "/user.slice/user-1000.slice/";
  processes.add(7, "kubelet", user + "user@1000.service/app.slice/kubelet.service");
  processes.set_program(7, "/usr/bin/kubelet");
  processes.add(8, "nomad", user + "session-1.scope");
  CHECK(processes.text().empty());
  // If its program is known, root may have started it from a shell.
  processes.set_program(8, "/usr/bin/nomad");
  CHECK(processes.text() == "nomad 8");
}

TEST_CASE("one monitor per cgroup is reported, so that many do not hide others") {
  const Processes processes;
  for (std::size_t i = 0; i <= kMostMonitors; ++i) {
    processes.tree.write("/" + std::to_string(i + 1) + "/comm", "raylet\n");
    processes.tree.write("/" + std::to_string(i + 1) + "/cgroup", "0::/one\n");
  }
  processes.add(99999, "raylet", "/other");
  CHECK(processes.find().complete);
  CHECK(processes.find().seen.size() == 2);
}

TEST_CASE("this process, its children and zombies do not count") {
  const Processes processes;
  processes.set_self("41");
  processes.add(41, "cgphased");
  processes.add(42, "cgphased", "/system.slice/cgphased.service", "", 0, 41);
  processes.add(43, "kubelet", "/", "", 0, 1, 'Z');
  CHECK(processes.text().empty());
  processes.add(44, "cgphased");
  CHECK(processes.text() == "cgphased 44");
}

TEST_CASE("without /proc/self this process is known by its own pid") {
  const Processes processes;
  processes.tree.remove("/self");
  processes.add(static_cast<int>(::getpid()), "cgphased");
  CHECK(processes.text().empty());
}

TEST_CASE("a monitor inside a container is found with its cgroup") {
  const Processes processes;
  processes.add(7, "raylet", kDocker + "/ray", "\t1", 1000);
  const Neighbours found = processes.find();
  REQUIRE(found.seen.size() == 1);
  CHECK(found.seen[0].cgroup == kDocker + "/ray");
}

TEST_CASE("paths of cgroups begin at the watched root, and managers outside it count") {
  const Processes processes;
  processes.add(7, "raylet", "/jobs/a/ray");
  processes.add(8, "raylet", "/jobs2/a");
  processes.add(9, "kubelet", "/system.slice/kubelet.service");
  processes.add(10, "kubelet", kDocker);  // still a container
  const Neighbours found = find_neighbours(processes.tree.root(), nullptr, "/jobs").value();
  REQUIRE(found.seen.size() == 3);
  for (const Neighbour& one : found.seen) CHECK(one.cgroup == (one.pid == 7 ? "/a/ray" : ""));
  CHECK(found.seen[0].pid == 9);
}

TEST_CASE("a condition of a manager that cannot be read counts as met") {
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

TEST_CASE("monitors up to the limit are reported, one more is noted and hides no manager") {
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

TEST_CASE("processes up to the limit are read, and one more is noted") {
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
