#include "agent/http/http_route.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/protocol/wire.h"

using namespace cgphase;
using nlohmann::json;

namespace {

HttpHead asking(std::string_view target) {
  return {.method = "GET", .target = target, .host = "localhost"};
}

unsigned refusal_of(const HttpHead& head) {
  const auto route = route_of(head);
  return route ? 200 : route.error().status;
}

json arguments_of(std::string_view target) {
  const auto route = route_of(asking(target));
  REQUIRE_MESSAGE(route, route.error().text);
  REQUIRE(route->kind == HttpRoute::Kind::verb);
  return test::arguments_of(route->request);
}

}  // namespace

TEST_CASE("pages of HTTP are metrics, reading verbs and files") {
  CHECK(route_of(asking("/metrics"))->kind == HttpRoute::Kind::metrics);
  CHECK(route_of(asking("/"))->file == "/");
  CHECK(route_of(asking("/page.js?v=1"))->file == "/page.js");
  CHECK(verb_of(route_of(asking("/api/v1/status"))->request) == Verb::status);
  CHECK(verb_of(route_of(asking("/api/v1/list"))->request) == Verb::list);
  CHECK(arguments_of("/api/v1/show?container=web-1") == json{{"container", "web-1"}});
  CHECK(arguments_of("/api/v1/explain?container=a&at_seconds=12.5") ==
        json{{"container", "a"}, {"at_seconds", 12.5}});
  CHECK(arguments_of("/api/v1/history?container=a&full=true&limit=3") ==
        json{{"container", "a"}, {"full", true}, {"limit", 3.0}});
  CHECK(arguments_of("/api/v1/events") == json::object());
}

TEST_CASE("a query is decoded: percent, plus, empty parts") {
  CHECK(arguments_of("/api/v1/show?&container=%2Fa%20b+c%3d%26&") ==
        json{{"container", "/a b c=&"}});
  CHECK(arguments_of("/api/v1/show?container=%e2%82%AC") == json{{"container", "\u20ac"}});
  for (const char* bad : {"%", "%4", "%zz", "a%", "%%41"})
    CHECK(refusal_of(asking("/api/v1/show?container=" + std::string(bad))) == 400);
}

TEST_CASE("a query is taken with as many arguments as the bound and refused with one more") {
  std::string query = "a0=";
  for (std::size_t i = 1; i < kMaxQueryArguments; ++i) query += "&a" + std::to_string(i) + "=";
  CHECK(parse_query(query).value().size() == kMaxQueryArguments);
  CHECK_FALSE(parse_query(query + "&more="));
}

// rule: SEC-02
TEST_CASE("nothing that changes something is reached over HTTP") {
  for (const char* verb : {"mode", "pause", "resume", "restore", "pin", "config", "records",
                           "learned", "fit", "table", "", "status/", "STATUS", "nothing"})
    CHECK_MESSAGE(refusal_of(asking("/api/v1/" + std::string(verb) + "?all=true")) == 404, verb);
  for (const char* method : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get",
                             ""}) {
    HttpHead head = asking("/api/v1/status");
    head.method = method;
    CHECK_MESSAGE(refusal_of(head) == 405, method);
  }
}

TEST_CASE("HEAD is GET without the body") {
  HttpHead head = asking("/metrics");
  head.method = "HEAD";
  CHECK(route_of(head)->head_only);
  CHECK_FALSE(route_of(asking("/metrics"))->head_only);
}

// rule: SEC-02
TEST_CASE("a Host that is none or not this machine's is refused") {
  HttpHead head = asking("/metrics");
  head.host = "";
  CHECK(refusal_of(head) == 400);
  head.host = "rebound.example:9275";
  CHECK(refusal_of(head) == 421);
}

TEST_CASE("what another site's page asks for is refused") {
  for (const char* site : {"cross-site", "same-site", "what"}) {
    HttpHead head = asking("/api/v1/list");
    head.fetch_site = site;
    CHECK_MESSAGE(refusal_of(head) == 403, site);
  }
  for (const char* site : {"", "same-origin", "none"}) {
    HttpHead head = asking("/api/v1/list");
    head.fetch_site = site;
    CHECK_MESSAGE(refusal_of(head) == 200, site);
  }
}

TEST_CASE("a body, and a target that is no path of ours, are refused") {
  HttpHead head = asking("/");
  head.has_body = true;
  CHECK(refusal_of(head) == 413);
  for (const char* target : {"", "*", "http://localhost/", "//"})
    CHECK((refusal_of(asking(target)) == 400 || route_of(asking(target))->file == "//"));
}

TEST_CASE("arguments that a verb does not take are refused, and those given twice") {
  for (const char* target :
       {"/api/v1/show", "/api/v1/status?x=1", "/api/v1/show?container=a&container=b",
        "/api/v1/events?limit=many", "/api/v1/events?limit=-1", "/api/v1/events?limit=1e30",
        "/api/v1/history?container=a&full=yes", "/api/v1/history", "/api/v1/events?limit=nan",
        "/api/v1/show?Container=a", "/api/v1/show?=a"})
    CHECK_MESSAGE(refusal_of(asking(target)) == 400, target);
}

TEST_CASE("what is said about a hostile target is printable") {
  const auto route = route_of(asking("/api/v1/\x1b[31m"));
  REQUIRE_FALSE(route);
  CHECK(route.error().text.find('\x1b') == std::string::npos);
  const auto query = route_of(asking("/api/v1/status?%1b%5b=1"));
  REQUIRE_FALSE(query);
  CHECK(query.error().text.find('\x1b') == std::string::npos);
}
