#include "storage/journal.h"

#include <doctest/doctest.h>

#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

constexpr CgroupId kLarge{42, UINT64_MAX};  // inodes are unsigned, SQLite's integers are not

std::vector<JournalDecision> decisions_in(Store& store, std::optional<CgroupId> id, double until,
                                          int limit) {
  const auto found = read_decisions(store, id, at_second(until), limit);
  REQUIRE(found.has_value());
  return *found;
}

JournalDecision rich_decision() {
  JournalDecision entry = decision_of(kLarge, UINT64_MAX, at_second(3));
  Decision& decision = entry.decision;
  decision.resource = Resource::memory;
  decision.direction = Direction::raise;
  decision.reason = Reason::silence;
  decision.verdict = Verdict::standing_down;
  decision.old_limits = {CpuMax{Microseconds{50'000}, Microseconds{100'000}},
                         Microseconds{3},
                         10000,
                         MemoryLimit{Bytes{UINT64_MAX}},
                         MemoryLimit{},
                         MemoryLimit{Bytes{0}},
                         std::nullopt,
                         true};
  decision.new_limits.cpu_max = CpuMax{std::nullopt, Microseconds{250'000}};
  decision.phase = {PhaseState::known, 3, 0.1, 1e-300};
  decision.usage = 1.25;
  decision.statistic = 2.0 / 3.0;
  decision.sample_count = 61.5;
  for (std::size_t fact = 0; fact < kFactCount; fact += 2)  // the others are absent
    decision.evidence.facts[fact] = 0.5 + static_cast<double>(fact);
  entry.writer = "\x1b\xff (pid 1, a\\b.scope) wrote memory.max 7";
  return entry;
}

}  // namespace

TEST_CASE("every field of a decision comes back") {
  Store store = open_store(":memory:");
  const JournalDecision written = rich_decision();
  REQUIRE(store.append({}, {written}, {}).has_value());
  const auto found = decisions_in(store, kLarge, 10, 10);
  REQUIRE(found.size() == 1);
  const Decision &a = written.decision, &b = found[0].decision;
  CHECK(found[0].time == written.time);
  CHECK(found[0].writer == written.writer);
  CHECK(a.decision_id == b.decision_id);
  CHECK(a.time == b.time);
  CHECK(a.container == b.container);
  CHECK(a.resource == b.resource);
  CHECK(a.direction == b.direction);
  CHECK(a.old_limits == b.old_limits);
  CHECK(a.new_limits == b.new_limits);
  CHECK(a.reason == b.reason);
  CHECK(a.verdict == b.verdict);
  CHECK(same(a.phase, b.phase));
  CHECK(a.usage == b.usage);
  CHECK(a.statistic == b.statistic);
  CHECK(a.sample_count == b.sample_count);
  CHECK(a.evidence == b.evidence);
}

TEST_CASE("every reason and verdict has a word that reads back") {
  Store store = open_store(":memory:");
  std::vector<JournalDecision> written;
  for (int i = 0; *to_string(static_cast<Verdict>(i)) != '\0'; ++i) {
    JournalDecision entry = decision_of(kOne, static_cast<std::uint64_t>(i), at_second(i));
    entry.decision.verdict = static_cast<Verdict>(i);
    entry.decision.reason =
        static_cast<Reason>(std::min(i, static_cast<int>(Reason::freeze_over)));
    written.push_back(entry);
  }
  REQUIRE(store.append({}, written, {}).has_value());
  const auto found = decisions_in(store, kOne, 100, 100);
  REQUIRE(found.size() == written.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[found.size() - 1 - i].decision.verdict == written[i].decision.verdict);
    CHECK(found[found.size() - 1 - i].decision.reason == written[i].decision.reason);
  }
}

TEST_CASE("an outcome comes back, its hostile detail too") {
  Store store = open_store(":memory:");
  JournalOutcome written = outcome_of(kOne, 9, at_second(1));
  written.outcome.kind = OutcomeKind::overtaken;
  written.outcome.detail = std::string("\x1b[31m\0<b>\xff\\", 11);
  REQUIRE(store.append({}, {}, {written}).has_value());
  const auto found = read_outcomes(store, kOne, at_second(1), 1);
  REQUIRE(found.has_value());
  REQUIRE(found->size() == 1);
  CHECK((*found)[0].time == written.time);
  CHECK((*found)[0].outcome.decision_id == 9);
  CHECK((*found)[0].outcome.time == written.outcome.time);
  CHECK((*found)[0].outcome.kind == OutcomeKind::overtaken);
  CHECK((*found)[0].outcome.detail == written.outcome.detail);
}

