// The runner of tests that count with BPF programs on this machine. Where it cannot, it says why
// and exits 77: skipped.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

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

int main(int argc, char** argv) {
  doctest::Context tests(argc, argv);
  if (const std::string why = obstacle(); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return 77;
  }
  return tests.run();
}
