// The picture of `cgphase top`. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/output/style.h"

namespace cgphase {

enum class TopOrder : std::uint8_t { cpu, memory, saved, name };

// The containers of a list's reply: those with most cores, most bytes needed, or most bytes saved
// first; those of which that is not known last, and what is equal as the daemon tells it.
void sort_containers(nlohmann::json& list, TopOrder order);

// What the replies to status and list say, as `top` shows them.
std::string render_top(const nlohmann::json& status, const nlohmann::json& list,
                       const TextStyle& style);

// What draws `text` over the last picture of a terminal with so many `rows`: the lines that fit,
// none wrapped. 0 rows: of unknown size, all of them.
std::string top_frame(const std::string& text, std::size_t rows);

}  // namespace cgphase
