#include "cli/commands/history_verbs.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/commands/history_source.h"
#include "cli/host_history.h"
#include "cli/output/print.h"
#include "cli/output/style.h"
#include "cli/output/time_text.h"
#include "cli/output/view.h"
#include "protocol/events.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr int kFollowMilliseconds = 1000;
// The journal may receive an event after a newer one.
constexpr double kFollowOverlapSeconds = 5;
constexpr int kHistoryPage = 2000;
constexpr double kStepSeconds = 1e-6;  // more than the rounding error of a time in JSON

double now_seconds() {
  return std::chrono::duration<double>(SystemClock().wall_now().time_since_epoch()).count();
}

OrComplaint<std::string> text_of(const Form& form, const json& body, const CommonOptions& options,
                                 bool legend) {
  TextStyle style = text_style(options, terminal_environment());
  style.legend = style.legend && legend;
  const Result<std::string> text = present(form, body, options.output, style);
  if (!text) return complaint(Exit::usage, text.error().text);
  return *text;
}

// --- events ---

// Reads pages from the newest to the oldest; each page has its events in order. Reads all pages if
// the request has a start or a limit, otherwise one. `last` marks the last page.
OrComplaint<void> each_page(const Ask& ask, EventsRequest request,
                            const std::function<OrComplaint<void>(const json&, bool last)>& take) {
  const std::optional<std::int64_t> wanted = request.limit;
  const bool all = request.from_seconds || wanted;
  for (std::int64_t left = wanted.value_or(0);;) {
    if (wanted) request.limit = std::min<std::int64_t>(left, kMostEvents);
    const auto page = ask(request);
    if (!page) return std::unexpected(page.error());
    left -= static_cast<std::int64_t>(view_array(*page, "/events").size());
    const std::string earlier = view_text(*page, "/earlier");
    const bool last = !all || earlier.empty() || (wanted && left < 1);
    if (const auto taken = take(*page, last); !taken || last) return taken;
    request.before = earlier;
  }
}

// Returns the events of all pages in one reply.
OrComplaint<json> whole(const Ask& ask, EventsRequest request) {
  json all = {{"schema", kSchema}};
  std::vector<json> pages;
  const auto take = [&](const json& page, bool) -> OrComplaint<void> {
    if (pages.empty()) all = page;
    pages.push_back(view_array(page, "/events"));
    all["earlier"] = view(page, "/earlier");
    return {};
  };
  const auto done = each_page(ask, std::move(request), take);
  if (!done) return std::unexpected(done.error());
  json events = json::array();
  for (auto page = pages.rbegin(); page != pages.rend(); ++page)
    for (json& event : *page) events.push_back(std::move(event));
  all["events"] = std::move(events);
  return all;
}

// Renders each page as it comes, because text is a tenth of the size of JSON. Prints from the last
// page on, which is the oldest.
int print_pages(const Ask& ask, EventsRequest request, const CommonOptions& options) {
  std::vector<std::string> texts;
  const auto take = [&](const json& page, bool last) -> OrComplaint<void> {
    auto text = text_of(kEventsForm, page, options, last);
    if (!text) return std::unexpected(text.error());
    texts.push_back(*std::move(text));
    return {};
  };
  auto done = each_page(ask, std::move(request), take);
  for (auto text = texts.rbegin(); done && text != texts.rend(); ++text) done = put(*text);
  return done ? 0 : complain(done.error());
}

int print_events(const Ask& ask, EventsRequest request, const CommonOptions& options) {
  if (options.output != Output::json && options.output != Output::openmetrics)
    return print_pages(ask, std::move(request), options);
  const auto body = whole(ask, std::move(request));
  return body ? print(kEventsForm, *body, options) : complain(body.error());
}

// --- history ---

// Passes the points of one record to `take`, page by page. `first` is a reply with the first page.
OrComplaint<void> each_points(const Ask& ask, const HistoryRequest& asked, json first,
                              const std::function<OrComplaint<void>(json page)>& take) {
  const auto record = view_number(first, "/record");
  for (json page = std::move(first);;) {
    const json points = view_array(page, "/points");
    if (points.empty()) return {};
    if (const auto taken = take(std::move(page)); !taken) return taken;
    if (!record) return {};
    const double last = view_number(points.back(), "/time").value_or(0);
    auto next = ask(HistoryRequest{.record = static_cast<std::int64_t>(*record),
                                   .from_seconds = last - kStepSeconds,
                                   .until_seconds = asked.until_seconds,
                                   .limit = kHistoryPage,
                                   .rows = true});
    if (!next) return std::unexpected(next.error());
    // The page begins with the last point again, because usage is measured between two points.
    json fresh = json::array();
    for (const json& point : view_array(*next, "/points"))
      if (view_number(point, "/time").value_or(0) > last + kStepSeconds / 2) fresh.push_back(point);
    (*next)["points"] = std::move(fresh);
    page = *std::move(next);
  }
}

