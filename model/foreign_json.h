// JSON documents that somebody else wrote.
#pragma once

#include <cstddef>
#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"

namespace cgphase {

// Levels of objects and arrays within each other: who walks a document may call itself.
inline constexpr int kMaxJsonDepth = 16;

inline constexpr std::size_t kMaxReasonBytes = 1000;

// The document in `text`. Errors: invalid, "NAME: not well-formed JSON: ", and where and why.
Result<nlohmann::json> parse_foreign_json(const std::string& text, const std::string& name);

// What the library says, printable and without the name of its exception; what is longer than
// kMaxReasonBytes is cut.
std::string reason_of(const std::exception& exception);

}  // namespace cgphase
