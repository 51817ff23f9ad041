// One workload in its own cgroup with its user's limits, as a container engine would create it.
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
    std::string work;           // the workload's files are in a directory NAME below this one
  };

  // Makes the cgroup, sets its limits and reads them back. Nothing runs yet.
  static Result<Container> create(const MixItem& item, const Options& options);

  // Runs the workload inside, beside a process that only waits, like the init of a container. So
  // the cgroup stays populated after the workload has ended, until remove(). Call it only once.
  Status start();
  Child& process() { return process_; }

  const MixItem& item() const { return item_; }
  const std::string& cgroup() const { return cgroup_; }
  std::string labels_path() const { return options_.results + "/" + item_.name + ".labels"; }
  std::string result_path() const { return options_.results + "/" + item_.name + ".json"; }

  // A file of the cgroup, trimmed: read_knob("cpu.max") is "80000 100000".
  Result<std::string> read_knob(const char* name) const;
  // A "KEY VALUE" line of a flat keyed file; absent if there is no such line.
  std::optional<std::uint64_t> read_keyed(const char* name, std::string_view key) const;
  // Ends all processes inside and removes the cgroup.
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
