#include "protocol/events.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "protocol/protocol.h"
#include "protocol/report.h"

namespace cgphase {
namespace {

// "TIME_NS-TABLE-ROW", the form of "earlier" in a reply.
std::string place_text(const EventPlace& place) {
  return std::to_string(place.time_ns) + "-" + std::to_string(place.table) + "-" +
         std::to_string(place.row);
}

std::optional<EventPlace> parse_place(std::string_view text) {
  EventPlace place;
  const char *at = text.data(), *const end = text.data() + text.size();
  const auto take = [&](auto& number, bool last) {
    const auto [next, error] = std::from_chars(at, end, number);
    const bool sound = error == std::errc() && number >= 0 &&
                       (last ? next == end : next != end && *next == '-');
    at = sound && !last ? next + 1 : next;
    return sound;
  };
  if (!take(place.time_ns, false) || !take(place.table, false) || !take(place.row, true))
    return std::nullopt;
  return place;
}

EventReport report_of(const JournalEvent& event) {
  EventReport report{.name = event.name, .time = {}, .decision = {}, .outcome = {}};
  if (const auto* const decision = std::get_if<JournalDecision>(&event.what)) {
    report.time = decision->time;
    report.decision = decision->decision;
    report.writer = decision->writer;
  } else if (const auto* const outcome = std::get_if<JournalOutcome>(&event.what)) {
    report.time = outcome->time;
    report.outcome = outcome->outcome;
  }
  return report;
}

}  // namespace

Result<EventSpan> event_span(const EventsRequest& request) {
  EventSpan span{.from = time_of(request.from_seconds).value_or(WallTime{}),
                 .until = time_of(request.until_seconds).value_or(WallTime::max()),
                 .limit = bounded(request.limit, kMostEvents, kMostEvents)};
  if (!request.before) return span;
  span.before = parse_place(*request.before);
  if (!span.before)
    return failure(ErrorKind::invalid,
                   "events: 'before' is not an 'earlier' of a reply; repeat it unchanged");
  return span;
}

nlohmann::json events_page(std::span<const JournalEvent> newest_first, bool more) {
  std::vector<nlohmann::json> page;
  std::size_t bytes = 0;
  EventPlace last;
  for (const JournalEvent& event : newest_first) {
    nlohmann::json one = to_json(report_of(event));
    bytes += one.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).size();
    if (bytes > kMostEventBytes && !page.empty()) {
      more = true;
      break;
    }
    page.push_back(std::move(one));
    last = event.place;
  }
  std::ranges::reverse(page);
  const bool earlier = more && !page.empty();
  return to_json(EventsReply{std::move(page), earlier ? place_text(last) : ""});
}

}  // namespace cgphase
