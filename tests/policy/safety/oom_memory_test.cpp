// Memory floors by image after OOMs, and the need of a container at its OOM.
#include "policy/safety/oom_memory.h"

#include <doctest/doctest.h>

#include <string>

#include "base/units.h"

using namespace cgphase;
using std::chrono::hours;

namespace {

constexpr double kMebi = kMiB;
constexpr double kGibi = kGiB;
const WallTime kThen{std::chrono::seconds(1'700'000'000)};

OomMemory with_need(double bytes) {
  OomMemory memory;
  memory.remember("img", {bytes, 0}, kThen);
  return memory;
}

}  // namespace

TEST_CASE("the floor after an OOM is the larger of 1.2 times the need and 100 MiB more") {
  CHECK(oom_floor_bytes(kGibi) == doctest::Approx(1.2 * kGibi));
  CHECK(oom_floor_bytes(400 * kMebi) == doctest::Approx(500 * kMebi));
  CHECK(oom_floor_bytes(500 * kMebi) == doctest::Approx(600 * kMebi));
}

TEST_CASE("the floor of an image halves every thirty days and ends after four half-lives") {
  const OomMemory memory = with_need(kGibi);
  CHECK(memory.floor_bytes("img", kThen) == doctest::Approx(1.2 * kGibi));
  CHECK(memory.floor_bytes("img", kThen + hours(7 * 24)) > kGibi);
  CHECK(memory.floor_bytes("img", kThen + hours(8 * 24)) < kGibi);
  CHECK(memory.floor_bytes("img", kThen + hours(30 * 24)) == doctest::Approx(0.6 * kGibi));
  CHECK(memory.floor_bytes("img", kThen + hours(60 * 24)) == doctest::Approx(0.3 * kGibi));
  CHECK(memory.floor_bytes("img", kThen + hours(120 * 24 - 1)) > 0);
  CHECK(memory.floor_bytes("img", kThen + hours(120 * 24)) == 0);
}

TEST_CASE("a clock that is set back keeps the floor, and no image has another's") {
  const OomMemory memory = with_need(kGibi);
  CHECK(memory.floor_bytes("img", WallTime{}) == doctest::Approx(1.2 * kGibi));
  CHECK(memory.floor_bytes("other", kThen) == 0);
  CHECK(memory.floor_bytes("", kThen) == 0);
}

TEST_CASE("a floor dated by a clock far ahead ages from the first day with a right clock") {
  OomMemory memory;
  memory.remember("img", {kGibi, 0}, kThen + hours(10 * 365 * 24));
  CHECK(memory.follow_clock(kThen));
  CHECK_FALSE(memory.follow_clock(kThen + hours(1)));
  memory = OomMemory::from_needs(memory.needs()).value();
  CHECK_FALSE(memory.follow_clock(kThen + hours(2)));
  CHECK(memory.floor_bytes("img", kThen) == doctest::Approx(1.2 * kGibi));
  CHECK(memory.floor_bytes("img", kThen + hours(30 * 24)) == doctest::Approx(0.6 * kGibi));
  CHECK(memory.floor_bytes("img", kThen + hours(120 * 24)) == 0);
  // Set back once more: it ages from there on.
  CHECK(memory.follow_clock(kThen - hours(24)));
  CHECK(memory.floor_bytes("img", kThen + hours(29 * 24)) == doctest::Approx(0.6 * kGibi));
}

TEST_CASE("a clock that is far behind until it is corrected drops no floor") {
  OomMemory memory = with_need(kGibi);
  CHECK_FALSE(memory.follow_clock(kThen));
  CHECK(memory.follow_clock(WallTime{}));
  CHECK(memory.floor_bytes("img", WallTime{}) == doctest::Approx(1.2 * kGibi));
  CHECK_FALSE(memory.follow_clock(kThen + hours(30 * 24)));
  CHECK(memory.floor_bytes("img", kThen + hours(30 * 24)) == doctest::Approx(0.6 * kGibi));
}

TEST_CASE("an image dated far ahead does not displace images with newer OOMs") {
  OomMemory memory;
  memory.remember("ahead", {kGibi, 0}, kThen + hours(10 * 365 * 24));
  memory.follow_clock(kThen);
  for (std::size_t i = 1; i < OomMemory::kImages; ++i)
    memory.remember("img" + std::to_string(i), {kGibi, 0}, kThen + hours(i));
  memory.remember("one more", {kGibi, 0}, kThen + hours(1000));
  CHECK(memory.floor_bytes("ahead", kThen) == 0);
  CHECK(memory.floor_bytes("img1", kThen) > 0);
}

TEST_CASE("of two OOMs the one with the higher decayed floor counts") {
  OomMemory memory = with_need(2 * kGibi);
  memory.remember("img", {kGibi, 0}, kThen + hours(24));
  CHECK(memory.floor_bytes("img", kThen + hours(30 * 24)) == doctest::Approx(1.2 * kGibi));
  memory.remember("img", {kGibi, 0}, kThen + hours(31 * 24));
  CHECK(memory.floor_bytes("img", kThen + hours(31 * 24)) == doctest::Approx(1.2 * kGibi));
  CHECK(memory.size() == 1);
}

TEST_CASE("above the maximum number of images the one with the oldest OOM is dropped") {
  OomMemory memory;
  for (std::size_t i = 0; i < OomMemory::kImages; ++i)
    memory.remember("img" + std::to_string(i), {kGibi, 0}, kThen + hours(i));
  CHECK(memory.size() == OomMemory::kImages);
  CHECK(memory.floor_bytes("img0", kThen) > 0);
  memory.remember("one more", {kGibi, 0}, kThen + hours(1000));
  CHECK(memory.size() == OomMemory::kImages);
  CHECK(memory.floor_bytes("img0", kThen) == 0);
  CHECK(memory.floor_bytes("img1", kThen) > 0);
}

TEST_CASE("a name is stored up to its maximum length, and a need only if it is possible") {
  OomMemory memory;
  memory.remember(std::string(OomMemory::kMostNameBytes, 'a'), {kGibi, 0}, kThen);
  CHECK(memory.size() == 1);
  memory.remember(std::string(OomMemory::kMostNameBytes + 1, 'a'), {kGibi, 0}, kThen);
  for (const double none : {0.0, -1.0, 1e300}) memory.remember("b", {none, 0}, kThen);
  CHECK(memory.size() == 1);
}

TEST_CASE("the need at a first OOM is the limit reached, else the measured need") {
  OomMemory memory;
  memory.remember("met", {kGibi, 4 * kGibi}, kThen);
  CHECK(memory.floor_bytes("met", kThen) == doctest::Approx(4.8 * kGibi));
  memory.remember("not met", {kGibi, 0}, kThen);
  CHECK(memory.floor_bytes("not met", kThen) == doctest::Approx(1.2 * kGibi));
}

TEST_CASE("while a floor exists, a limit renews it and only a measured need raises it") {
  OomMemory memory;
  memory.remember("img", {kGibi, 4 * kGibi}, kThen);
  for (int day = 1; day <= 10; ++day) {
    const WallTime now = kThen + hours(24 * day);
    CAPTURE(day);
    // A step above the current floor.
    memory.remember("img", {kGibi, 1.05 * memory.floor_bytes("img", now)}, now);
    CHECK(memory.floor_bytes("img", now) == doctest::Approx(4.8 * kGibi));
  }
  const WallTime later = kThen + hours(24 * 11);
  memory.remember("img", {4.5 * kGibi, 5 * kGibi}, later);
  CHECK(memory.floor_bytes("img", later) == doctest::Approx(1.2 * 4.5 * kGibi));
}

TEST_CASE("a kill without a reached limit does not renew a floor") {
  OomMemory memory;
  memory.remember("img", {kGibi, 4 * kGibi}, kThen);
  const WallTime later = kThen + hours(24 * 30);
  memory.remember("img", {kGibi, 0}, later);
  CHECK(memory.floor_bytes("img", later) == doctest::Approx(2.4 * kGibi));
}

TEST_CASE("an OOM is reported with the measured need, and with memory.max if it was reached") {
  OomWatch watch;
  watch.step(false, false);
  CHECK_FALSE(watch.seen(kGibi, true, 8 * kGibi).has_value());  // nothing of ours was in force
  watch.written(true);
  CHECK(watch.seen(kGibi, true, 8 * kGibi)->measured_bytes == kGibi);
  CHECK(watch.seen(kGibi, true, 8 * kGibi)->limit_bytes == 8 * kGibi);
  CHECK(watch.seen(kGibi, false, 8 * kGibi)->limit_bytes == 0);
}

TEST_CASE("a limit of ours raised since the last step still counts at an OOM") {
  OomWatch watch;
  watch.written(true);
  watch.step(true, false);
  watch.written(false);  // the fast path
  CHECK(watch.seen(kGibi, true, 8 * kGibi).has_value());
  watch.step(false, true);
  CHECK(watch.seen(kGibi, true, 8 * kGibi).has_value());
  watch.step(false, false);
  CHECK_FALSE(watch.seen(kGibi, true, 8 * kGibi).has_value());
}
