#include "lab/plot/envelope.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace cgphase;

namespace {

std::vector<Reading> readings(const std::vector<double>& values) {
  std::vector<Reading> out;
  for (std::size_t i = 0; i < values.size(); ++i)
    out.push_back({static_cast<double>(i), values[i]});
  return out;
}

std::vector<LinePoint> envelope(const std::vector<Reading>& readings, double from, double to,
                                int columns) {
  Envelope envelope(from, to, columns);
  for (const Reading& reading : readings) envelope.add(reading);
  return envelope.line();
}

std::size_t beginnings(const std::vector<LinePoint>& line) {
  return static_cast<std::size_t>(std::ranges::count(line, true, &LinePoint::begins));
}

}  // namespace

TEST_CASE("a short series stays as it is") {
  const auto line = envelope(readings({3, 1, 2}), 0, 2, 100);
  REQUIRE(line.size() == 3);
  CHECK(line[0].begins);
  CHECK(beginnings(line) == 1);
  CHECK(line[1].x == 1);
  CHECK(line[1].y == 1);
}

TEST_CASE("a long series has two points per column and keeps every column's extremes") {
  std::vector<double> values(100'000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i * 7919 % 1000);
  values[31'415] = 5000;
  values[92'653] = -5000;
  const auto line = envelope(readings(values), 0, 99'999, 400);
  CHECK(line.size() <= 800);
  CHECK(beginnings(line) == 1);
  const auto [low, high] = std::ranges::minmax(line, {}, &LinePoint::y);
  CHECK(low.y == -5000);
  CHECK(low.x == 92'653);
  CHECK(high.y == 5000);
  CHECK(high.x == 31'415);
  CHECK(std::ranges::is_sorted(line, {}, &LinePoint::x));
}

TEST_CASE("lowest and highest reading keep their order") {
  const auto line = envelope(readings({5, 9, 1, 5}), 0, 4, 1);
  REQUIRE(line.size() == 2);
  CHECK(line[0].y == 9);
  CHECK(line[1].y == 1);
}

TEST_CASE("a gap and an absent reading break the line") {
  auto gap = readings({1, 2, 3, 4});
  gap[2].gap = true;
  const auto broken = envelope(gap, 0, 3, 100);
  REQUIRE(broken.size() == 4);
  CHECK(broken[2].begins);
  CHECK(beginnings(broken) == 2);
  auto absent = readings({1, 2, 3, 4});
  absent[1].y.reset();
  const auto without = envelope(absent, 0, 3, 100);
  REQUIRE(without.size() == 3);
  CHECK(without[1].begins);
}

TEST_CASE("gaps too narrow to be seen do not break the line") {
  auto many = readings(std::vector<double>(10'000, 1));
  for (std::size_t i = 0; i < many.size(); i += 3) many[i].y.reset();
  CHECK(beginnings(envelope(many, 0, 9999, 100)) == 1);
}

TEST_CASE("no readings make no line, one reading makes one point") {
  CHECK(envelope({}, 0, 1, 10).empty());
  CHECK(envelope(std::vector<Reading>{{0, std::nullopt}, {1, std::nullopt}}, 0, 1, 10).empty());
  const auto one = envelope(readings({4}), 0, 0, 10);
  REQUIRE(one.size() == 1);
  CHECK(one[0].begins);
}

TEST_CASE("time that runs backwards stays within the columns") {
  std::vector<Reading> back;
  for (int i = 0; i < 1000; ++i)
    back.push_back({static_cast<double>(i % 2 == 0 ? i : 1000 - i), 1.0, true});
  CHECK(envelope(back, 0, 1000, 20).size() <= 40);
}

TEST_CASE("an envelope has the highest reading, and knows if there was any") {
  Envelope envelope(0, 10, 4);
  envelope.add({1, std::nullopt});
  CHECK_FALSE(envelope.any());
  CHECK(envelope.most() == 0);
  envelope.add({2, -1});
  CHECK(envelope.any());
  CHECK(envelope.most() == 0);
  envelope.add({3, 5});
  envelope.add({9, 4});
  CHECK(envelope.most() == 5);
}
