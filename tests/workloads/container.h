// One workload in a cgroup of its own with its user's limits: what a container engine would leave
// behind, without the engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "tests/workloads/child.h"
#include "tests/workloads/mix.h"

namespace cgphase::workloads {

// The extended attribute of a cgroup directory that names the image running in it.
inline constexpr const char* kImageAttribute = "user.cgphase.image";

// Makes `directory` below a cgroup v2 mount and enables cpu, memory, io and pids for its children.
Status make_cgroup_parent(const std::string& directory);

// Owns the process and kills it on destruction; the cgroup stays until remove(). One thread.
class Container {
 public:
  struct Options {
    std::string cgroup_parent;  // made by make_cgroup_parent
    std::string program;        // the workload program
    std::string results;        // NAME.labels, NAME.json and NAME.err go here
    std::string work;           // a directory NAME is made here for the workload's files
  };

  // Makes the cgroup, sets its limits and reads them back; nothing runs yet.
  static Result<Container> create(const MixItem& item, const Options& options);

  // Runs the workload inside, beside a process that only waits, as the init of a container does:
  // the cgroup stays populated when the workload has ended, until remove(). Once.
  Status start();
  Child& process() { return process_; }

  const MixItem& item() const { return item_; }
  const std::string& cgroup() const { return cgroup_; }
  std::string labels_path() const { return options_.results + "/" + item_.name + ".labels"; }
  std::string result_path() const { return options_.results + "/" + item_.name + ".json"; }

  // A file of the cgroup, trimmed: read_knob("cpu.max") is "80000 100000".
  Result<std::string> read_knob(const char* name) const;
  // A "KEY VALUE" line of a flat keyed file; absent where there is none.
  std::optional<std::uint64_t> read_keyed(const char* name, std::string_view key) const;
  // Ends what is inside and removes the cgroup.
  Status remove();

 private:
  Container(const MixItem& item, const Options& options);
  Status write_knob(const char* name, std::string_view value) const;
  Status set_limits();

  MixItem item_;
  Options options_;
  std::string cgroup_;
  Child init_, process_;
};

}  // namespace cgphase::workloads
