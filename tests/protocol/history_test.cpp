#include "protocol/history.h"

#include <doctest/doctest.h>

#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

HistoryPoint point_of(std::uint64_t second) {
  HistoryPoint point{at_second(static_cast<double>(second)), full_sample({}, second), {}};
  point.phase = {.state = PhaseState::unknown, .index = 3, .distance = 0.1, .margin = 1e-9};
  point.original.cpu_max = CpuMax{Microseconds{250'000}};
  point.original.memory_max = MemoryLimit{};
  point.host = {7.5, Bytes{16 * kGiB}};
  point.clock_start_ms = 1'700'000'000'000;
  return point;
}

void check_same(const HistoryPoint& a, const HistoryPoint& b) {
  CHECK(same(a, b));
  CHECK(a.original == b.original);
  CHECK(a.host.cpu_cores == b.host.cpu_cores);
  CHECK(a.host.memory == b.host.memory);
}

bool refused(json body) { return !parse_history_page(body); }

}  // namespace

TEST_CASE("a page gives its points back, field by field") {
  HistoryPoint bare;
  bare.time = at_second(5);
  const std::vector<HistoryPoint> points = {point_of(1), bare};
  const auto back = parse_history_page(json::parse(history_page(points).dump()));
  REQUIRE_MESSAGE(back.has_value(), (back ? "" : back.error().text));
  REQUIRE(back->size() == 2);
  check_same((*back)[0], points[0]);
  check_same((*back)[1], bare);
}

TEST_CASE("CPU use is computed by the monotonic clock, whatever the wall clock was set to") {
  const auto cores_of = [](std::int64_t second_ms, std::uint64_t start_ms) {
    std::vector<HistoryPoint> points(2);
    points[0].time = at_second(10);
    points[1].time = points[0].time + std::chrono::milliseconds(second_ms);
    points[0].clock_start_ms = 1'700'000'000'000;
    points[1].clock_start_ms = start_ms;
    points[0].sample.cpu.usage_usec = 0;
    points[1].sample.cpu.usage_usec = 990'000;
    points[1].host.cpu_cores = 1;
    return history_of_record({}, points)["points"][1]["cpu_cores"];
  };
  CHECK(cores_of(1000, 1'700'000'000'000) == doctest::Approx(0.99));
  CHECK(cores_of(400, 1'699'999'999'400) == doctest::Approx(0.99));   // set back by 600 ms
  CHECK(cores_of(-4000, 1'699'999'995'000) == doctest::Approx(0.99));
  CHECK(cores_of(61'000, 1'700'000'060'000) == doctest::Approx(0.99));
  CHECK(cores_of(400, 1'700'000'000'000) == 1);  // not more than the host has
  CHECK(cores_of(30'000, 1'700'000'900'000) == doctest::Approx(0.033));  // started anew
}

TEST_CASE("a page is at most 64 KiB and 120 points, whatever is in them") {
  std::vector<HistoryPoint> points;
  for (std::uint64_t i = 0; i < 500; ++i) points.push_back(point_of(i));
  for (int seed = 0; seed < 4; ++seed) {
    const json page = history_page(points);
    CHECK(page.dump().size() < std::size_t{64} * 1024);
    CHECK(page["samples"].size() > 20);
    CHECK(page["samples"].size() <= std::size_t{kHistoryPagePoints});
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    for (HistoryPoint& point : points) point.sample = random_sample({}, random);
  }
  for (HistoryPoint& point : points) {
    point.sample = {};
    point.clock_start_ms = {};
  }
  CHECK(history_page(points)["samples"].size() == std::size_t{kHistoryPagePoints});
}

TEST_CASE("columns of another version are passed over, those it lacks are absent") {
  const json page = {{"columns", {"time_ns", "made.later", "memory_current"}},
                     {"samples", {{5, {{"any", "thing"}}, 7}, {6, nullptr, nullptr}}}};
  const auto points = parse_history_page(page);
  REQUIRE(points);
  CHECK((*points)[0].sample.memory_current == Bytes{7});
  CHECK_FALSE((*points)[1].sample.memory_current);
  CHECK_FALSE((*points)[0].sample.cpu.usage_usec);
}

TEST_CASE("what is no page, and a value of another type, is refused") {
  CHECK(refused(json()));
  CHECK(refused(json::array()));
  CHECK(refused({{"columns", {"time_ns"}}}));
  CHECK(refused({{"columns", {"memory_current"}}, {"samples", json::array()}}));
  const auto with = [](const char* column, json value) {
    return json{{"columns", {"time_ns", column}}, {"samples", {{5, std::move(value)}}}};
  };
  CHECK_FALSE(refused(with("memory_current", 7)));
  for (const json& value : {json(-1), json(1.5), json("x"), json(true), json::array()})
    CHECK(refused(with("memory_current", value)));
  CHECK(refused(with("populated", 1)));
  CHECK(refused(with("phase.state", "happy")));
  CHECK(refused(with("phase.index", 1e10)));
  CHECK(refused(with("phase.index", 1LL << 40)));
  CHECK(refused(with("limits.cpu_max", {"max"})));
  CHECK(refused(with("limits.cpu_max", {"min", 5})));
  CHECK(refused({{"columns", {"time_ns"}}, {"samples", {{nullptr}}}}));
  CHECK(refused({{"columns", {"time_ns"}}, {"samples", {{5, 6}}}}));
}

TEST_CASE("records come back with their names, hostile ones too") {
  RecordEntry entry{.record = 7, .container = {}, .first_seen = at_second(3)};
  entry.container.name = "\x1b[31m\xff";
  entry.container.image = "a\\b";
  const json page = records_page(std::vector{entry});
  CHECK(page.dump().find('\x1b') == std::string::npos);
  const auto back = parse_records_page(page);
  REQUIRE(back);
  CHECK(back->front().record == 7);
  CHECK(back->front().container.name == entry.container.name);
  CHECK(back->front().container.image == "a\\b");
  CHECK(back->front().first_seen == entry.first_seen);
  CHECK_FALSE(parse_records_page({{"records", {5}}}));
  CHECK_FALSE(parse_records_page({{"records", {{{"record", "7"}}}}}));
  CHECK_FALSE(parse_records_page(json()));
}

TEST_CASE("a page of a table comes back with every kind of value") {
  const TablePage page{.columns = {{"decision", "INTEGER"}, {"usage", "REAL"}, {"writer", "TEXT"}},
                       .rows = {{std::int64_t{7}, 0.1, "init (pid 1)"},
                                {std::int64_t{-8}, -1e300, {}}}};
  const auto back = parse_table_reply(json::parse(table_reply(page).dump()));
  REQUIRE(back);
  CHECK(back->columns == page.columns);
  CHECK(back->rows == page.rows);
  CHECK(parse_table_reply(table_reply({}))->rows.empty());
}

TEST_CASE("what is no page of a table is refused") {
  const json one = json::array({json::array({"a", "TEXT"})});
  const auto parsed = [](const json& columns, const json& rows) {
    return parse_table_reply(json{{"columns", columns}, {"rows", rows}}).has_value();
  };
  CHECK(parsed(one, json::array({json::array({"x"})})));
  CHECK_FALSE(parse_table_reply(json()));
  CHECK_FALSE(parse_table_reply(json::object()));
  CHECK_FALSE(parsed(7, json::array()));
  CHECK_FALSE(parsed(json::array({json::array({"a"})}), json::array()));
  CHECK_FALSE(parsed(json::array({json::array({"a", 7})}), json::array()));
  CHECK_FALSE(parsed(one, json::array({7})));
  CHECK_FALSE(parsed(one, json::array({json::array({"x", "y"})})));
  CHECK_FALSE(parsed(json(300, one[0]), json::array()));
}

TEST_CASE("a point in plain values has a word for each column, and limits as the kernel has them") {
  HistoryPoint point;
  point.time = WallTime(std::chrono::nanoseconds(5));
  point.sample.memory_current = Bytes{4096};
  point.sample.limits.cpu_max = CpuMax{Microseconds{50'000}};
  point.original.cpu_max = CpuMax{};
  point.sample.limits.memory_max = MemoryLimit{};
  const std::vector<TableColumn> columns = plain_columns();
  const std::vector<SqlValue> values = plain_values(point);
  REQUIRE(columns.size() == values.size());
  const auto of = [&](const std::string& name) {
    const auto found = std::ranges::find(columns, name, &TableColumn::name);
    REQUIRE(found != columns.end());
    return values[static_cast<std::size_t>(found - columns.begin())];
  };
  CHECK(of("time_ns") == SqlValue(std::int64_t{5}));
  CHECK(of("memory_current") == SqlValue(std::int64_t{4096}));
  CHECK(of("limits_cpu_max") == SqlValue("50000 100000"));
  CHECK(of("original_cpu_max") == SqlValue("max 100000"));
  CHECK(of("limits_memory_max") == SqlValue("max"));
  CHECK(of("swap_current") == SqlValue());
}
