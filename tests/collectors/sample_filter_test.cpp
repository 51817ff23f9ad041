#include "collectors/sample_filter.h"

#include <doctest/doctest.h>

#include <functional>

#include "tests/collectors/fake_node.h"

using namespace cgphase;

namespace {

constexpr HostCapacity kHost{.cpu_cores = 2, .memory = Bytes{kGiB}, .swap = Bytes{kMiB}};

Sample sample_at(std::uint64_t second) {
  Sample sample;
  sample.cpu.usage_usec = 1'000'000'000 + second * 1'500'000;
  sample.cpu.throttled_usec = second;
  sample.memory_current = Bytes{100 * kMiB};
  sample.swap_current = Bytes{0};
  sample.memory.anon_bytes = 90 * kMiB;
  sample.memory.pgfault = second * 1000;
  sample.io.read_bytes = second * 1'000'000;
  sample.pids_current = 3;
  return sample;
}

struct Filtered {
  SampleFilter filter;
  std::uint64_t second = 0;

  Filtered() {
    CHECK(next() == 's');
    CHECK(next() == 's');
  }
  // 's': accepted, 'm': mended, 'l': left out.
  char next(const std::function<void(Sample&)>& change = {}) {
    sample = sample_at(++second);
    if (change) change(sample);
    const MonotonicTime time(std::chrono::seconds{second});
    if (filter.accept(time, kHost, sample)) return 's';
    return filter.mend(time, kHost, sample) ? 'm' : 'l';
  }
  Sample sample;
};

}  // namespace

