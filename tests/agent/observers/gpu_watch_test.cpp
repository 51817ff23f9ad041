#include "agent/observers/gpu_watch.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "policy/safety/safety_rules.h"
#include "tests/agent/observers/inline_gpu_scanner.h"
#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

using std::chrono::seconds;

// A host with a GPU and containers of one process each, that shares the host's /dev.
class GpuHost {
 public:
  // Where nobody is given who scanner, it is done at once.
  explicit GpuHost(std::unique_ptr<GpuScanner> scanner = nullptr)
      : sampler_(open()), watch(scanner ? std::move(scanner) : at_once()) {
    tree.make_device("/proc/1/root/dev/nvidia0");
  }

  void add(const std::string& name, int pid) const {
    tree.write("/cg/" + name + "/cpu.max", "max 100000\n");
    tree.write("/cg/" + name + "/cgroup.procs", std::to_string(pid) + "\n");
    set_populated(name, true);
    tree.link(at(pid) + "/root", tree.root() + "/proc/1/root");
    tree.make(at(pid) + "/fd");
  }
  void set_populated(const std::string& name, bool populated) const {
    tree.write("/cg/" + name + "/cgroup.events", populated ? "populated 1\n" : "populated 0\n");
  }
  void open_gpu(int pid) const { tree.link(at(pid) + "/fd/3", "/dev/nvidia0"); }
  void close_gpu(int pid) const { tree.remove(at(pid) + "/fd/3"); }

  bool scan(seconds after = seconds(1)) {
    clock.advance(after);
    sampler_.sample(clock, tick);
    return watch.scan(tick, [this](CgroupId id) { return all_wanted || wanted == id; });
  }
  // Of test-a, test-b, ...: the sampler orders them by inode, which a file system may use again.
  CgroupId id(int index = 0) const {
    struct stat status{};
    const std::string path = tree.root() + "/cg/test-" + static_cast<char>('a' + index);
    REQUIRE(::stat(path.c_str(), &status) == 0);
    return {status.st_dev, status.st_ino};
  }
  bool may_have_gpu(int index = 0) const { return watch.may_have_gpu(id(index)); }

  FakeTree tree;

 private:
  static std::string at(int pid) { return "/proc/" + std::to_string(pid); }
  std::unique_ptr<GpuScanner> at_once() const {
    return std::make_unique<InlineGpuScanner>(tree.root() + "/cg", tree.root() + "/proc");
  }
  NodeSampler open() const {
    tree.write("/cg/cgroup.controllers", "cpu memory\n");
    auto sampler = NodeSampler::open({.cgroup_root = tree.root() + "/cg", .include = {"/test-*"}});
    REQUIRE(sampler.has_value());
    return std::move(*sampler);
  }
  ManualClock clock;
  NodeSampler sampler_;

 public:
  NodeSample tick;
  std::optional<CgroupId> wanted;
  bool all_wanted = false;
  GpuWatch watch;
};

// Answers on command, as if each scan had hung until then.
class DelayedGpuScanner final : public GpuScanner {
 public:
  void ask(std::vector<GpuScanRequest> questions) override {
    REQUIRE(asked.empty());
    for (GpuScanRequest& question : questions) asked.push_back(std::move(question));
  }
  std::vector<GpuScanResult> drain_results() override { return std::exchange(answers_, {}); }
  const std::string& failed() const override { return why_failed; }

  void answer(GpuUse use) {
    REQUIRE_FALSE(asked.empty());
    answers_.push_back({HostDevices{1, 1, true}, use});
    asked.pop_front();
  }

  std::deque<GpuScanRequest> asked;
  std::string why_failed;

 private:
  std::vector<GpuScanResult> answers_;
};

// A host with a GPU, whose scans are delayed; the scan of the host is done.
class DelayedGpuHost : public GpuHost {
 public:
  DelayedGpuHost() : DelayedGpuHost(std::make_unique<DelayedGpuScanner>()) {}
  DelayedGpuScanner& scanner() { return *scanner_; }
  // Nothing is asked: what was asked is answered so.
  void settle(GpuUse use) {
    while (!scanner_->asked.empty()) scanner_->answer(use);
  }

