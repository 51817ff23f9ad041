// How the verbs that need no daemon end and write.
#pragma once

#include <string>

#include "base/result.h"

namespace cgphase {

inline constexpr const char* kInstalledModel = "/usr/share/cgphase/model.json";

// The exit code of a verb; an error is one line on stderr.
int finish(const char* verb, const Status& status);

// To the file, whole or not at all, or to stdout where `path` is empty.
Status emit(const std::string& text, const std::string& path);

}  // namespace cgphase
