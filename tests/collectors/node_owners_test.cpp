// The cost of an ordinary user's subtree: empty cgroups cost nothing, others have a quota.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "collectors/cgroup_tree.h"
#include "collectors/node_sampler.h"
#include "tests/collectors/fake_node.h"

using namespace cgphase;

namespace {

const bool kIsRoot = ::geteuid() == 0;

// A delegated subtree of a user; only root can change the owner of a directory.
struct UsersNode : Node {
  const std::string user = "/user.slice/user-1000.slice/user@1000.service";

  UsersNode() {
    make("/cg" + user);
    REQUIRE(::chown((root() + "/cg" + user).c_str(), 1000, 1000) == 0);
  }
  std::string container(int number) const {
    const std::string digits = std::to_string(number);
    return user + "/docker-" + std::string(64 - digits.size(), '0') + digits + ".scope";
  }
  void populate(int number, bool populated) const {
    write("/cg" + container(number) + "/cgroup.events",
          populated ? "populated 1\n" : "populated 0\n");
  }
  Source source(const NodeSampler& sampler) const {
    const auto sources = sampler.sources();
    return *std::ranges::find(sources, "all cgroups", &Source::name);
  }
};

// Sets the soft limit of descriptors and restores it on destruction.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t limit) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit wanted{limit, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &wanted) == 0);
  }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE_FIXTURE(UsersNode, "a user's cgroup is a container from its first process on" *
                                 doctest::skip(!kIsRoot)) {
  populate(1, false);  // existed at the start
  NodeSampler sampler = open();
  CHECK(sample(sampler).appeared.empty());
  populate(2, false);
  for (int second = 0; second < 70; ++second) CHECK(sample(sampler).appeared.empty());
  populate(2, true);
  REQUIRE(sample(sampler).appeared.size() == 1);
  CHECK(tick.appeared[0].path == container(2));
  CHECK(tick.appeared[0].owner == "uid 1000");
  populate(1, true);
  CHECK(sample(sampler).appeared.at(0).path == container(1));
  populate(1, false);
  CHECK(sample(sampler).vanished.empty());
}

TEST_CASE_FIXTURE(UsersNode,
                  "empty cgroups of a user use no descriptor" * doctest::skip(!kIsRoot)) {
  NodeSampler sampler = open();
  sample(sampler);
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const auto before = descriptors();
  for (int number = 0; number < 100; ++number) populate(number, false);
  sample(sampler);
  CHECK(descriptors() == before);
  CHECK(tick.containers.empty());
}

TEST_CASE_FIXTURE(UsersNode, "containers within a user's quota are read, and one more waits" *
                                 doctest::skip(!kIsRoot)) {
  constexpr int kQuota = 3;
  const std::string roots = "/cg/system.slice/docker-" + kDockerId + ".scope";
  NodeSampler sampler = open();
  const DescriptorLimit limit(kQuota * 4 * kDescriptorsPerContainer);
  for (int number = 0; number < kQuota; ++number) populate(number, true);
  CHECK(sample(sampler).containers.size() == kQuota);
  CHECK(source(sampler).present);
  populate(kQuota, true);
  CHECK(sample(sampler).containers.size() == kQuota);
  CHECK_FALSE(source(sampler).present);
  make(roots);  // others have their own quota
  for (int second = 0; second < 6; ++second) sample(sampler);
  CHECK(tick.containers.size() == kQuota + 1);
  remove("/cg" + container(0));
  for (int second = 0; second < 61; ++second) sample(sampler);
  CHECK(tick.containers.size() == kQuota + 1);
  CHECK(source(sampler).present);
}

TEST_CASE_FIXTURE(UsersNode, "status names the owner whose cgroups exceed the quota" *
                                 doctest::skip(!kIsRoot)) {
  for (std::size_t i = 0; i <= kMaxCgroupsPerOwner; ++i)
    make("/cg" + user + "/c" + std::to_string(i));
  NodeSampler sampler = open();
  sample(sampler);
  CHECK_FALSE(source(sampler).present);
  CHECK(source(sampler).detail == "the subtree of uid 1000 has more than its quota of 1024 "
                                  "cgroups, and the rest is not followed");
}
