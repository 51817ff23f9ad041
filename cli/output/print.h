// Where verbs end: standard output, standard error, and an exit code.
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

// "cgphase: TEXT" as one printable line on standard error. Returns the exit code.
int complain(Exit exit, std::string_view text);
int complain(const Complaint& complaint);

// What a verb comes to, or why it fails.
template <class T>
using OrComplaint = std::expected<T, Complaint>;
std::unexpected<Complaint> complaint(Exit exit, std::string text);
// Of a file that a verb reads or writes: one that is not there is as invalid as one that cannot be
// read.
std::unexpected<Complaint> complaint(const Error& error);

// On standard output, in one write: who goes after the line that it wants, as grep -q does, was
// given all of it, up to what a pipe holds.
OrComplaint<void> put(std::string_view text);
// The reply in the form that the options ask for, on standard output.
int print(const Form& form, const nlohmann::json& body, const CommonOptions& options);

}  // namespace cgphase
