// A page of the journal, as in the reply to `events` (docs/internals/protocol.md). Pure, any
// thread. The daemon answers with it. The command makes it from the files of a stopped daemon.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "base/result.h"
#include "protocol/requests.h"
#include "storage/journal_event.h"

namespace cgphase {

inline constexpr int kExplainDecisions = 20;                     // in a reply to `explain`
inline constexpr int kMostEvents = 1000;                         // in a page
inline constexpr std::size_t kMostEventBytes = 2 * 1024 * 1024;  // of JSON, but at least one event

// Returns the span of a request, at most a page. Errors: invalid (`before` is not from a reply).
Result<EventSpan> event_span(const EventsRequest& request);

// Returns the newest events that fit into a page, oldest first. "earlier" is the `before` of the
// previous page; null if all events fit and there are no `more`.
nlohmann::json events_page(std::span<const JournalEvent> newest_first, bool more);

}  // namespace cgphase
