#include "cli/commands/history_verbs.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "cli/commands/history_source.h"
#include "cli/host_history.h"
#include "cli/output/print.h"
#include "cli/output/style.h"
#include "cli/output/time_text.h"
#include "protocol/events.h"
#include "protocol/report.h"

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

template <class Reply>
OrComplaint<Reply> read(const json& body) {
  Result<Reply> reply = read_reply<Reply>(body);
  if (!reply) return complaint(Exit::failure, reply.error().text);
  return *std::move(reply);
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
    const auto reply = read<EventsReply>(*page);
    if (!reply) return std::unexpected(reply.error());
    left -= static_cast<std::int64_t>(reply->events.size());
    const bool last = !all || reply->earlier.empty() || (wanted && left < 1);
    if (const auto taken = take(*page, last); !taken || last) return taken;
    request.before = reply->earlier;
  }
}

// Returns the events of all pages in one reply.
OrComplaint<EventsReply> whole(const Ask& ask, EventsRequest request) {
  EventsReply all;
  const auto take = [&](const json& page, bool) -> OrComplaint<void> {
    auto reply = read<EventsReply>(page);
    if (!reply) return std::unexpected(reply.error());
    std::ranges::move(all.events, std::back_inserter(reply->events));
    all = *std::move(reply);
    return {};
  };
  const auto done = each_page(ask, std::move(request), take);
  if (!done) return std::unexpected(done.error());
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
  const auto reply = whole(ask, std::move(request));
  return reply ? print(kEventsForm, to_json(*reply), options) : complain(reply.error());
}

// --- history ---

using Pages = std::function<OrComplaint<void>(const HistoryReply& page)>;

OrComplaint<HistoryReply> ask_page(const Ask& ask, const HistoryRequest& request) {
  const auto body = ask(request);
  return body ? read<HistoryReply>(*body) : std::unexpected(body.error());
}

// Passes the points of one record to `take`, page by page. `page` is the first one.
OrComplaint<void> each_page_of(const Ask& ask, const HistoryRequest& asked, HistoryReply page,
                               const Pages& take) {
  while (page.points && !page.points->empty()) {
    if (const auto taken = take(page); !taken) return taken;
    if (!page.record) return {};
    const double last = seconds_since_epoch(page.points->back().time);
    auto next = ask_page(ask, {.record = page.record,
                               .from_seconds = last - kStepSeconds,
                               .until_seconds = asked.until_seconds,
                               .limit = kHistoryPage,
                               .rows = true});
    if (!next) return std::unexpected(next.error());
    page = *std::move(next);
    // The page begins with the last point again, because usage is measured between two points.
    if (page.points)
      std::erase_if(*page.points, [last](const HistoryRow& row) {
        return seconds_since_epoch(row.time) <= last + kStepSeconds / 2;
      });
  }
  return {};
}

// Requests the first page of an earlier container of the name.
OrComplaint<HistoryReply> first_of(const Ask& ask, const HistoryRequest& asked,
                                   const HistoryReply& run) {
  return ask_page(ask, {.record = run.record.value_or(0),
                        .from_seconds = asked.from_seconds,
                        .until_seconds = asked.until_seconds,
                        .limit = kHistoryPage,
                        .rows = true});
}

// Returns all points of one record, or its newest `most`, in one page with the other members of
// `first`.
OrComplaint<HistoryReply> collect(const Ask& ask, const HistoryRequest& asked, HistoryReply first,
                                  std::size_t most) {
  HistoryReply whole = first;
  std::vector<HistoryRow> points;
  const auto take = [&](const HistoryReply& page) -> OrComplaint<void> {
    points.insert(points.end(), page.points->begin(), page.points->end());
    if (points.size() > most)
      points.erase(points.begin(), points.end() - static_cast<std::ptrdiff_t>(most));
    return {};
  };
  if (const auto collected = each_page_of(ask, asked, std::move(first), take); !collected)
    return std::unexpected(collected.error());
  whole.points = std::move(points);
  return whole;
}

// Returns the container of `first` and, if wanted, the earlier ones, oldest first. Together they
// have the newest `most` points.
OrComplaint<std::vector<HistoryReply>> collect_runs(const Ask& ask, const HistoryRequest& asked,
                                                    HistoryReply first, std::size_t most,
                                                    bool with_earlier) {
  const auto earlier = with_earlier ? first.earlier.value_or(std::vector<HistoryReply>())
                                    : std::vector<HistoryReply>();
  std::vector<HistoryReply> runs;
  auto run = collect(ask, asked, std::move(first), most);
  for (auto next = earlier.rbegin(); run && next != earlier.rend(); ++next) {
    most -= run->points->size();
    runs.push_back(*std::move(run));
    if (most == 0) break;
    run = first_of(ask, asked, *next);
    if (run) run = collect(ask, asked, *std::move(run), most);
  }
  if (!run) return std::unexpected(run.error());
  if (most > 0) runs.push_back(*std::move(run));
  std::ranges::reverse(runs);
  return runs;
}

