// cgphase, the command: the verbs of cli/ and those of lab/.
#include "cli/command_line.h"
#include "lab/verbs.h"

int main(int count, char** words) {
  return cgphase::run_command(count, words, cgphase::lab_verbs());
}
