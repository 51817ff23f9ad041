#include "protocol/replies.h"

#include <doctest/doctest.h>

#include "protocol/report.h"

using namespace cgphase;
using nlohmann::json;

namespace {

template <class Reply>
void same(const Reply& reply) {
  const json body = to_json(reply);
  const auto read = read_reply<Reply>(body);
  REQUIRE(read);
  CHECK(to_json(*read) == body);
}

}  // namespace

TEST_CASE("a reply about configuration, learning or fit that is read and written is the same") {
  same(ConfigReply{.config = {{"mode", "\"enforce\"", "/a.toml:3"}, {"cap", "7", "default"}},
                   .modes = {{"mode of web", "observe", "by uid 0"}}});
  same(ConfigDifferences{{{{"mode", "\"enforce\"", "--mode"}, "\"observe\""},
                          {{"new", "7", "/a.toml:3"}, std::nullopt}}});
  same(LearnedReply{.name = "\x1b[31mweb", .policy = "phase", .host = {4, Bytes{kGiB}},
                    .learned = {{"schema", 1}, {"phases", json::array()}}});
  FitReply fit{.fits = true, .sentence = "yes", .risk = 0.01, .seconds = 60,
               .asked = {1.5, 1e9}, .outside = {std::nullopt, 2e8}, .host = {4, Bytes{kGiB}},
               .containers = {{"web", {1, 2, PeakBasis::limit}, {1e8, 2e8}}}};
  same(fit);
  fit.fits_for_seconds = 30;
  fit.next_change = {"web", 0.7, 40};
  same(fit);
}

TEST_CASE("the answer of fit names what must be waited for, else nothing") {
  FitAnswer answer{.question = {.cpu_cores = 1, .memory_bytes = 1e6, .duration =
                                    std::chrono::seconds(60)},
                   .change = ExpectedChange{"web", 0.7, std::chrono::seconds(40)}};
  const FitReply later = fit_reply(answer);
  CHECK(later.sentence.find("try again in 40 s: web is") != std::string::npos);
  CHECK(later.next_change->in_seconds == 40);
  answer.change.reset();
  CHECK(fit_reply(answer).sentence.find("try again") == std::string::npos);
  CHECK(to_json(fit_reply(answer))["next_change"].is_null());
}
