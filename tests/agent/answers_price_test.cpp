// What questions cost the loop, and how much of it one user is given.
#include "tests/agent/asked_agent.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;
using std::chrono::seconds;

namespace {

bool asked_too_much(const json& reply) {
  return reply.value(json::json_pointer("/error/text"), "").ends_with("retry in 1 s");
}

// Counts the answers to one user before the first refusal.
std::size_t answered(AskedAgent& world, const Request& request, uid_t uid) {
  std::size_t count = 0;
  while (count < 1000 && !asked_too_much(world.ask(request, uid))) ++count;
  return count;
}

}  // namespace

TEST_CASE("between two ticks the same question has one answer, and few others are weighed") {
  AskedAgent world("static");
  world.run(60);
  const json first = world.ask(fit(0.1, 1));
  for (std::size_t i = 1; i < Answers::kMostFits; ++i)
    CHECK(world.ask(fit(0.1 + static_cast<double>(i), 1)).contains("fits"));
  const json refused = world.ask(fit(0.2, 1));
  CHECK(refused["error"]["exit"] == 1);
  CHECK(refused["error"]["text"].get<std::string>().find("retry in 1 s") !=
        std::string::npos);
  CHECK(world.ask(fit(0.1, 1)) == first);
  world.run(1);
  CHECK(world.ask(fit(0.2, 1)).contains("fits"));
}

TEST_CASE("what one user may ask is not used up by another, and is of a second, not of a tick") {
  constexpr uid_t kGreedy = 1000, kOther = 1001;
  AskedAgent world("static");
  world.run(60);
  for (std::size_t i = 0; i < Answers::kMostFits; ++i)
    CHECK(world.ask(fit(0.1 + static_cast<double>(i), 1), kGreedy).contains("fits"));
  CHECK(world.ask(fit(0.2, 1), kGreedy)["error"]["exit"] == 1);
  CHECK(world.ask(fit(0.2, 1), kOther).contains("fits"));
  CHECK(world.ask(fit(0.3, 1)).contains("fits"));
  CHECK(world.ask(fit(0.2, 1), kGreedy).contains("fits"));  // weighed already, for another
  world.clock.advance(std::chrono::milliseconds(500));
  world.agent->tick();
  CHECK(world.ask(fit(0.4, 1), kGreedy)["error"]["exit"] == 1);
  world.clock.advance(std::chrono::milliseconds(500));
  CHECK(world.ask(fit(0.4, 1), kGreedy).contains("fits"));
}

TEST_CASE("a question that is refused for its words costs nothing") {
  AskedAgent world("static");
  world.run(60);
  for (std::size_t i = 0; i <= Answers::kMostFits; ++i)
    CHECK(world.ask(request_of(Verb::fit, {{"cpus", i}, {"memory_mib", 1},
                                                 {"seconds", 1e8}}))["error"]["exit"] == 2);
  CHECK(world.ask(fit(0.2, 1)).contains("fits"));
}

TEST_CASE("of what is heavy one user is answered only so much within a second, and each as much") {
  constexpr uid_t kGreedy = 1000, kOther = 1001;
  AskedAgent world;
  world.run(1);
  const json one = {{"container", "test-a"}};
  const std::pair<Request, std::size_t> most[] = {{request_of(Verb::status), 256},
                                                  {request_of(Verb::list), 128},
                                                  {request_of(Verb::show, one), 256},
                                                  {request_of(Verb::learned, one), 66}};
  for (const auto& [request, count] : most) {
    CAPTURE(to_string(verb_of(request)));
    CHECK(answered(world, request, kGreedy) == count);
    CHECK(world.ask(request, kGreedy)["error"]["exit"] == 1);
    CHECK_FALSE(asked_too_much(world.ask(request, kOther)));
  }
  world.clock.advance(seconds(1));
  for (const auto& [request, count] : most)
    CHECK_FALSE(asked_too_much(world.ask(request, kGreedy)));
}

TEST_CASE("the more containers there are, the fewer lists one user is answered within a second") {
  AskedAgent world;
  make_many(world, 255);
  world.run(1);
  REQUIRE(world.agent->core().containers().size() == 256);
  CHECK(answered(world, request_of(Verb::list), 1000) == 32);
}

TEST_CASE("what runs of one image taught is added up only so often, and of not too many") {
  const Request same = request_of(Verb::learned, {{"image", "same"}});
  AskedAgent world;
  make_many(world, Answers::kMostLearned / 2 + 1);
  world.run(1);
  CHECK(answered(world, same, 1000) == 1);
  CHECK(answered(world, same, 1001) == 1);
  world.clock.advance(seconds(1));
  make_many(world, Answers::kMostLearned);
  world.run(1);
  CHECK(answered(world, same, 1000) == 1);
  world.tree.make("/many/more/same");
  world.run(1);
  CHECK(world.ask(same)["error"]["text"] == "learned: more than 400 containers of the image "
                                            "'same' run; name one of them");
}

TEST_CASE("a second that answers took up themselves makes no room for more of them") {
  AgentWorld world;
  world.run(1);
  std::vector<std::function<void()>> posted;
  Answers answers(*world.agent, world.clock, [&](auto work) { posted.push_back(std::move(work)); },
                  {});
  const auto refused = [&] {
    json body;
    answers.answer(request_of(Verb::show, {{"container", "test-a"}}), {},
                   [&](json reply) { body = std::move(reply); });
    return asked_too_much(body);
  };
  const auto come_round = [&] {
    for (const auto& work : std::exchange(posted, {})) work();
  };
  while (!refused()) {}
  world.clock.advance(seconds(5));
  CHECK(refused());
  come_round();  // what was due comes with this one, and behind it what it posts
  CHECK(refused());
  come_round();
  CHECK_FALSE(refused());
}
