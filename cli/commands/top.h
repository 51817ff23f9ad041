// The screen of `cgphase top`. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/output/style.h"
#include "protocol/report.h"

namespace cgphase {

enum class TopOrder : std::uint8_t { cpu, memory, saved, name };

// Sorts the containers of a list reply, largest first: cores used, bytes needed or bytes saved.
// Containers without that value come last. Equal ones keep the daemon's order.
void sort_containers(ListReply& list, TopOrder order);

// Renders the replies to status and list as `top` shows them.
std::string render_top(const StatusReport& status, const ListReply& list, const TextStyle& style);

// Returns what draws `text` over the last picture on a terminal with `rows` rows: the lines that
// fit, not wrapped. 0 rows: unknown, all lines.
std::string top_frame(const std::string& text, std::size_t rows);

}  // namespace cgphase
