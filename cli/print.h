// Where verbs end: standard output, standard error, and an exit code.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "cli/daemon_client.h"
#include "cli/options.h"
#include "cli/present.h"

namespace cgphase {

// "cgphase: TEXT" as one printable line on standard error. Returns the exit code.
int complain(Exit exit, std::string_view text);
int complain(const Complaint& complaint);

// The reply in the form that the options ask for, on standard output.
int print(const Form& form, const nlohmann::json& body, const CommonOptions& options);

}  // namespace cgphase
