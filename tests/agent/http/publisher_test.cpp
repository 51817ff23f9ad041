#include "agent/http/publisher.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <utility>  // before Asio 1.74, which uses std::exchange without it

#include <boost/asio/io_context.hpp>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/agent/comes_true.h"
#include "tests/agent/temporary_directory.h"
#include "tests/cli/reports.h"

using namespace cgphase;

namespace {

void answer(const Request& request, const std::function<void(nlohmann::json)>& respond) {
  respond(verb_of(request) == Verb::status ? to_json(test::status())
                                       : to_json(ListReply{{test::web()}}));
}

}  // namespace

// rule: SEC-02
TEST_CASE("HTTP and the textfile are off by default; nothing is opened or reported") {
  const Config config;
  CHECK(config.http.listen.empty());
  CHECK(config.metrics.textfile.empty());
  EventLoop loop;
  const SystemClock clock;
  Publisher publisher(loop, config, clock);
  publisher.start(answer);
  CHECK(publisher.sources().empty());
  CHECK_FALSE(publisher.complaint());
  CHECK(loop.context().poll() == 0);
}

// rule: SEC-02
TEST_CASE("an address that others could reach is refused by the configuration") {
  Config config;
  const Status refused = override_config(config, "http.listen", "0.0.0.0:80", "x");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().text.starts_with(
      "x \"0.0.0.0:80\": neither a path nor a port of this machine's loopback"));
  CHECK(override_config(config, "http.listen", "127.0.0.1:80", "x"));
  CHECK(override_config(config, "http.listen", "", "x"));
  CHECK_FALSE(override_config(config, "metrics.textfile", "relative.prom", "x"));
  CHECK_FALSE(override_config(config, "metrics.textfile", "/folder/", "x"));
  CHECK(override_config(config, "metrics.textfile", "/folder/a.prom", "x"));
}

TEST_CASE("where HTTP is served and what is written changes only with a restart") {
  const Config now;
  Config asked;
  asked.http.listen = "/run/x";
  asked.metrics.textfile = "/x.prom";
  CHECK(keep_until_restart(now, asked).size() == 2);
  CHECK(asked.http.listen.empty());
  CHECK(asked.metrics.textfile.empty());
}

TEST_CASE("the sources have the HTTP address, or why HTTP is off") {
  const TemporaryDirectory tmp;
  EventLoop loop;
  const SystemClock clock;
  Config config;
  config.http.listen = tmp / "http.sock";
  {
    const Publisher publisher(loop, config, clock);
    REQUIRE(publisher.sources().size() == 1);
    CHECK(publisher.sources()[0].name == "HTTP");
    CHECK(publisher.sources()[0].present);
    CHECK(publisher.sources()[0].detail == config.http.listen);
    CHECK(::access(config.http.listen.c_str(), F_OK) == 0);
  }
  config.http.listen = tmp / "none/http.sock";
  const Publisher publisher(loop, config, clock);
  REQUIRE(publisher.sources().size() == 1);
  CHECK_FALSE(publisher.sources()[0].present);
  CHECK(publisher.sources()[0].detail.find("ENOENT") != std::string::npos);
}

TEST_CASE("the textfile has all metrics, and a complaint while it cannot be written") {
  const TemporaryDirectory tmp;
  EventLoop loop;
  const SystemClock clock;
  Config config;
  config.metrics.textfile = tmp / "cgphase.prom";
  Publisher publisher(loop, config, clock);
  const auto text = [&] { return read_file(config.metrics.textfile, 1 << 20).value_or(""); };
  publisher.start(answer);
  CHECK(text().empty());
  loop.context().poll();  // not before the loop runs: then there is something to tell
  REQUIRE(comes_true([&] { return !text().empty(); }));
  CHECK(text().find("\ncgphase_container_info{container=\"41:1201\",name=\"web-1\"") !=
        std::string::npos);
  CHECK_FALSE(publisher.complaint());
  config.metrics.textfile = tmp / "none/cgphase.prom";
  Publisher failing(loop, config, clock);
  failing.start(answer);
  loop.context().poll();
  CHECK(comes_true([&] { return failing.complaint().has_value(); }));
}
