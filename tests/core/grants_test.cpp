#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "core/grants.h"

using namespace cgphase;

namespace {

constexpr double kGiBs = static_cast<double>(kGiB);

// Containers on a host of 10 cores and 100 GiB; all of both may be divided.
struct GrantHost {
  ContainerView& add(const char* name, double cores, std::uint64_t gib) {
    views.push_back(std::make_unique<ContainerView>());
    ContainerView& view = *views.back();
    view.info.id = CgroupId{1, views.size()};
    view.info.name = name;
    view.mode = Mode::enforce;
    view.original.cpu_max =
        CpuMax{Microseconds{static_cast<std::uint64_t>(cores * 1e5)}, Microseconds{100'000}};
    view.original.memory_max = MemoryLimit{Bytes{gib * kGiB}};
    view.in_force = view.original;
    view.recommendation.cpu = Cores{1};
    view.recommendation.memory = Bytes{kGiB};
    return view;
  }
  void share(bool want = true) {
    claimants.clear();
    for (const auto& view : views) claimants.push_back({view.get(), want, want});
    grant_shares(config, HostCapacity{10, Bytes{100 * kGiB}}, outside, claimants);
  }
  BudgetConfig config{.memory_ratio = 1};
  OutsideShare outside;
  std::vector<std::unique_ptr<ContainerView>> views;
  std::vector<Claimant> claimants;
};

}  // namespace

// rule: BUDGET-02
TEST_CASE("without consent nothing is granted; with it, what the others do not need") {
  GrantHost host;
  ContainerView& quiet = host.add("quiet", 4, 40);
  ContainerView& eager = host.add("eager", 2, 20);
  host.share();
  CHECK(quiet.grant == Grant{});
  CHECK(eager.grant == Grant{});
  eager.terms.cpu_max = Cores{16};
  eager.terms.memory_max = Bytes{50 * kGiB};
  host.share();
  CHECK(quiet.grant == Grant{});
  CHECK(eager.grant.cpu_cores.value() == doctest::Approx(9));
  CHECK(eager.grant.memory_bytes.value() == doctest::Approx(50 * kGiBs));
  CHECK(givers_of(Resource::cpu, host.claimants, eager.info.id) == "quiet (3.0 of 4.0 cores)");
  CHECK(givers_of(Resource::memory, host.claimants, eager.info.id) ==
        "quiet (39.0 GiB of 40.0 GiB)");
  host.share(false);
  CHECK(eager.grant.cpu_cores.value() == doctest::Approx(2));
  CHECK(eager.grant.memory_bytes.value() == doctest::Approx(20 * kGiBs));
}

// rule: BUDGET-02
TEST_CASE("a consent below the original limit grants nothing, and its own limit is never less") {
  GrantHost host;
  ContainerView& one = host.add("one", 8, 80);
  one.terms.cpu_max = Cores{4};
  host.add("other", 8, 80).recommendation.cpu = Cores{8};
  host.share();
  CHECK(one.grant == Grant{});
  one.terms.cpu_max = Cores{9};
  host.share();
  CHECK(one.grant.cpu_cores.value() == doctest::Approx(8));
}

// rule: BUDGET-02
TEST_CASE("use outside of containers, and what runs inside others, is not granted again") {
  GrantHost host;
  ContainerView& eager = host.add("eager", 2, 20);
  eager.terms.cpu_max = Cores{16};
  ContainerView& inner = host.add("inner", 4, 40);
  inner.inside = true;
  inner.recommendation.cpu = Cores{4};
  host.outside.cpu_cores = 3;
  host.share();
  CHECK(eager.grant.cpu_cores.value() == doctest::Approx(7));
  host.outside.cpu_cores = 30;
  host.share();
  CHECK(eager.grant.cpu_cores.value() == doctest::Approx(2));
}

// rule: BUDGET-02
TEST_CASE("nothing is granted to who may not be changed, is pinned, or would lose it to systemd") {
  GrantHost host;
  ContainerView& one = host.add("one", 2, 20);
  one.terms.cpu_max = Cores{8};
  one.terms.memory_max = Bytes{50 * kGiB};
  const auto granted = [&] {
    host.share();
    return std::pair(one.grant.cpu_cores.has_value(), one.grant.memory_bytes.has_value());
  };
  CHECK(granted() == std::pair(true, true));
  one.info.systemd_unit = true;
  CHECK(granted() == std::pair(true, false));
  one.info.systemd_unit = false;
  one.pin.cpu = Cores{1};
  CHECK(granted() == std::pair(false, true));
  one.pin = {};
  one.mode = Mode::observe;
  CHECK(granted() == std::pair(false, false));
  one.mode = Mode::enforce;
  one.info.hands_off = "the kubelet owns it";
  CHECK(granted() == std::pair(false, false));
}

// rule: BUDGET-02
TEST_CASE("a grant that is no longer needed but still in force is not granted to another") {
  GrantHost host;
  ContainerView& former = host.add("former", 2, 20);
  former.terms.memory_max = Bytes{60 * kGiB};
  former.in_force.memory_max = MemoryLimit{Bytes{60 * kGiB}};
  ContainerView& eager = host.add("eager", 2, 20);
  eager.terms.memory_max = Bytes{90 * kGiB};
  host.share(false);
  host.claimants[1].wants_memory = true;
  grant_shares(host.config, HostCapacity{10, Bytes{100 * kGiB}}, {}, host.claimants);
  CHECK(former.grant.memory_bytes.value() == doctest::Approx(20 * kGiBs));
  // 100, less the 40 that are in force above 20, less its need of 1.
  CHECK(eager.grant.memory_bytes.value() == doctest::Approx(59 * kGiBs));
}

// rule: BUDGET-02
TEST_CASE("a container that agrees to more but is idle keeps nothing from the others") {
  GrantHost host;
  ContainerView& idle = host.add("idle", 2, 60);
  idle.terms.memory_max = Bytes{80 * kGiB};
  ContainerView& eager = host.add("eager", 2, 20);
  eager.terms.memory_max = Bytes{90 * kGiB};
  host.share(false);
  host.claimants[1].wants_memory = true;
  grant_shares(host.config, HostCapacity{10, Bytes{100 * kGiB}}, {}, host.claimants);
  CHECK(idle.grant.memory_bytes.value() == doctest::Approx(60 * kGiBs));
  CHECK(eager.grant.memory_bytes.value() == doctest::Approx(90 * kGiBs));
}

// rule: BUDGET-02
TEST_CASE("nothing is granted above what the ancestor cgroups allow") {
  GrantHost host;
  ContainerView& one = host.add("one", 2, 20);
  one.terms.memory_max = Bytes{90 * kGiB};
  one.ancestor_limits.memory_bytes = 30 * kGiBs;
  host.share();
  CHECK(one.grant.memory_bytes.value() == doctest::Approx(30 * kGiBs));
}

// rule: BUDGET-05
TEST_CASE("a container without a limit is left out, counted, or guarded") {
  GrantHost host;
  ContainerView& eager = host.add("eager", 2, 20);
  eager.terms.memory_max = Bytes{200 * kGiB};
  ContainerView& open = host.add("open", 2, 20);
  open.original.memory_max = MemoryLimit{};
  open.in_force = open.original;
  open.recommendation.memory = Bytes{30 * kGiB};
  host.config.unlimited = UnlimitedRule::ignore;
  host.share();
  CHECK(eager.grant.memory_bytes.value() == doctest::Approx(100 * kGiBs));
  CHECK(open.grant == Grant{});
  host.config.unlimited = UnlimitedRule::observe;
  host.share();
  CHECK(eager.grant.memory_bytes.value() == doctest::Approx(70 * kGiBs));
  CHECK(open.grant == Grant{});
  host.config.unlimited = UnlimitedRule::guard;
  host.share();
  CHECK(open.grant.memory_bytes.value() == doctest::Approx(50 * kGiBs));
  CHECK(eager.grant.memory_bytes.value() == doctest::Approx(50 * kGiBs));
  CHECK(!open.grant.cpu_cores);
}
