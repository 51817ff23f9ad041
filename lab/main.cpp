// The command cgphase: the verbs of cli/ and of lab/.
#include "cli/command_line.h"
#include "cli/commands/verbs.h"

namespace cgphase {

// Each is defined in the file of the same name.
AddVerbs add_prototypes_verb, add_plot_verb, add_replay_verb, add_challenge_verb;

}  // namespace cgphase

int main(int count, char** words) {
  constexpr cgphase::AddVerbs* kLabVerbs[] = {
      cgphase::add_prototypes_verb, cgphase::add_plot_verb, cgphase::add_replay_verb,
      cgphase::add_challenge_verb};
  return cgphase::run_command(count, words, kLabVerbs);
}
