#include "core/shortage.h"

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "tests/core/core_host.h"

using namespace cgphase;

namespace {

// Containers on a host of 100 GiB, of which 90 may be used.
struct ShortHost {
  ContainerView& add(ServiceClass service_class, std::uint64_t gib) {
    views.push_back(std::make_unique<ContainerView>());
    ContainerView& view = *views.back();
    view.info.id = CgroupId{1, views.size()};
    view.mode = Mode::enforce;
    view.terms.service_class = service_class;
    view.memory_need = Bytes{gib * kGiB};
    view.sample.memory.inactive_file_bytes = kGiB;
    view.sample.memory.inactive_anon_bytes = 3 * kGiB;
    view.may_freeze = service_class == ServiceClass::batch;
    view.in_force.frozen = false;
    return view;
  }
  // One tick. The frozen stay frozen, as the safety rules would have it.
  std::optional<CacheReclaim> tick() {
    std::vector<Claimant> claimants;
    for (const auto& view : views) claimants.push_back({view.get(), false, false});
    const auto reclaim = rule.step(BudgetConfig{}, host, outside, claimants);
    for (const auto& view : views) {
      view->in_force.frozen = view->shortage.freeze;
      if (view->shortage.freeze) view->may_freeze = false;
    }
    return reclaim;
  }
  int frozen() const {
    return static_cast<int>(std::ranges::count_if(
        views, [](const auto& view) { return view->in_force.frozen == true; }));
  }
  ShortageRule rule;
  HostCapacity host{.cpu_cores = 10, .memory = Bytes{100 * kGiB}};
  OutsideShare outside;
  std::vector<std::unique_ptr<ContainerView>> views;
};

}  // namespace

// rule: BUDGET-06
// rule: BUDGET-07
TEST_CASE("while needs fit into the budget, nothing gives way") {
  ShortHost host;
  host.add(ServiceClass::critical, 50);
  host.add(ServiceClass::batch, 39);
  for (int i = 0; i < 20; ++i) CHECK_FALSE(host.tick());
  CHECK(host.frozen() == 0);
  host.views[0]->sample.memory_current = Bytes{99 * kGiB};  // page cache is no need
  CHECK_FALSE(host.tick());
  host.host.memory = Bytes{};  // unknown
  CHECK_FALSE(host.tick());
}

// rule: BUDGET-06
TEST_CASE("what is in swap needs no memory") {
  ShortHost host;
  host.add(ServiceClass::critical, 50);
  ContainerView& batch = host.add(ServiceClass::batch, 60);
  batch.sample.swap_current = Bytes{30 * kGiB};
  CHECK_FALSE(host.tick());
  batch.sample.swap_current = Bytes{10 * kGiB};
  CHECK(host.tick());
}

// rule: BUDGET-06
TEST_CASE("while the host is short, the batch container with most cold memory is reclaimed") {
  ShortHost host;
  host.add(ServiceClass::critical, 50).sample.memory.inactive_file_bytes = 50 * kGiB;
  host.add(ServiceClass::batch, 30);
  ContainerView& most = host.add(ServiceClass::batch, 11);
  most.sample.memory.inactive_file_bytes = 2 * kGiB;
  const auto twentieth = [](std::uint64_t bytes) {
    return Bytes{bytes / 20 / kPageBytes * kPageBytes};
  };
  auto reclaim = host.tick();
  REQUIRE(reclaim);
  CHECK(reclaim->container == most.info.id);
  CHECK(reclaim->bytes == twentieth(2 * kGiB));
  host.host.swap = Bytes{kGiB};  // now anonymous memory can leave, too
  CHECK(host.tick()->bytes == twentieth(5 * kGiB));
  most.sample.swap_max = MemoryLimit{Bytes{0}};
  CHECK(host.tick()->container == host.views[1]->info.id);
  // Never more than is missing.
  host.views[0]->memory_need = Bytes{49 * kGiB + kMiB};
  CHECK(host.tick()->bytes == Bytes{kMiB});
  for (const auto& view : host.views) view->mode = Mode::advise;
  CHECK_FALSE(host.tick());
}