// Requests the first page of an earlier container of the name. `run` is its entry in a reply.
OrComplaint<json> first_of(const Ask& ask, const HistoryRequest& asked, const json& run) {
  const auto record = static_cast<std::int64_t>(view_number(run, "/record").value_or(0));
  return ask(HistoryRequest{.record = record,
                            .from_seconds = asked.from_seconds,
                            .until_seconds = asked.until_seconds,
                            .limit = kHistoryPage,
                            .rows = true});
}

// Returns all points of one record, or its newest `most`, in one page with the other members of
// `first`.
OrComplaint<json> collect(const Ask& ask, const HistoryRequest& asked, json first,
                          std::size_t most) {
  json body = first;
  json::array_t points;
  const auto take = [&](json page) -> OrComplaint<void> {
    for (json& point : page["points"]) points.push_back(std::move(point));
    if (points.size() > most)
      points.erase(points.begin(), points.end() - static_cast<std::ptrdiff_t>(most));
    return {};
  };
  if (const auto collected = each_points(ask, asked, std::move(first), take); !collected)
    return std::unexpected(collected.error());
  body["points"] = std::move(points);
  return body;
}

// Returns the container of `first` and, if wanted, the earlier ones, oldest first. Together they
// have the newest `most` points.
OrComplaint<std::vector<json>> collect_runs(const Ask& ask, const HistoryRequest& asked,
                                            json first, std::size_t most, bool with_earlier) {
  const json earlier = with_earlier ? view_array(first, "/earlier") : json::array();
  std::vector<json> runs;
  auto body = collect(ask, asked, std::move(first), most);
  for (auto run = earlier.rbegin(); body && run != earlier.rend(); ++run) {
    most -= view_array(*body, "/points").size();
    runs.push_back(*std::move(body));
    if (most == 0) break;
    body = first_of(ask, asked, *run);
    if (body) body = collect(ask, asked, *std::move(body), most);
  }
  if (!body) return std::unexpected(body.error());
  if (most > 0) runs.push_back(*std::move(body));
  std::ranges::reverse(runs);
  return runs;
}

// The line between two containers of one name. It names the one whose points follow.
std::string run_title(const json& run, const TextStyle& style) {
  std::string id = view_text(run, "/container/engine_id");
  if (id.empty()) id = view_text(run, "/container/path");
  const double first_seen = view_number(run, "/first_seen").value_or(0);
  return toned("-- " + view_text(run, "/container/engine") + " " + id + ", first seen at " +
                   time_text(first_seen, style.utc) + " --",
               Tone::dim, style) +
         "\n";
}

// Prints pages one after the other. Only the first has titles.
class HistoryText {
 public:
  explicit HistoryText(const CommonOptions& options) : options_(options) {}

  // Prints the title line of the next container.
  OrComplaint<void> begin(const json& run) {
    return put(run_title(run, text_style(options_, terminal_environment())));
  }
  OrComplaint<void> page(const json& body) {
    const auto text = text_of(kHistoryForm, body, options_, !std::exchange(begun_, true));
    return text ? put(*text) : std::unexpected(text.error());
  }

 private:
  const CommonOptions& options_;
  bool begun_ = false;
};

// Prints page by page, so that the oldest points appear before the newest are read.
OrComplaint<void> print_all(const Ask& ask, const HistoryRequest& request, json first,
                            const json& earlier, HistoryText& text) {
  if (earlier.empty() && view_array(first, "/points").empty()) return text.page(first);
  const auto take = [&](const json& page) { return text.page(page); };
  for (const json& run : earlier) {
    if (const auto begun = text.begin(run); !begun) return begun;
    auto page = first_of(ask, request, run);
    if (!page) return std::unexpected(page.error());
    if (const auto done = each_points(ask, request, *std::move(page), take); !done)
      return done;
  }
  if (!earlier.empty())
    if (const auto begun = text.begin(first); !begun) return begun;
  return each_points(ask, request, std::move(first), take);
}

