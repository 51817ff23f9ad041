// Parses JSON documents from untrusted sources.
#pragma once

#include <cstddef>
#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"

namespace cgphase {

// The deepest nesting of objects and arrays. It bounds the recursion of code that walks a document.
inline constexpr int kMaxJsonDepth = 16;

inline constexpr std::size_t kMaxReasonBytes = 1000;

// Parses the document in `text`. Errors: invalid, "NAME: not well-formed JSON: ", then position and
// reason.
Result<nlohmann::json> parse_foreign_json(const std::string& text, const std::string& name);

// The library's message, printable and without the name of its exception. It is cut after
// kMaxReasonBytes.
std::string reason_of(const std::exception& exception);

}  // namespace cgphase
