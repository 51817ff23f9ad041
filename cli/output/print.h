// Standard output, standard error and exit codes of verbs.
#pragma once

#include <expected>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/daemon_client.h"
#include "cli/options.h"
#include "cli/output/present.h"

namespace cgphase {

// Prints "cgphase: TEXT" as one printable line on standard error. Returns the exit code.
int complain(Exit exit, std::string_view text);
int complain(const Complaint& complaint);

// The result of a verb, or why it failed.
template <class T>
using OrComplaint = std::expected<T, Complaint>;
std::unexpected<Complaint> complaint(Exit exit, std::string text);
// For an error of an input or output file. A missing file is invalid, like an unreadable one.
std::unexpected<Complaint> complaint(const Error& error);

// Writes to standard output in one write. A reader that stops early, as grep -q does, then causes
// no error if the text fits into the pipe.
OrComplaint<void> put(std::string_view text);
// Prints the reply on standard output in the format that the options ask for. Returns the exit
// code.
int print(const Form& form, const nlohmann::json& body, const CommonOptions& options);

}  // namespace cgphase
