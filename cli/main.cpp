// cgphase, the command.
#include "cli/command_line.h"

int main(int count, char** words) { return cgphase::run_command(count, words); }
