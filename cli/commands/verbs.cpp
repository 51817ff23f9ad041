#include "cli/commands/verbs.h"

// One row per function, which is defined in the file of the same name.
#define CGPHASE_VERBS(ROW)       \
  ROW(add_daemon_verbs)          \
  ROW(add_top_verb)              \
  ROW(add_config_verbs)          \
  ROW(add_doctor_verb)           \
  ROW(add_bundle_verb)           \
  ROW(add_predict_verb)          \
  ROW(add_train_verb)            \
  ROW(add_expand_verb)           \
  ROW(add_model_verb)            \
  ROW(add_installed_model_verbs) \
  ROW(add_record_verb)           \
  ROW(add_export_verb)           \
  ROW(add_size_verb)             \
  ROW(add_fit_verb)              \
  ROW(add_bursts_verb)           \
  ROW(add_completion_verb)

namespace cgphase {

#define CGPHASE_DECLARE(add) AddVerbs add;
CGPHASE_VERBS(CGPHASE_DECLARE)

namespace {

#define CGPHASE_NAME(add) add,
constexpr AddVerbs* kVerbs[] = {CGPHASE_VERBS(CGPHASE_NAME)};

}  // namespace

std::span<AddVerbs* const> cli_verbs() { return kVerbs; }

}  // namespace cgphase
