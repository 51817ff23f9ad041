// The slow path: one limit written through libcgroup.
//
// libcgroup 2.0.2 knows cgroups by path and rewrites every value that its struct holds, so each
// write builds a fresh struct with one key. Its errors do not tell a missing cgroup from a missing
// permission; they are classified by an access of our own. It is not thread-safe: one thread.
#pragma once

#include <string>

#include "base/result.h"
#include "cgroupfs/cgroup_id.h"
#include "cgroupfs/knob_file.h"
#include "cgroupfs/limits.h"

namespace cgphase {

// Once per process, before threads; later calls return the first answer. The library reads the
// mounts now and never again, and prints nothing. Errors: unsupported (nothing is mounted).
Status initialise_libcgroup();

// Puts `original` into the cgroup that `directory` is now, and that was not meant, where it holds
// exactly `text`: no lease stands for that one, so nobody else would. A container that was ended
// and started again most likely has that original. What fails is left: the cgroup may be gone too.
void take_back_from_successor(const std::string& directory, Knob knob, const KnobText& text,
                              const KnobText& original);

class LibcgroupWrite {
 public:
  // Finds the hierarchy that `cgroup_root` is, or lies in. Errors: unsupported where libcgroup
  // knows no cgroup v2 mount with cpu and memory there (a plain directory in tests, a mount made
  // after the process began): then write by descriptor.
  static Result<LibcgroupWrite> open(const std::string& cgroup_root);

  // `directory_fd` is the cgroup that `path` is believed to be; it is compared before and after.
  // Where another one took the path over meanwhile, `text` is taken back from it, as above.
  // Errors: gone (another cgroup has that path), denied, invalid, io. After an error the value may
  // have been written all the same: read it back.
  Status write(CgroupId id, const CgroupPath& path, int directory_fd, Knob knob,
               const KnobText& text, const KnobText& original) const;

 private:
  std::string root_;    // real path
  std::string prefix_;  // from the mount point to root_, without slashes at its ends
};

}  // namespace cgphase