// CSV rows do not name their container, so only the last container is printed.
OrComplaint<void> print_history(const Ask& ask, const HistoryRequest& request, json first,
                                std::optional<std::size_t> newest, const CommonOptions& options) {
  HistoryText text(options);
  const bool rows = options.output == Output::csv || options.output == Output::jsonl;
  const json earlier = rows ? json::array() : view_array(first, "/earlier");
  if (!newest) return print_all(ask, request, std::move(first), earlier, text);
  const auto runs = collect_runs(ask, request, std::move(first), *newest, !rows);
  if (!runs) return std::unexpected(runs.error());
  for (const json& run : *runs) {
    if (runs->size() > 1)
      if (const auto begun = text.begin(run); !begun) return begun;
    if (const auto done = text.page(run); !done) return done;
  }
  return {};
}

// Returns one document: the last container, with the earlier ones and their points in "earlier".
OrComplaint<json> history_document(const Ask& ask, const HistoryRequest& request, json first,
                                   std::optional<std::size_t> newest) {
  auto runs = collect_runs(ask, request, std::move(first),
                           newest.value_or(std::numeric_limits<std::size_t>::max()), true);
  if (!runs) return std::unexpected(runs.error());
  json body = std::move(runs->back());
  runs->pop_back();
  for (json& run : *runs) run.erase("schema");
  if (body.contains("earlier")) body["earlier"] = std::move(*runs);
  return body;
}

}  // namespace

void complain_incomplete(const std::string& sentence) { complain(Exit::ok, sentence); }

int run_history(HistoryRequest request, const std::string& state_dir,
                const CommonOptions& options) {
  const auto ask = history_source(options, state_dir);
  if (!ask) return complain(ask.error());
  std::optional<std::size_t> newest;
  if (request.limit) newest = static_cast<std::size_t>(*request.limit);
  request.limit = kHistoryPage;
  auto first = (*ask)(request);
  if (!first) return complain(first.error());
  if (options.output != Output::json && options.output != Output::openmetrics) {
    const auto done = print_history(*ask, request, *std::move(first), newest, options);
    return done ? 0 : complain(done.error());
  }
  const auto body = history_document(*ask, request, *std::move(first), newest);
  return body ? print(kHistoryForm, *body, options) : complain(body.error());
}

int run_events(EventsRequest request, const std::string& state_dir, const CommonOptions& options) {
  const auto ask = history_source(options, state_dir);
  return ask ? print_events(*ask, std::move(request), options) : complain(ask.error());
}

// Repeats the request from shortly before the last event, and leaves out what was printed.
int follow_events(EventsRequest request, CommonOptions options) {
  std::set<std::string> printed;
  const double now = now_seconds();
  if (!request.from_seconds && !request.limit) request.from_seconds = now;
  double begin = request.from_seconds.value_or(0);
  if (options.output == Output::json) options.output = Output::jsonl;
  const auto ask = history_source(options, "");
  if (!ask) return complain(ask.error());
  for (;;) {
    const auto body = whole(*ask, request);
    if (!body) return complain(body.error());
    json fresh = {{"schema", kSchema}, {"events", json::array()}};
    std::set<std::string> seen;
    const json& events = view_array(*body, "/events");
    // Events that the limit left out must not appear as new later.
    if (request.limit && std::cmp_greater_equal(events.size(), *request.limit))
      begin = std::max(begin, view_number(events.front(), "/time").value_or(0) + kStepSeconds);
    for (const json& event : events) {
      const std::string text = event.dump();
      if (!printed.contains(text)) fresh["events"].push_back(event);
      seen.insert(text);
      const double time = view_number(event, "/time").value_or(0);
      request.from_seconds = std::max(begin, time - kFollowOverlapSeconds);
    }
    request.limit.reset();  // the limit is for entries that existed at the start
    if (!request.from_seconds) request.from_seconds = now;
    printed = std::move(seen);
    // CSV titles are printed even before the first event.
    const bool titles = options.output == Output::csv && options.legend;
    if (titles || !fresh["events"].empty())
      if (const int code = print(kEventsForm, fresh, options); code != 0) return code;
    options.legend = false;
    ::poll(nullptr, 0, kFollowMilliseconds);
  }
}

}  // namespace cgphase
