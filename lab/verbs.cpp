#include "lab/verbs.h"

namespace cgphase {

// Each is defined in the file of the same name.
AddVerbs add_prototypes_verb, add_plot_verb, add_replay_verb, add_challenge_verb;

namespace {

constexpr AddVerbs* kVerbs[] = {
    add_prototypes_verb,
    add_plot_verb,
    add_replay_verb,
    add_challenge_verb,
};

}  // namespace

std::span<AddVerbs* const> lab_verbs() { return kVerbs; }

}  // namespace cgphase
