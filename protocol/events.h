// A page of the journal, as the reply to `events` carries it (docs/internals/protocol.md). Pure,
// any thread; the daemon answers with it, the command makes it of the files of a daemon that has
// stopped.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "base/result.h"
#include "protocol/protocol.h"
#include "storage/journal_event.h"

namespace cgphase {

inline constexpr int kExplainDecisions = 20;                     // of a reply to `explain`
inline constexpr int kMostEvents = 1000;                         // of a page
inline constexpr std::size_t kMostEventBytes = 2 * 1024 * 1024;  // of JSON; one event it has always

// What a request asks for, at most a page of it. Errors: invalid (a `before` that no reply says).
Result<EventSpan> event_span(const Request& request);

// The newest that fit into a page, oldest first; "earlier" is null, or the `before` of the page
// that comes before it: where not all fit, or there are `more`.
nlohmann::json events_page(std::span<const JournalEvent> newest_first, bool more);

}  // namespace cgphase
