// The command cgphase: the verbs of cli/ and of lab/.
#include "cli/command_line.h"
#include "lab/verbs.h"

int main(int count, char** words) {
  return cgphase::run_command(count, words, cgphase::lab_verbs());
}