TEST_CASE("a detail is kept up to its bound and cut one past it") {
  Store store = open_store(":memory:");
  JournalOutcome whole = outcome_of(kOne, 1, at_second(1)),
                 longer = outcome_of(kOne, 2, at_second(2));
  whole.outcome.detail.assign(kMaxDetailBytes, 'a');
  longer.outcome.detail.assign(kMaxDetailBytes + 1, 'b');
  REQUIRE(store.append({}, {}, {whole, longer}).has_value());
  const auto found = read_outcomes(store, kOne, at_second(9), 9);
  REQUIRE(found.has_value());
  CHECK((*found)[1].outcome.detail.size() == kMaxDetailBytes);
  CHECK((*found)[0].outcome.detail.size() == kMaxDetailBytes);
}

TEST_CASE("decisions come newest first, up to and with `until`, at most `limit`") {
  Store store = open_store(":memory:");
  REQUIRE(store
              .append({},
                      {decision_of(kOne, 1, at_second(1)), decision_of(kLarge, 2, at_second(2)),
                       decision_of(kOne, 3, at_second(3))},
                      {})
              .has_value());
  CHECK(decisions_in(store, std::nullopt, 3, 10).size() == 3);
  CHECK(decisions_in(store, std::nullopt, 2, 10).size() == 2);
  CHECK(decisions_in(store, std::nullopt, 3, 10)[0].decision.decision_id == 3);
  CHECK(decisions_in(store, std::nullopt, 3, 2).size() == 2);
  CHECK(decisions_in(store, std::nullopt, 3, 0).empty());
  CHECK(decisions_in(store, std::nullopt, 3, -1).empty());
  CHECK(decisions_in(store, kOne, 9, 10).size() == 2);
  CHECK(decisions_in(store, kLarge, 9, 10)[0].decision.decision_id == 2);
  CHECK(decisions_in(store, CgroupId{1, 1}, 9, 10).empty());
}

TEST_CASE("what was written and what was not come in one order of time") {
  Store store = open_store(":memory:");
  std::vector<JournalDecision> decisions;
  for (std::uint64_t id = 1; id <= 6; ++id) {
    decisions.push_back(decision_of(kOne, id, at_second(static_cast<double>(id))));
    if (id % 2 == 0) decisions.back().decision.verdict = Verdict::cool_down;
  }
  REQUIRE(store.append({}, decisions, {}).has_value());
  const auto found = decisions_in(store, kOne, 9, 4);
  REQUIRE(found.size() == 4);
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i].decision.decision_id == 6 - i);
  CHECK(store.last_decision_id() == 6);
}

