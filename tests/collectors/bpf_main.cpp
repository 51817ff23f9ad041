// The runner of tests that count with BPF programs on this machine. If that is impossible, it
// prints the reason and exits with 77: skipped.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>

#include "collectors/ebpf/network_counter.h"
#include "tests/collectors/bpf_fixture.h"
#include "tests/collectors/udp_exchange.h"

namespace {

using namespace cgphase;

std::string obstacle() {
  const std::string root = cgroup2_mount();
  if (root.empty()) return "no cgroup v2 is mounted here";
  const std::string trial = root + "/cgphase-bpf-trial-" + std::to_string(::getpid());
  if (::mkdir(trial.c_str(), 0755) != 0) return "no cgroup can be made below " + root;
  ::rmdir(trial.c_str());
  if (!InnerNetwork().ready())
    return "no network namespace with a veth pair can be made here by ip and nsenter";
  const auto counter = start_network_counter(CgroupPaths(root), 64);
  return counter ? "" : counter.error().text;
}

}  // namespace

// Tracepoints are found by their files. If tracefs is not mounted, it is mounted for this process
// only.
void mount_tracefs() {
  if (::access("/sys/kernel/tracing/events", F_OK) == 0) return;
  if (::unshare(CLONE_NEWNS) != 0) return;
  ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
  ::mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, nullptr);
}

int main(int argc, char** argv) {
  doctest::Context tests(argc, argv);
  mount_tracefs();
  if (const std::string why = obstacle(); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return 77;
  }
  return tests.run();
}