 private:
  explicit DelayedGpuHost(std::unique_ptr<DelayedGpuScanner> scanner)
      : GpuHost(nullptr) {
    scanner_ = scanner.get();
    watch = GpuWatch(std::move(scanner));
    scan();
    settle(GpuUse::unknown);
  }
  DelayedGpuScanner* scanner_ = nullptr;
};

}  // namespace

TEST_CASE("a container is looked at when it comes, before anything is decided of it") {
  GpuHost host;
  host.add("test-a", 77);
  host.open_gpu(77);
  CHECK(host.scan());
  CHECK(host.may_have_gpu());
  CHECK(host.watch.source().present);
  CHECK(host.watch.source().detail == "seen in 1 containers");
}

TEST_CASE("a GPU that is opened later is seen within a minute, and stays until the processes end") {
  GpuHost host;
  host.add("test-a", 77);
  host.scan();
  CHECK_FALSE(host.may_have_gpu());
  host.open_gpu(77);
  host.scan(seconds(59));
  CHECK_FALSE(host.may_have_gpu());
  CHECK(host.scan());
  CHECK(host.may_have_gpu());
  host.close_gpu(77);
  host.scan(GpuWatch::kPeriod * 2);
  CHECK(host.may_have_gpu());
  host.set_populated("test-a", false);
  CHECK(host.scan());
  CHECK_FALSE(host.may_have_gpu());
  host.set_populated("test-a", true);
  host.scan();  // at once
  CHECK_FALSE(host.may_have_gpu());
}

TEST_CASE("what cannot be seen is not ruled out, but on a host without a GPU it is") {
  GpuHost host;
  host.add("test-a", 77);
  host.tree.remove("/proc/77");
  host.scan();
  CHECK(host.may_have_gpu());
  CHECK(host.watch.source().detail == "seen in 0 containers, possible in 1");
  host.tree.remove("/proc/1/root/dev/nvidia0");
  CHECK(host.scan(GpuWatch::kPeriod));
  CHECK_FALSE(host.may_have_gpu());
  CHECK_FALSE(host.watch.source().present);
}

TEST_CASE("a container that is gone is forgotten, one that never was has no GPU") {
  GpuHost host;
  host.add("test-a", 77);
  host.open_gpu(77);
  host.scan();
  const CgroupId id = host.tick.containers.at(0).id;
  CHECK(host.watch.may_have_gpu(id));
  CHECK_FALSE(host.watch.may_have_gpu(CgroupId{1, 2}));
  host.tree.remove("/cg/test-a");
  host.scan();
  CHECK_FALSE(host.watch.may_have_gpu(id));
}

TEST_CASE("while a look takes its time a new container is not ruled out, an old one stays as it "
          "was") {
  DelayedGpuHost host;
  host.add("test-a", 77);
  host.scan();
  CHECK(host.may_have_gpu());
  CHECK_FALSE(host.watch.ruled_out(host.id()));
  host.settle(GpuUse::none);
  CHECK(host.scan());
  CHECK_FALSE(host.may_have_gpu());
  CHECK(host.watch.ruled_out(host.id()) == host.tick.time - seconds(1));  // when it began
  host.scan(GpuWatch::kPeriod - seconds(2));
  host.settle(GpuUse::unknown);  // the host itself
  host.scan();
  REQUIRE(host.scanner().asked.size() == 1);
  CHECK_FALSE(host.scan());
  CHECK_FALSE(host.may_have_gpu());
}

