// The part of cgphase(1) that the table of verbs describes.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace cgphase {

// Returns docs/man/cgphase.1.table.scd: the common options and every verb, in the language of
// scdoc(5).
std::string manual(const CLI::App& app);

}  // namespace cgphase
