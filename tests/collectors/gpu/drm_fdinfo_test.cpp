#include "collectors/gpu/drm_fdinfo.h"

#include <doctest/doctest.h>

#include <string>

using namespace cgphase;

namespace {

DrmFdinfo scanned(const std::string& text) {
  const auto info = scan_drm_fdinfo("pos:\t0\nflags:\t02\ndrm-driver:\tamdgpu\n"
                                    "drm-pdev:\t0000:03:00.0\ndrm-client-id:\t42\n" + text);
  REQUIRE(info.has_value());
  return *info;
}

constexpr double kSecond = 1e9;

}  // namespace

TEST_CASE("fdinfo of a graphics device has client and device, other fdinfo has nothing") {
  const DrmFdinfo info = scanned("");
  CHECK(info.driver == "amdgpu");
  CHECK(info.pci_address == "0000:03:00.0");
  CHECK(info.client_id == 42);
  CHECK_FALSE(info.memory);
  CHECK_FALSE(scan_drm_fdinfo("pos:\t0\nflags:\t02\n").has_value());
  CHECK_FALSE(scan_drm_fdinfo("drm-driver:\tast\n").has_value());
  CHECK_FALSE(scan_drm_fdinfo(std::string(100, '\xff') + "\0:drm-").has_value());
}

TEST_CASE("device memory is the resident part in any unit, and host memory is not counted") {
  CHECK(scanned("drm-memory-vram:\t5 KiB\ndrm-memory-gtt:\t7 KiB\n").memory == Bytes{5 * 1024});
  CHECK(scanned("drm-total-vram0:\t9 MiB\ndrm-resident-vram0:\t2 MiB\ndrm-total-system0:\t9 MiB\n"
                "drm-resident-local1:\t100\n").memory == Bytes{2 * kMiB + 100});
  CHECK(scanned("drm-total-local0:\t1 GiB\n").memory == Bytes{kGiB});
  CHECK_FALSE(scanned("drm-total-vram:\t1 furlong\ndrm-resident-vram:\t99999999999999999999 KiB\n")
                  .memory);
}

TEST_CASE("a client is as busy as its busiest kind of engine") {
  const DrmFdinfo before = scanned("drm-engine-gfx:\t1000 ns\ndrm-engine-video:\t0 ns\n"
                                   "drm-engine-capacity-video:\t2\n");
  const DrmFdinfo now = scanned("drm-engine-gfx:\t250001000 ns\ndrm-engine-video:\t1000000000 ns\n"
                                "drm-engine-capacity-video:\t2\ndrm-engine-new:\t900000000 ns\n");
  CHECK(busy_ratio(before, now, kSecond) == 0.5);
  CHECK(busy_ratio(now, now, kSecond) == 0.0);
  CHECK_FALSE(busy_ratio(now, before, kSecond));  // counters that fell
  CHECK_FALSE(busy_ratio(scanned(""), now, kSecond));
  CHECK(busy_ratio(before, now, kSecond / 100) == 1.0);
  CHECK_FALSE(busy_ratio(before, now, 0));
}

TEST_CASE("drivers that count cycles are supported") {
  const DrmFdinfo before = scanned("drm-cycles-rcs:\t100\ndrm-total-cycles-rcs:\t1000\n");
  const DrmFdinfo now = scanned("drm-cycles-rcs:\t350\ndrm-total-cycles-rcs:\t2000\n");
  CHECK(busy_ratio(before, now, kSecond) == 0.25);
  CHECK_FALSE(busy_ratio(before, before, kSecond));
}

TEST_CASE("kinds of engines and regions of memory are limited") {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    const std::string n = std::to_string(i);
    text += "drm-engine-e" + n + ":\t1 ns\ndrm-resident-vram" + n + ":\t1\n";
  }
  const DrmFdinfo info = scanned(text);
  CHECK(info.engines.size() == kMostEngines);
  CHECK(info.memory == Bytes{kMostEngines});
}
