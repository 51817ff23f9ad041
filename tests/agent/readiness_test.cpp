#include "agent/readiness.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "base/crc32.h"
#include "base/file.h"
#include "control/lease/lease_table.h"
#include "model/model.h"
#include "tests/agent/temporary_directory.h"
#include "tests/core/small_model.h"

using namespace cgphase;

namespace {

void put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// What another version leaves: the same header but for the number.
void change_version(const std::string& path) {
  constexpr std::size_t kVersionAt = 8, kCrcAt = 60;
  std::string file = read_file(path, 1 << 20).value();
  const std::uint32_t version = kLeaseVersion + 1;
  std::memcpy(file.data() + kVersionAt, &version, sizeof version);
  const std::uint32_t crc = crc32c(std::string_view(file).substr(0, kCrcAt));
  std::memcpy(file.data() + kCrcAt, &crc, sizeof crc);
  put(path, file);
}

// A host whose cgroups have `controllers`, and a model that loads.
struct Host {
  explicit Host(const std::string& controllers = "cpu memory io") {
    put(directory / "cgroup.controllers", controllers + "\n");
    REQUIRE(save_model(small_model(), directory / "model.json"));
    config.model = directory / "model.json";
    config.runtime_dir = directory / "run";
    config.cgroup_root = directory.path();
    config.origins["cgroup_root"] = "a test";
  }
  Exit refusal() const {
    const Started<void> ready = check_readiness(config);
    return ready ? Exit::ok : ready.error().exit;
  }

  TemporaryDirectory directory;
  Config config;
};

TEST_CASE("a host that has all is ready in every mode") {
  Host host;
  for (const Mode mode : {Mode::observe, Mode::advise, Mode::enforce}) {
    host.config.mode = mode;
    CHECK(host.refusal() == Exit::ok);
  }
}

TEST_CASE("a start with a model that is missing or damaged is refused for good") {
  Host host;
  put(host.directory / "damaged.json", "{\"format\": ");
  for (const std::string name : {"missing.json", "damaged.json"}) {
    host.config.model = host.directory / name;
    const Started<void> ready = check_readiness(host.config);
    REQUIRE_FALSE(ready);
    CHECK(ready.error().exit == Exit::invalid);
    CHECK(ready.error().text.find(name) != std::string::npos);
  }
}

TEST_CASE("a host without the memory controller is ready to observe, and refused beyond that") {
  Host host("cpu io");
  CHECK(host.refusal() == Exit::ok);
  for (const Mode mode : {Mode::advise, Mode::enforce}) {
    host.config.mode = mode;
    CHECK(host.refusal() == Exit::invalid);
  }
}

TEST_CASE("leases that the unit would not restore from are refused for good") {
  Host host;
  host.config.runtime_dir = "/run/cgphase";
  for (const char* given : {"", "/run/cgphase", "/run/other:/run/cgphase"})
    CHECK(ready_runtime_dir(host.config, given));
  host.config.runtime_dir = "/run/cgphase/a";
  CHECK(ready_runtime_dir(host.config, ""));
  const Started<void> ready = ready_runtime_dir(host.config, "/run/cgphase");
  REQUIRE_FALSE(ready);
  CHECK(ready.error().exit == Exit::invalid);
  CHECK(ready.error().text.find("runtime_dir is /run/cgphase/a") == 0);
}

TEST_CASE("leases of another version are refused for good, before a daemon is stopped for it") {
  Host host;
  const LeaseTable::Options options{.runtime_dir = host.config.runtime_dir, .records = 4};
  REQUIRE(LeaseTable::open(options));
  CHECK(host.refusal() == Exit::ok);
  change_version(host.config.runtime_dir + "/" + kLeaseFileName);
  const Started<void> ready = check_readiness(host.config);
  REQUIRE_FALSE(ready);
  CHECK(ready.error().exit == Exit::invalid);
  CHECK(ready.error().text.find("another version of cgphase") != std::string::npos);
  CHECK(ready.error().text == LeaseTable::open(options).error().text);
}

TEST_CASE("a start while somebody else holds the leases fails, not for good") {
  Host host;
  const LeaseTable::Options options{.runtime_dir = host.config.runtime_dir, .records = 4};
  const auto held = LeaseTable::open(options);
  REQUIRE(held);
  const auto second = LeaseTable::open(options);
  REQUIRE_FALSE(second);
  CHECK(refuse(second.error()).error().exit == Exit::failure);
  CHECK(host.refusal() == Exit::ok);
}

TEST_CASE("cgroups that are named and not there are refused for good") {
  Host host;
  host.config.cgroup_root = host.directory / "nowhere";
  CHECK(host.refusal() == Exit::invalid);
}

}  // namespace