// rule: BUDGET-07
TEST_CASE("after three ticks one freezes per tick, who grew most first, who did not grow never") {
  ShortHost host;
  host.add(ServiceClass::critical, 60);
  ContainerView& small = host.add(ServiceClass::batch, 10);
  ContainerView& large = host.add(ServiceClass::batch, 20);
  ContainerView& grows = host.add(ServiceClass::batch, 5);
  for (int i = 0; i < 3; ++i) host.tick();
  CHECK(host.frozen() == 0);
  grows.memory_need = Bytes{7 * kGiB};
  small.memory_need = Bytes{11 * kGiB};
  large.memory_need = Bytes{20 * kGiB + kGiB / 8};  // no more than the kernel's batches
  host.tick();
  CHECK(host.frozen() == 1);
  CHECK(grows.shortage.freeze);
  CHECK(grows.shortage.bytes == doctest::Approx(8.125 * kGiB));
  host.tick();
  CHECK(small.shortage.freeze);
  for (int i = 0; i < 10; ++i) host.tick();
  CHECK(host.frozen() == 2);
  CHECK_FALSE(large.shortage.freeze);
  // Who thawed grows anew, or runs on.
  grows.in_force.frozen = false;
  grows.may_freeze = true;
  for (int i = 0; i < 10; ++i) host.tick();
  CHECK(host.frozen() == 1);
  grows.memory_need = Bytes{8 * kGiB};
  host.tick();
  CHECK(grows.shortage.freeze);
}

// rule: BUDGET-06
TEST_CASE("what the rest of the host used in the last hours is no shortage") {
  ShortHost host;
  host.add(ServiceClass::critical, 50);
  host.add(ServiceClass::batch, 30);
  host.outside = {.memory_bytes = 30.0 * kGiB, .memory_now_bytes = 5.0 * kGiB};
  for (int i = 0; i < 10; ++i) CHECK_FALSE(host.tick());
  CHECK(host.frozen() == 0);
}

// rule: BUDGET-07
TEST_CASE("one around others is not frozen, nor counted twice; mode advise comes last") {
  ShortHost host;
  ContainerView& outer = host.add(ServiceClass::batch, 80);
  ContainerView& inner = host.add(ServiceClass::batch, 60);
  outer.around_others = inner.inside = true;
  for (int i = 0; i < 10; ++i) host.tick();
  CHECK(host.frozen() == 0);
  ContainerView& advised = host.add(ServiceClass::batch, 30);
  advised.mode = Mode::advise;
  ContainerView& enforced = host.add(ServiceClass::batch, 5);
  const auto grow = [&](int count) {
    for (int i = 0; i < count; ++i) {
      for (ContainerView* view : {&outer, &inner, &advised, &enforced})
        view->memory_need->value += 2 * kGiB;
      host.tick();
    }
  };
  grow(5);
  CHECK((enforced.shortage.freeze || inner.shortage.freeze));
  CHECK_FALSE(advised.shortage.freeze);
  grow(2);
  CHECK(advised.shortage.freeze);
  CHECK_FALSE(outer.shortage.freeze);
}

// rule: BUDGET-08
TEST_CASE("who is frozen stays so until a twentieth of the budget is left") {
  ShortHost host;
  ContainerView& first = host.add(ServiceClass::critical, 61);
  ContainerView& batch = host.add(ServiceClass::batch, 30);
  const auto grow = [&](int count) {
    for (int i = 0; i < count; ++i) {
      batch.memory_need->value += kGiB / 2;
      host.tick();
    }
  };
  grow(4);
  REQUIRE(host.frozen() == 1);
  batch.memory_need = Bytes{30 * kGiB};
  first.memory_need = Bytes{58 * kGiB};  // 2 of 90 are left
  for (int i = 0; i < 10; ++i) CHECK_FALSE(host.tick());
  CHECK(host.frozen() == 1);
  first.memory_need = Bytes{55 * kGiB};
  host.tick();
  CHECK(host.frozen() == 0);
  // The next shortage begins anew.
  first.memory_need = Bytes{61 * kGiB};
  batch.may_freeze = true;
  grow(3);
  CHECK(host.frozen() == 0);
  grow(1);
  CHECK(host.frozen() == 1);
}

// rule: BUDGET-07
TEST_CASE("the core freezes a growing batch container and thaws it when the host has room") {
  test::Host host;
  host.core.set_terms(test::kId, {});
  Limits limits = host.limits();
  limits.frozen = false;
  host.put(limits, false);
  host.core.admit(test::kId, {.mode = Mode::enforce,
                              .terms = {.service_class = ServiceClass::batch,
                                        .freeze_longest = test::seconds(30)}});
  host.need(600 * kMiB);
  for (int i = 0; i < 60; ++i) {
    host.next.outside.memory_now_bytes = 1e9;
    host.step(0.1);
  }
  CHECK(host.limits().frozen == false);
  int ticks = 0;
  for (; ticks < 20 && host.limits().frozen == false; ++ticks) {
    host.next.outside.memory_now_bytes = 3.5e9;
    host.need((600 + 20 * static_cast<std::uint64_t>(ticks)) * kMiB);
    host.step(0.1);
  }
  CHECK(host.limits().frozen == true);
  CHECK(ticks == kReclaimTicks + 1);
  const ContainerView& view = *host.core.find(test::kId);
  CHECK(view.in_force.frozen == true);
  CHECK(view.original.frozen == false);
  host.next.outside.memory_now_bytes = 1e9;
  host.step(0);
  CHECK(host.limits().frozen == false);
}
