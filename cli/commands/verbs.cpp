#include "cli/commands/verbs.h"

namespace cgphase {

// Each is defined in the file of the same name.
AddVerbs add_daemon_verbs, add_top_verb, add_config_verbs, add_doctor_verb, add_bundle_verb,
    add_predict_verb, add_train_verb, add_expand_verb, add_model_verb, add_installed_model_verbs,
    add_record_verb, add_export_verb, add_size_verb, add_fit_verb, add_bursts_verb,
    add_completion_verb;

namespace {

constexpr AddVerbs* kVerbs[] = {
    add_daemon_verbs,
    add_top_verb,
    add_config_verbs,
    add_doctor_verb,
    add_bundle_verb,
    add_predict_verb,
    add_train_verb,
    add_expand_verb,
    add_model_verb,
    add_installed_model_verbs,
    add_record_verb,
    add_export_verb,
    add_size_verb,
    add_fit_verb,
    add_bursts_verb,
    add_completion_verb,
};

}  // namespace

std::span<AddVerbs* const> cli_verbs() { return kVerbs; }

}  // namespace cgphase