// The line between two containers of one name. It names the one whose points follow.
std::string run_title(const HistoryReply& run, const TextStyle& style) {
  const ContainerInfo& container = run.container;
  const std::string& id = container.engine_id.empty() ? container.path : container.engine_id;
  return toned(std::string("-- ") + to_string(container.engine) + " " + escape_name(id) +
                   ", first seen at " +
                   time_text(seconds_since_epoch(run.first_seen.value_or(WallTime())), style.utc) +
                   " --",
               Tone::dim, style) +
         "\n";
}

// Prints pages one after the other. Only the first has titles.
class HistoryText {
 public:
  explicit HistoryText(const CommonOptions& options) : options_(options) {}

  // Prints the title line of the next container.
  OrComplaint<void> begin(const HistoryReply& run) {
    return put(run_title(run, text_style(options_, terminal_environment())));
  }
  OrComplaint<void> page(const HistoryReply& page) {
    const auto text =
        text_of(kHistoryForm, to_json(page), options_, !std::exchange(begun_, true));
    return text ? put(*text) : std::unexpected(text.error());
  }

 private:
  const CommonOptions& options_;
  bool begun_ = false;
};

// Prints page by page, so that the oldest points appear before the newest are read.
OrComplaint<void> print_all(const Ask& ask, const HistoryRequest& request, HistoryReply first,
                            std::span<const HistoryReply> earlier, HistoryText& text) {
  if (earlier.empty() && (!first.points || first.points->empty())) return text.page(first);
  const auto take = [&](const HistoryReply& page) { return text.page(page); };
  for (const HistoryReply& run : earlier) {
    if (const auto begun = text.begin(run); !begun) return begun;
    auto page = first_of(ask, request, run);
    if (!page) return std::unexpected(page.error());
    if (const auto done = each_page_of(ask, request, *std::move(page), take); !done) return done;
  }
  if (!earlier.empty())
    if (const auto begun = text.begin(first); !begun) return begun;
  return each_page_of(ask, request, std::move(first), take);
}

// CSV rows do not name their container, so only the last container is printed.
OrComplaint<void> print_history(const Ask& ask, const HistoryRequest& request, HistoryReply first,
                                std::optional<std::size_t> newest, const CommonOptions& options) {
  HistoryText text(options);
  const bool rows = options.output == Output::csv || options.output == Output::jsonl;
  if (!newest) {
    const auto earlier = rows ? std::vector<HistoryReply>()
                              : first.earlier.value_or(std::vector<HistoryReply>());
    return print_all(ask, request, std::move(first), earlier, text);
  }
  const auto runs = collect_runs(ask, request, std::move(first), *newest, !rows);
  if (!runs) return std::unexpected(runs.error());
  for (const HistoryReply& run : *runs) {
    if (runs->size() > 1)
      if (const auto begun = text.begin(run); !begun) return begun;
    if (const auto done = text.page(run); !done) return done;
  }
  return {};
}

// Returns one document: the last container, with the earlier ones and their points in "earlier".
OrComplaint<HistoryReply> history_document(const Ask& ask, const HistoryRequest& request,
                                           HistoryReply first, std::optional<std::size_t> newest) {
  auto runs = collect_runs(ask, request, std::move(first),
                           newest.value_or(std::numeric_limits<std::size_t>::max()), true);
  if (!runs) return std::unexpected(runs.error());
  HistoryReply last = std::move(runs->back());
  runs->pop_back();
  if (last.earlier) last.earlier = *std::move(runs);
  return last;
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
  auto first = ask_page(*ask, request);
  if (!first) return complain(first.error());
  if (options.output != Output::json && options.output != Output::openmetrics) {
    const auto done = print_history(*ask, request, *std::move(first), newest, options);
    return done ? 0 : complain(done.error());
  }
  const auto document = history_document(*ask, request, *std::move(first), newest);
  return document ? print(kHistoryForm, to_json(*document), options)
                  : complain(document.error());
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
    const auto reply = whole(*ask, request);
    if (!reply) return complain(reply.error());
    EventsReply fresh;
    std::set<std::string> seen;
    // Events that the limit left out must not appear as new later.
    const bool cut =
        request.limit && std::cmp_greater_equal(reply->events.size(), *request.limit);
    for (const json& event : reply->events) {
      const auto report = read<EventReport>(event);
      if (!report) return complain(report.error());
      const double time = seconds_since_epoch(report->time);
      if (cut && seen.empty()) begin = std::max(begin, time + kStepSeconds);
      const std::string text = event.dump();
      if (!printed.contains(text)) fresh.events.push_back(event);
      seen.insert(text);
      request.from_seconds = std::max(begin, time - kFollowOverlapSeconds);
    }
    request.limit.reset();  // the limit is for entries that existed at the start
    if (!request.from_seconds) request.from_seconds = now;
    printed = std::move(seen);
    // CSV titles are printed even before the first event.
    const bool titles = options.output == Output::csv && options.legend;
    if (titles || !fresh.events.empty())
      if (const int code = print(kEventsForm, to_json(fresh), options); code != 0) return code;
    options.legend = false;
    ::poll(nullptr, 0, kFollowMilliseconds);
  }
}

}  // namespace cgphase
