#include "agent/http/http_pages.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/http/web_files.h"
#include "tests/cli/reports.h"

using namespace cgphase;
using nlohmann::json;

namespace {

// Answers out of made-up reports, and counts the questions.
struct PagesWorld {
  ManualClock clock;
  int asked = 0;
  json explained = ok_reply({{"sentence", "because"}});
  HttpPages pages{clock, [this](const Request& request, const std::function<void(json)>& respond) {
                    ++asked;
                    if (verb_of(request) == Verb::status) return respond(to_json(test::status()));
                    if (verb_of(request) == Verb::list)
                      return respond(to_json(ListReply{{test::web(), test::hostile()}}));
                    respond(explained);
                  }};

  HttpReply get(const std::string& target) {
    const auto route = route_of({.method = "GET", .target = target, .host = "localhost"});
    REQUIRE(route);
    HttpReply got;
    pages.serve(*route, [&](HttpReply reply) { got = std::move(reply); });
    REQUIRE(got.body != nullptr);
    return got;
  }
};

}  // namespace

TEST_CASE("metrics over HTTP are OpenMetrics of daemon and containers") {
  PagesWorld world;
  const HttpReply reply = world.get("/metrics");
  CHECK(reply.status == 200);
  CHECK(reply.type == "application/openmetrics-text; version=1.0.0; charset=utf-8");
  CHECK(reply.body->ends_with("# EOF\n"));
  CHECK(reply.body->find("\ncgphase_uptime_seconds 11520\n") != std::string::npos);
  CHECK(reply.body->find("\ncgphase_container_cpu_cores{container=\"41:1201\"} 0.25\n") !=
        std::string::npos);
}

TEST_CASE("verbs over HTTP are answered as on the socket") {
  PagesWorld world;
  CHECK(json::parse(*world.get("/api/v1/status").body) == to_json(test::status()));
  CHECK(json::parse(*world.get("/api/v1/list").body)["containers"].size() == 2);
  CHECK(json::parse(*world.get("/api/v1/explain?container=a").body) == world.explained);
  CHECK(world.get("/api/v1/list").type == "application/json");
}

TEST_CASE("what all ask for is made once a second, however many ask") {
  PagesWorld world;
  for (int i = 0; i < 10; ++i) (void)world.get("/api/v1/list");
  CHECK(world.asked == 1);
  (void)world.get("/metrics");
  (void)world.get("/metrics");
  CHECK(world.asked == 3);
  world.clock.advance(std::chrono::seconds(1));
  (void)world.get("/api/v1/list");
  CHECK(world.asked == 4);
}

TEST_CASE("an error reply of a verb has its status in HTTP") {
  PagesWorld world;
  const auto status = [&](Exit exit) {
    world.explained = error_reply(exit, "why");
    return world.get("/api/v1/explain?container=a").status;
  };
  CHECK(status(Exit::no_container) == 404);
  CHECK(status(Exit::invalid) == 400);
  CHECK(status(Exit::denied) == 403);
  CHECK(status(Exit::failure) == 500);
  CHECK(status(Exit::unreachable) == 503);
}

TEST_CASE("a reply is taken at its bound and refused one byte past it") {
  const std::size_t around = ok_reply({{"x", ""}}).dump().size() + 1;
  CHECK(http_reply_of(ok_reply({{"x", std::string(kReplyLimitBytes - around, 'x')}})).status ==
        200);
  CHECK(http_reply_of(ok_reply({{"x", std::string(kReplyLimitBytes - around + 1, 'x')}})).status ==
        500);
}

TEST_CASE("the page and its parts are served, and nothing else is a file") {
  PagesWorld world;
  CHECK(world.get("/").body->starts_with("<!DOCTYPE html>"));
  CHECK(world.get("/").type == "text/html; charset=utf-8");
  CHECK(world.get("/page.js").type == "text/javascript; charset=utf-8");
  CHECK(world.get("/page.css").status == 200);
  CHECK(world.get("/icon.svg").status == 200);
  for (const char* path : {"/page", "/../etc/passwd", "//page.js", "/page.js/", "/favicon.ico"})
    CHECK(world.get(path).status == 404);
}

TEST_CASE("the page takes nothing from elsewhere, and foreign text only by textContent") {
  for (const WebFile& file : web_files())
    for (const char* word : {"innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(",
                             "Function(", "setAttribute", "https:", "srcdoc", "javascript:",
                             "createContextualFragment", "DOMParser", " style=", " onclick"})
      CHECK_MESSAGE(file.text.find(word) == std::string_view::npos, file.path << ": " << word);
}
