#include "cli/commands/restore_alone.h"

#include <unistd.h>

#include "base/parse.h"
#include "base/text.h"
#include "cli/run_program.h"

namespace cgphase {

std::string find_restore_program() {
  return find_program("cgphase-restore", "/usr/lib/cgphase/cgphase-restore");
}

std::expected<ActionReport, Complaint> restore_alone(const std::string& program,
                                                     const std::string& runtime_directory,
                                                     const std::string& cgroup_root) {
  const auto end = run_program(
      {program, "--runtime-dir", runtime_directory, "--cgroup-root", cgroup_root}, STDOUT_FILENO);
  if (!end) return std::unexpected(end.error());
  const std::string said = printable(trim(end->said));
  if (end->exit != 0)
    return std::unexpected(
        Complaint{Exit::failure,
                  program + " could not restore all limits, the others are restored: " + said});
  return ActionReport{.done = "no daemon answers; cgphase-restore: " + said, .undo = {},
                      .changes = {}, .failures = {}};
}

}  // namespace cgphase
