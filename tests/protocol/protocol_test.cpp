#include "protocol/protocol.h"

#include <doctest/doctest.h>

#include <random>

#include "protocol/requests.h"

using namespace cgphase;
using nlohmann::json;

namespace {

Result<Request> parse(const json& request) { return parse_request(request.dump()); }

std::string error_of(const Result<Request>& request) {
  return request ? std::string() : request.error().text;
}

}  // namespace

TEST_CASE("a request comes back as it was sent") {
  const Request sent = ExplainRequest{.container = "web-1", .at_seconds = 17.5};
  const auto got = parse_request(encode_request(sent));
  REQUIRE(got);
  const auto* const explain = std::get_if<ExplainRequest>(&*got);
  REQUIRE(explain != nullptr);
  CHECK(explain->container == "web-1");
  CHECK(explain->at_seconds == 17.5);
  CHECK(time_of(explain->at_seconds) == WallTime(std::chrono::milliseconds(17'500)));
}

TEST_CASE("every verb has a name that is read back") {
  for (int i = 0; i < kVerbCount; ++i) {
    const Verb verb = static_cast<Verb>(i);
    json args = {{"container", "c"}};
    if (verb == Verb::mode) args["mode"] = "observe";
    if (verb == Verb::status || verb == Verb::list || verb == Verb::config ||
        verb == Verb::records || verb == Verb::model)
      args = json::object();
    if (verb == Verb::table) args = {{"name", "decision"}, {"after", 7}};
    if (verb == Verb::fit) args = {{"cpus", 1}, {"memory_mib", 1e6}, {"seconds", 60}};
    const auto got = parse({{"verb", to_string(verb)}, {"args", args}});
    REQUIRE_MESSAGE(got, error_of(got));
    CHECK(verb_of(*got) == verb);
  }
}

// rule: SEC-01
TEST_CASE("only mode, pause, resume, restore, model and pin act") {
  CHECK(is_admin(Verb::model));
  CHECK(is_admin(Verb::mode));
  CHECK(is_admin(Verb::pause));
  CHECK(is_admin(Verb::pin));
  CHECK(is_admin(Verb::resume));
  CHECK(is_admin(Verb::restore));
  for (const Verb verb : {Verb::status, Verb::list, Verb::show, Verb::explain, Verb::history,
                          Verb::events, Verb::config, Verb::records, Verb::learned, Verb::fit,
                          Verb::table})
    CHECK_FALSE(is_admin(verb));
}

TEST_CASE("history needs a container or a record, and not both") {
  CHECK(parse({{"verb", "history"}, {"args", {{"container", "x"}, {"full", true}}}}));
  CHECK(parse({{"verb", "history"}, {"args", {{"record", 7}}}}));
  CHECK_FALSE(parse({{"verb", "history"}}));
  CHECK_FALSE(parse({{"verb", "history"}, {"args", {{"record", 7}, {"container", "x"}}}}));
  CHECK_FALSE(parse({{"verb", "history"}, {"args", {{"record", "7"}}}}));
}

// rule: SEC-01
TEST_CASE("an unknown verb is refused and the nearest is named") {
  CHECK(error_of(parse({{"verb", "stauts"}})) ==
        "request refused: no verb 'stauts'; did you mean 'status'?");
}

TEST_CASE("an unknown argument is refused and the nearest is named") {
  CHECK(error_of(parse({{"verb", "show"}, {"args", {{"containr", "x"}}}})) ==
        "request refused: show takes no 'containr'; did you mean 'container'?");
}

TEST_CASE("a missing argument is refused") {
  CHECK(error_of(parse({{"verb", "show"}})) == "request refused: show needs 'container'");
}

TEST_CASE("restore takes a container or all, not both and not neither") {
  CHECK_FALSE(parse({{"verb", "restore"}}));
  CHECK_FALSE(parse({{"verb", "restore"}, {"args", {{"all", false}}}}));
  CHECK_FALSE(parse({{"verb", "restore"}, {"args", {{"all", true}, {"container", "c"}}}}));
  CHECK(parse({{"verb", "restore"}, {"args", {{"all", true}}}}));
  CHECK(parse({{"verb", "restore"}, {"args", {{"container", "c"}}}}));
}

TEST_CASE("an argument of the wrong type is refused") {
  CHECK_FALSE(parse({{"verb", "show"}, {"args", {{"container", 1}}}}));
  CHECK_FALSE(parse({{"verb", "history"}, {"args", {{"container", "c"}, {"limit", "9"}}}}));
  CHECK_FALSE(parse({{"verb", "restore"}, {"args", {{"all", 1}}}}));
  CHECK_FALSE(parse({{"verb", "list"}, {"args", json::array()}}));
  CHECK_FALSE(parse({{"verb", 1}}));
}

TEST_CASE("a text argument is refused one byte past its limit") {
  const auto with = [](std::size_t bytes) {
    return parse({{"verb", "show"}, {"args", {{"container", std::string(bytes, 'x')}}}});
  };
  CHECK(with(kTextArgumentLimitBytes));
  CHECK_FALSE(with(kTextArgumentLimitBytes + 1));
}

TEST_CASE("a number argument is refused past its limit and below zero") {
  const auto with = [](double value) {
    return parse({{"verb", "events"}, {"args", {{"from_seconds", value}}}});
  };
  CHECK(with(0));
  CHECK(with(kNumberArgumentLimit));
  CHECK_FALSE(with(kNumberArgumentLimit + 1));
  CHECK_FALSE(with(-1));
}

TEST_CASE("a count is bounded by what the caller can bear") {
  CHECK(bounded(8'000'000'000, 10, 500) == 500);
  CHECK(bounded(std::nullopt, 10, 500) == 10);
}

TEST_CASE("a request is refused one byte past 64 KiB") {
  std::string text = R"({"verb":"list"})";
  text.resize(kRequestLimitBytes, ' ');
  CHECK(parse_request(text));
  text += ' ';
  CHECK_FALSE(parse_request(text));
}

TEST_CASE("JSON is refused one level past the depth limit") {
  const auto nested = [](int levels) {
    return std::string(static_cast<std::size_t>(levels), '[') +
           std::string(static_cast<std::size_t>(levels), ']');
  };
  CHECK(parse_bounded_json(nested(kJsonDepthLimit)));
  CHECK_FALSE(parse_bounded_json(nested(kJsonDepthLimit + 1)));
}

TEST_CASE("brackets within strings are no depth") {
  CHECK(parse_bounded_json("\"" + std::string(100, '[') + "\\\"" + std::string(100, '{') + "\""));
}

TEST_CASE("malformed requests are refused") {
  for (const char* text : {"", "{", "null", "[]", "\"list\"", "{}", "{\"verb\":\"list\"} x",
                           "{\"verb\":\"list\",\"args\":null}", "{\"verb\":\"li\xffst\"}",
                           "{\"verb\":\"list\",\"path\":\"/etc/shadow\"}", "{\"verb\":1e999}"})
    CHECK_MESSAGE(!parse_request(text), text);
}

TEST_CASE("a request of random bytes or a damaged one never passes unnoticed") {
  constexpr unsigned kSeed = 20260101;
  INFO("seed ", kSeed);
  std::mt19937 random(kSeed);
  const std::string good = R"({"schema":2,"verb":"show","args":{"container":"web-1"}})";
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    for (unsigned edits = 1 + random() % 4; edits > 0; --edits)
      text[random() % text.size()] = static_cast<char>(random() % 256);
    const auto got = parse_request(text);
    // A request that is accepted is in the closed list and survives a round trip.
    if (got) CHECK(encode_request(*parse_request(encode_request(*got))) == encode_request(*got));
    else CHECK(got.error().kind == ErrorKind::invalid);
  }
}

TEST_CASE("a frame is its length in big-endian order and its bytes") {
  const std::string frame = encode_frame(std::string(0x010203, 'x'));
  CHECK(frame.substr(0, 5) == std::string("\x00\x01\x02\x03x", 5));
  CHECK(frame_length({0x00, 0x01, 0x02, 0x03}) == 0x010203);
  CHECK(frame_length({0xff, 0xff, 0xff, 0xff}) == 0xffffffff);
}

TEST_CASE("a good reply says ok and keeps its body") {
  const auto reply = parse_reply(ok_reply({{"mode", "observe"}}).dump());
  REQUIRE(reply);
  CHECK(reply->exit == Exit::ok);
  CHECK(reply->body["mode"] == "observe");
  CHECK(reply->body["schema"] == 2);
}

TEST_CASE("an error reply carries exit code and text") {
  const auto reply = parse_reply(error_reply(Exit::no_container, "no container 'x'").dump());
  REQUIRE(reply);
  CHECK(reply->exit == Exit::no_container);
  CHECK(reply->error == "no container 'x'");
}

TEST_CASE("an error reply with an exit code out of range is a failure") {
  for (const int code : {0, -1, 9, 300}) {
    const auto reply = parse_reply(
        json{{"schema", 1}, {"error", {{"exit", code}, {"text", "t"}}}}.dump());
    REQUIRE(reply);
    CHECK(reply->exit == Exit::failure);
  }
}

TEST_CASE("a reply of the schema before is read: an upgrade may leave that daemon running") {
  const auto reply = parse_reply(R"({"schema":1,"error":{"exit":5,"text":"denied"}})");
  REQUIRE(reply);
  CHECK(reply->exit == Exit::denied);
  CHECK(reply->error == "denied");
}

TEST_CASE("a reply that is not ours is refused") {
  for (const char* text : {"", "1", "{}", R"({"schema":3})", R"({"schema":2,"error":1})",
                           R"({"schema":2,"error":{"exit":1}})",
                           R"({"schema":2,"error":{"exit":"1","text":"t"}})"})
    CHECK_FALSE(parse_reply(text));
}

TEST_CASE("a reply above 16 MiB becomes an error that says so") {
  const std::size_t overhead = ok_reply({{"t", ""}}).dump().size();
  const auto frame_of = [&](std::size_t bytes) {
    return encode_reply_frame(ok_reply({{"t", std::string(bytes - overhead, 'x')}}));
  };
  CHECK(frame_of(kReplyLimitBytes).size() == kReplyLimitBytes + kFrameHeaderBytes);
  const std::string frame = frame_of(kReplyLimitBytes + 1);
  CHECK(parse_reply(frame.substr(kFrameHeaderBytes))->exit == Exit::failure);
}

TEST_CASE("a reply with bytes that are no UTF-8 is still a reply") {
  CHECK(parse_reply(encode_reply_frame(ok_reply({{"name", "a\xff"}})).substr(kFrameHeaderBytes)));
}

TEST_CASE("each kind of error has its exit code") {
  CHECK(exit_of(ErrorKind::not_found) == Exit::no_container);
  CHECK(exit_of(ErrorKind::gone) == Exit::no_container);
  CHECK(exit_of(ErrorKind::denied) == Exit::denied);
  CHECK(exit_of(ErrorKind::invalid) == Exit::invalid);
  CHECK(exit_of(ErrorKind::unsupported) == Exit::invalid);
  CHECK(exit_of(ErrorKind::io) == Exit::failure);
}