TEST_CASE("a scan that hangs is reported by name, and rules out no GPU in its container or a newer "
          "one, until it ends") {
  DelayedGpuHost host;
  host.add("test-a", 77);
  host.add("test-b", 78);
  host.scan();
  host.settle(GpuUse::none);
  host.scan();
  host.wanted = host.id(0);
  host.scan(kFreshGpuLook + seconds(1));
  REQUIRE(host.scanner().asked.size() == 1);
  host.add("test-c", 79);
  host.scan(GpuWatch::kHung - seconds(1));
  CHECK(host.watch.degraded().empty());
  CHECK_FALSE(host.may_have_gpu(0));
  CHECK(host.scan());
  CHECK(host.watch.degraded().starts_with("the scan for a GPU hangs at test-a, "));
  CHECK(host.may_have_gpu(0));
  CHECK_FALSE(host.may_have_gpu(1));
  CHECK(host.may_have_gpu(2));
  CHECK_FALSE(host.scan(GpuWatch::kPeriod * 3));
  CHECK(host.may_have_gpu(2));
  host.settle(GpuUse::none);
  CHECK(host.scan());
  CHECK(host.watch.degraded().empty());
  CHECK_FALSE(host.may_have_gpu(0));
  host.settle(GpuUse::unknown);  // the host, whose turn it was long ago
  host.scan();
  CHECK(host.scanner().asked.size() == 3);
}

TEST_CASE("of many that wait for a lowering few are asked for together, the others next") {
  DelayedGpuHost host;
  for (int i = 0; i < 20; ++i)
    host.add("test-" + std::string(1, static_cast<char>('a' + i)), 77 + i);
  host.scan();
  host.settle(GpuUse::none);
  host.scan();
  host.all_wanted = true;
  host.scan(kFreshGpuLook + seconds(1));
  CHECK(host.scanner().asked.size() == GpuWatch::kMostWanted);
  host.settle(GpuUse::none);
  host.scan();
  CHECK(host.scanner().asked.size() == 20 - GpuWatch::kMostWanted);
}

TEST_CASE("a scan that hangs at a container that is gone, or at the host, is reported") {
  DelayedGpuHost host;
  SUBCASE("gone") {
    host.add("test-a", 77);
    host.scan();
    host.tree.remove("/cg/test-a");
    host.scan(GpuWatch::kHung);
    CHECK(host.watch.degraded().find("a container that is gone") != std::string::npos);
  }
  SUBCASE("host") {
    host.scan(GpuWatch::kPeriod);
    host.scan(GpuWatch::kHung);
    CHECK(host.watch.degraded().find("this host") != std::string::npos);
  }
}

TEST_CASE("a look at processes that have ended says nothing of those that came after them") {
  DelayedGpuHost host;
  host.add("test-a", 77);
  host.scan();
  host.set_populated("test-a", false);
  host.scan();
  host.set_populated("test-a", true);
  host.scan();
  host.settle(GpuUse::none);
  host.scan();
  CHECK(host.may_have_gpu());
  host.settle(GpuUse::none);
  host.scan();
  CHECK_FALSE(host.may_have_gpu());
}

TEST_CASE("one that is wanted is looked at again when the last look is no longer fresh") {
  DelayedGpuHost host;
  host.add("test-a", 77);
  host.scan();
  host.settle(GpuUse::none);
  host.scan();
  const auto looked = host.watch.ruled_out(host.id());
  host.scan(kFreshGpuLook);
  CHECK(host.scanner().asked.empty());  // nobody wants it
  host.wanted = host.id();
  host.scan();
  host.settle(GpuUse::none);
  host.scan();
  CHECK(host.watch.ruled_out(host.id()) > looked);
  CHECK(host.scanner().asked.empty());  // fresh
}

TEST_CASE("if no scan is possible, no GPU is ruled out, and the reason is reported") {
  DelayedGpuHost host;
  host.scanner().why_failed = "no thread";
  host.add("test-a", 77);
  host.scan();
  CHECK(host.scanner().asked.empty());
  CHECK(host.may_have_gpu());
  CHECK_FALSE(host.watch.source().present);
  CHECK(host.watch.source().detail == "no thread");
}