TEST_CASE("entries are of all containers of that name and engine, of earlier boots too") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  const auto info = [](std::uint64_t inode, Engine engine) {
    return ContainerInfo{.id = {42, inode}, .path = "/a", .engine = engine, .engine_id = "abcdef",
                         .name = "we\\b"};
  };
  {
    Store before = Store::open({.path = path, .boot_id = "boot-0"}).value();
    REQUIRE(before.add_container(info(1, Engine::docker), at_second(0)).has_value());
    REQUIRE(before.append({}, {decision_of(kOne, 1, at_second(1))},
                          {outcome_of(kOne, 1, at_second(2))}).has_value());
  }
  Store store = Store::open({.path = path, .boot_id = "boot-1"}).value();
  const CgroupId again{42, 2}, other{42, 3};
  REQUIRE(store.add_container(info(2, Engine::docker), at_second(600'000)).has_value());
  REQUIRE(store.add_container(info(3, Engine::podman), at_second(600'000)).has_value());
  JournalOutcome written = outcome_of(again, 2, at_second(604'801));
  written.outcome.kind = OutcomeKind::written;
  REQUIRE(store.append({}, {decision_of(again, 2, at_second(604'800)),
                            decision_of(other, 3, at_second(604'800))},
                       {written, outcome_of(again, 2, at_second(604'802))}).has_value());
  const Store::Subject subject{.id = again, .name = "we\\b", .engine = Engine::docker};
  const auto found = store.entries(subject, at_second(700'000), 10);
  REQUIRE(found.has_value());
  REQUIRE(found->size() == 2);
  CHECK(found->at(0).decision.decision.decision_id == 2);
  REQUIRE(found->at(0).written);
  CHECK(found->at(0).written->time == at_second(604'801));
  REQUIRE(found->at(0).end);
  CHECK(found->at(0).end->time == at_second(604'802));
  CHECK(found->at(1).decision.decision.decision_id == 1);  // seven days ago
  CHECK_FALSE(found->at(1).written);
  CHECK(found->at(1).end);
  CHECK(store.entries(subject, at_second(604'799), 10)->size() == 1);
  CHECK(store.entries(subject, at_second(700'000), 1)->size() == 1);
  CHECK(store.entries({.id = {9, 9}, .name = "we\\b"}, at_second(700'000), 10)->empty());
}

TEST_CASE("entries are none of a later one of that name, nor of one that lives beside it") {
  Store store = open_store(":memory:");
  for (const std::uint64_t inode : {1, 2, 3}) {
    REQUIRE(store.add_container({.id = {42, inode}, .name = "web"}, at_second(0)).has_value());
    REQUIRE(store.append({}, {decision_of({42, inode}, inode, at_second(1))}, {}).has_value());
  }
  const auto ids = [&](const Store::Subject& subject) {
    std::vector<std::uint64_t> found;
    const auto entries = store.entries(subject, at_second(9), 10);
    REQUIRE(entries.has_value());
    for (const JournalEntry& entry : *entries)
      found.push_back(entry.decision.decision.decision_id);
    return found;
  };
  const auto of = [](std::uint64_t inode) {
    return Store::Subject{.id = {42, inode}, .name = "web"};
  };
  CHECK(ids(of(3)) == std::vector<std::uint64_t>{3, 2, 1});
  CHECK(ids(of(2)) == std::vector<std::uint64_t>{2, 1});
  CHECK(ids({.id = {42, 3}, .name = "web", .others = {{42, 2}}}) ==
        std::vector<std::uint64_t>{3, 1});
  CHECK(ids({.record = 1, .name = "web"}) == std::vector<std::uint64_t>{1});
  CHECK(ids({.id = {42, 3}}) == std::vector<std::uint64_t>{3});  // a name that is not known yet
}

TEST_CASE("the last container of a name, a path or the beginning of an id is found") {
  Store store = open_store(":memory:");
  for (const std::uint64_t inode : {1, 2})
    REQUIRE(store.add_container({.id = {42, inode}, .path = "/p", .engine_id = "abcdef",
                                 .name = "web"}, at_second(0)).has_value());
  for (const char* text : {"web", "/p", "abcdef", "abcd"}) {
    const auto found = store.last_container(text);
    REQUIRE(found.has_value());
    REQUIRE_MESSAGE(found->has_value(), text);
    CHECK((*found)->stored.container.id.inode == 2);
  }
  REQUIRE(store.add_container({.id = {42, 3}, .path = "/a\\x2db", .engine_id = "web-4"},
                              at_second(0)).has_value());
  CHECK((*store.last_container("/a\\x2db"))->stored.container.id.inode == 3);    // raw
  CHECK((*store.last_container("/a\\\\x2db"))->stored.container.id.inode == 3);  // as printed
  CHECK((*store.last_container("web"))->stored.container.id.inode == 2);
  for (const char* text : {"we", "abc", "", "abcdefg", "bcdef"})
    CHECK_FALSE(store.last_container(text)->has_value());
}

TEST_CASE("the last decision id is the highest in the journal, zero in an empty one") {
  Store store = open_store(":memory:");
  CHECK(store.last_decision_id() == 0);
  REQUIRE(store
              .append({},
                      {decision_of(kOne, 71, at_second(1)), decision_of(kOne, 70, at_second(2))},
                      {})
              .has_value());
  CHECK(store.last_decision_id() == 71);
  REQUIRE(store.append({}, {}, {outcome_of(kOne, 80, at_second(3))}).has_value());
  CHECK(store.last_decision_id() == 80);
}

TEST_CASE("what earlier runs left open is ended once") {
  Store store = open_store(":memory:");
  std::vector<JournalDecision> decisions;
  for (std::uint64_t id = 1; id <= 6; ++id) {
    decisions.push_back(decision_of(kOne, id, at_second(static_cast<double>(id))));
    decisions.back().decision.verdict = id == 6 ? Verdict::cool_down : Verdict::allowed;
    decisions.back().decision.direction = id == 4 || id == 5 ? Direction::raise : Direction::lower;
  }
  std::vector<JournalOutcome> outcomes;
  for (const auto& [id, kind] :
       {std::pair(2, OutcomeKind::written), std::pair(3, OutcomeKind::written),
        std::pair(3, OutcomeKind::trial_passed), std::pair(4, OutcomeKind::written)}) {
    outcomes.push_back(outcome_of(kOne, static_cast<std::uint64_t>(id), at_second(7)));
    outcomes.back().outcome.kind = kind;
  }
  REQUIRE(store.append({}, decisions, outcomes).has_value());
  for (int run = 0; run < 2; ++run) {
    REQUIRE(store.end_open_decisions(at_second(8 + run)).has_value());
    const auto ended = read_outcomes(store, kOne, at_second(99), 99).value();
    REQUIRE(ended.size() == outcomes.size() + 3);
    for (const auto& [place, id] : {std::pair(0U, 5U), std::pair(1U, 2U), std::pair(2U, 1U)}) {
      CHECK(ended[place].outcome.decision_id == id);
      CHECK(ended[place].outcome.kind == OutcomeKind::overtaken);
      CHECK(ended[place].outcome.detail == "the daemon or the container ended first");
      CHECK(ended[place].time == at_second(8));
    }
  }
}

TEST_CASE("limits are text as the kernel writes it") {
  CHECK(to_text(CpuMax{}) == "max 100000");
  CHECK(to_text(CpuMax{Microseconds{50'000}, Microseconds{100'000}}) == "50000 100000");
  CHECK(to_text(MemoryLimit{}) == "max");
  CHECK(to_text(MemoryLimit{Bytes{4096}}) == "4096");
}

namespace {

// Of a store whose containers kOne and kJob, named "web" and "job", have a decision a second in
// turn, every third of them refused, and each its outcome half a second later.
constexpr CgroupId kJob{42, 2};

Store told_store(std::uint64_t decisions) {
  Store store = open_store(":memory:");
  for (const auto& [id, name] : {std::pair(kOne, "web"), std::pair(kJob, "job")}) {
    ContainerInfo info;
    info.id = id;
    info.name = name;
    REQUIRE(store.add_container(info, at_second(0)));
  }
  for (std::uint64_t id = 1; id <= decisions; ++id) {
    const CgroupId container = id % 2 == 1 ? kOne : kJob;
    const auto second = static_cast<double>(id);
    JournalDecision decision = decision_of(container, id, at_second(second));
    decision.decision.verdict = id % 3 == 0 ? Verdict::standing_down : Verdict::allowed;
    REQUIRE(store.append({}, {decision}, {outcome_of(container, id, at_second(second + 0.5))}));
  }
  return store;
}

// "D1 O1 D2 ...", newest first.
std::string reported(const Result<std::vector<JournalEvent>>& events) {
  REQUIRE(events);
  std::string text;
  for (const JournalEvent& event : *events) {
    const auto* const decision = std::get_if<JournalDecision>(&event.what);
    text += decision != nullptr
                ? " D" + std::to_string(decision->decision.decision_id)
                : " O" + std::to_string(std::get<JournalOutcome>(event.what).outcome.decision_id);
  }
  return text;
}

}  // namespace

TEST_CASE("events are decisions, written or not, and outcomes by time, with the names") {
  Store store = told_store(3);
  const auto events = store.events(std::nullopt, {.limit = 10});
  CHECK(reported(events) == " O3 D3 O2 D2 O1 D1");
  CHECK(events->front().name == "web");
  CHECK((*events)[2].name == "job");
  CHECK(reported(store.events(std::nullopt, {.limit = 2})) == " O3 D3");
  CHECK(reported(store.events(std::nullopt, {.from = at_second(1.5), .until = at_second(2.5),
                                         .limit = 9})) == " O2 D2 O1");
  CHECK(reported(store.events(Store::Subject{.record = {}, .id = kJob, .name = "job", .others = {}},
                          {.limit = 10})) == " O2 D2");
  CHECK(reported(store.events(Store::Subject{.record = {}, .id = {7, 7}, .name = "x", .others = {}},
                          {.limit = 10})).empty());
}

TEST_CASE("events come page by page, each one once, though many are of one time") {
  Store store = told_store(20);
  for (std::uint64_t id = 21; id < 40; ++id) {
    JournalDecision decision = decision_of(kOne, id, at_second(30));
    if (id % 2 == 0) decision.decision.verdict = Verdict::standing_down;
    REQUIRE(store.append({}, {decision}, {outcome_of(kOne, id, at_second(30))}));
  }
  const std::string all = reported(store.events(std::nullopt, {.limit = 1000}));
  for (const int limit : {1, 2, 7, 78}) {
    std::string pages;
    EventSpan span{.limit = limit};
    for (int page = 0; page < 100; ++page) {
      const auto events = store.events(std::nullopt, span);
      pages += reported(events);
      if (events->empty()) break;
      span.before = events->back().place;
    }
    CHECK(pages == all);
  }
}

TEST_CASE("events of a name are those of earlier containers, too, the newest of all") {
  Store store = told_store(4);
  ContainerInfo again;
  again.id = {42, 3};
  again.name = "web";
  REQUIRE(store.add_container(again, at_second(10)));
  REQUIRE(store.append({}, {decision_of(again.id, 9, at_second(11))}, {}));
  const Store::Subject web{.record = {}, .id = again.id, .name = "web", .others = {}};
  CHECK(reported(store.events(web, {.limit = 10})) == " D9 O3 D3 O1 D1");
  CHECK(reported(store.events(web, {.limit = 2})) == " D9 O3");
}
