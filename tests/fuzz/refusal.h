// The form that every reader's refusal of foreign bytes must have.
#pragma once

#include <string>

#include "base/check.h"
#include "base/result.h"
#include "base/text.h"

namespace cgphase {

// `invalid` and one printable line. It begins with the file and, unless `place` is empty, with the
// place in it.
inline void check_refusal(const Error& error, const std::string& file, const std::string& place) {
  CHECK_INVARIANT(error.kind == ErrorKind::invalid);
  CHECK_INVARIANT(error.text.starts_with(file + ": " + place));
  CHECK_INVARIANT(error.text.size() > file.size() + 2 + place.size());
  CHECK_INVARIANT(printable(error.text) == error.text);
}

}  // namespace cgphase