TEST_CASE("an impossible sample is left out, and the next one is accepted") {
  const std::function<void(Sample&)> changes[] = {
      [](Sample& s) { s.cpu.usage_usec = 1'700'000'000'000'000; },
      [](Sample& s) { *s.cpu.usage_usec += 1'200'000; },  // 2.7 cores of 2
      [](Sample& s) { s.cpu.throttled_usec = 9'000'000'000'000'000; },
      [](Sample& s) { s.io.read_bytes = 4'000'000'000'000'000; },
      [](Sample& s) { s.memory.pgfault = 1'000'000'000'000'000; },
      [](Sample& s) { s.memory_current = Bytes{kGiB + kMiB + 1}; },
      [](Sample& s) { s.memory.anon_bytes = kGiB + kMiB + 1; },
      [](Sample& s) { s.swap_current = Bytes{2 * kGiB}; },
      [](Sample& s) { s.memory_peak = Bytes{UINT64_MAX}; },
      [](Sample& s) { s.pids_current = kMostTasks + 1; },
  };
  for (const auto& change : changes) {
    Filtered one;
    CHECK(one.next(change) == 'l');
    CHECK(one.next() == 's');
    CHECK(one.next() == 's');
  }
}

TEST_CASE("possible values are accepted to the last byte, and a counter may restart") {
  Filtered one;
  CHECK(one.next([](Sample& s) { s.memory_current = Bytes{kGiB + kMiB}; }) == 's');
  CHECK(one.next([](Sample& s) { s.pids_current = kMostTasks; }) == 's');
  // 2.5: tick granularity.
  CHECK(one.next([](Sample& s) { *s.cpu.usage_usec += 1'000'000; }) == 's');
  CHECK(one.next([](Sample& s) { s.cpu.usage_usec = 5; }) == 's');
}

TEST_CASE("a counter that stays at a new level is accepted without the jump") {
  Filtered one;
  const auto higher = [](Sample& s) { *s.cpu.usage_usec += 1'000'000'000'000; };
  CHECK(one.next(higher) == 'l');
  CHECK(one.next(higher) == 'm');
  CHECK_FALSE(one.sample.cpu.usage_usec.has_value());
  CHECK(one.sample.memory_current.has_value());
  CHECK(one.next(higher) == 's');
}

TEST_CASE("oscillating counters leave out at most two consecutive samples") {
  Filtered one;
  for (std::uint64_t round = 0; round < 20; ++round) {
    const auto higher = [&](Sample& s) { *s.cpu.usage_usec += (round + 1) * 1'000'000'000'000; };
    const char verdict = one.next(higher);
    CHECK(verdict == (round < kMostLeftOut ? 'l' : 'm'));
    if (verdict == 'm') CHECK_FALSE(one.sample.cpu.usage_usec.has_value());
  }
}

TEST_CASE("a persistently impossible amount is absent, and so is need if it may be too small") {
  Filtered one;
  const auto wrong = [](Sample& s) { s.swap_current = Bytes{2 * kGiB}; };
  CHECK(one.next(wrong) == 'l');
  CHECK(one.next(wrong) == 'l');
  for (int i = 0; i < 5; ++i) {
    CHECK(one.next(wrong) == 'm');
    CHECK_FALSE(one.sample.swap_current.has_value());
    CHECK_FALSE(memory_need(one.sample).has_value());
    CHECK(one.sample.cpu.usage_usec.has_value());
  }
  CHECK(one.next() == 's');
  const auto anon = [](Sample& s) { s.memory.anon_bytes = 2 * kGiB; };
  CHECK(one.next(anon) == 'l');
  CHECK(one.next(anon) == 'l');
  CHECK(one.next(anon) == 'm');
  CHECK(memory_need(one.sample).has_value() == false);  // none of its lines is left
}

TEST_CASE("an unknown host only limits values that no kernel counts") {
  SampleFilter filter;
  Sample sample = sample_at(1);
  CHECK(filter.accept(MonotonicTime(std::chrono::seconds(1)), {}, sample));
  *sample.cpu.usage_usec += 900'000'000;
  sample.memory_current = Bytes{std::uint64_t{1} << 50};
  CHECK(filter.accept(MonotonicTime(std::chrono::seconds(2)), {}, sample));
}

TEST_CASE("an impossible sample is counted, reported and not in the tick; the next one is") {
  Node node;
  const auto put = [&](std::uint64_t usec) {
    node.write("/cg/docker/" + kDockerId + "/cpu.stat",
               "usage_usec " + std::to_string(usec) + "\n");
  };
  put(1'000'000);
  node.write("/cg/docker/" + kOtherId + "/cpu.stat", "usage_usec 5\n");
  NodeSampler sampler = node.open();
  CHECK(node.sample(sampler).containers.size() == 2);
  put(1'700'000'000'000'000);
  CHECK(node.sample(sampler).containers.size() == 1);
  CHECK(node.tick.vanished.empty());
  CHECK(sampler.impossible_samples() == 1);
  put(1'500'000);
  CHECK(node.sample(sampler).containers.size() == 2);
  CHECK(sampler.impossible_samples() == 1);
  for (const Source& source : sampler.sources())
    if (source.name == "kernel files") CHECK(source.detail.find("1 samples") != std::string::npos);
}

TEST_CASE("a grown host is read before a sample of its new processors is left out") {
  Node node;
  const auto put = [&](std::uint64_t usec) {
    node.write("/cg/docker/" + kDockerId + "/cpu.stat",
               "usage_usec " + std::to_string(usec) + "\n");
  };
  put(0);
  NodeSampler sampler = node.open();
  CHECK(node.sample(sampler).containers.size() == 1);
  node.write("/proc/stat", "cpu  1 2 3\ncpu0 1\ncpu1 1\ncpu2 1\ncpu3 1\n");
  put(4'000'000);
  CHECK(node.sample(sampler).containers.size() == 1);
  CHECK(sampler.impossible_samples() == 0);
}

TEST_CASE("a truncated file is reported while it is truncated") {
  Node node;
  const auto kernel_files = [](const NodeSampler& sampler) {
    for (const Source& source : sampler.sources())
      if (source.name == "kernel files") return source;
    return Source{};
  };
  node.write("/cg/docker/" + kDockerId + "/memory.current", "12");
  NodeSampler sampler = node.open();
  node.sample(sampler);
  CHECK_FALSE(kernel_files(sampler).present);
  CHECK(kernel_files(sampler).detail.find("/memory.current") != std::string::npos);
  node.write("/cg/docker/" + kDockerId + "/memory.current", "1234\n");
  CHECK(node.sample(sampler).containers[0].memory_current == Bytes{1234});
  CHECK(kernel_files(sampler).present);
}
