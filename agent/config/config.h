// The configuration of the daemon: vendor defaults, then the administrator's file, then the files
// of conf.d beside it (docs/configuration.md). A value: a reload makes a new one, or says why not.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "collectors/containers/container_info.h"
#include "policy/budget_config.h"
#include "policy/decision.h"
#include "policy/safety/safety_rules.h"
#include "policy/terms.h"

namespace cgphase {

// Of the driver, found as the loader finds libraries.
inline constexpr const char* kNvmlLibrary = "libnvidia-ml.so.1";

struct Config {
  Mode mode = Mode::observe;
  std::chrono::milliseconds interval{1000};
  std::string policy = "phase";  // as parse_policy_spec() takes it
  double risk = kShippedRisk;    // share of the samples that may want more than they got
  std::string model = "/usr/share/cgphase/model.json";
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string proc_root = "/proc";
  std::string state_dir = "/var/lib/cgphase";
  std::string runtime_dir = "/run/cgphase";
  std::string kill_switch = "/etc/cgphase/disabled";
  std::vector<std::string> include;  // globs on CgroupPath
  // "PATTERN TERM=VALUE...": a shell pattern for name, image or cgroup path, and terms as for
  // set_term().
  std::vector<std::string> containers;
  bool manage_unlimited = false;

  struct Socket {
    std::string group = "cgphase";
  } socket;
  struct StoreSection {
    bool enabled = true;
    Bytes cap{256 * kMiB};
    Bytes min_free{32 * kMiB};
  } store;
  // Globs; a container that matches any of them may be acted on.
  struct Enforce {
    std::vector<std::string> names, images, cgroups;
    CpuLever cpu = CpuLever::weight;
  } enforce;
  struct Bpf {
    bool enabled = true;
    double budget = 0.005;  // of one core, for all that counts
  } bpf;
  struct Gpu {
    bool enabled = true;
    std::string nvml = kNvmlLibrary;
  } gpu;
  // What is shown beside the sockets; empty: nothing.
  struct Http {
    std::string listen;
  } http;
  struct Metrics {
    std::string textfile;
    std::chrono::seconds interval{15};
  } metrics;
  BudgetConfig budget;
  SafetyConfig safety;

  // Where each key that is no default was set: "FILE:LINE", or the option of the command line.
  std::map<std::string, std::string> origins;
  // One sentence for each key that an earlier version had: "FILE:LINE: KEY is ignored: WHY".
  std::vector<std::string> warnings;
};

inline constexpr const char* kDefaultConfigFile = "/etc/cgphase/cgphase.toml";

// Bounds of the files; one past any of them is refused.
inline constexpr std::size_t kMaxConfigFileBytes = 1U << 20;
inline constexpr std::size_t kMaxConfigFiles = 64;  // in conf.d
inline constexpr std::size_t kMaxPatterns = 256;    // in one array
inline constexpr std::size_t kMaxPatternBytes = 1024;
inline constexpr std::size_t kMaxPathBytes = 4095;
inline constexpr std::size_t kMaxRuntimeDirBytes = 90;  // its sockets' names must fit sun_path

struct ConfigSource {
  std::string file = kDefaultConfigFile;
  bool must_exist = false;  // named by the user: then its absence is an error
};

// Reads `file` and conf.d/*.toml beside it in the order of their names; a later value of a key
// replaces an earlier one whole. Errors name file, line, column, the bad value and what is allowed,
// for an unknown key the nearest one: invalid, denied, not_found, io.
Result<Config> load_config(const ConfigSource& source);

// One value from the command line, as text; `origin` is the option's name ("--mode"). For keys that
// hold text. Errors: invalid.
Status override_config(Config& config, std::string_view key, std::string_view value,
                       const std::string& origin);

// For `config show --origin`: every key in the order of the documentation.
struct ConfigValue {
  std::string key;
  std::string value;   // as it would stand in the file
  std::string origin;  // "FILE:LINE", "--option" or "default"
};
std::vector<ConfigValue> config_rows(const Config& config);

// For the documentation, the man page and the commented default file.
struct ConfigKey {
  std::string key;
  std::string allowed;        // "100ms to 1min", "observe, advise, enforce", ...
  std::string default_value;  // as it would stand in the file
  std::string meaning;
};
std::vector<ConfigKey> config_keys();

// What cgphase may do to one container. The global mode is the ceiling; enforce is reached only
// where the container is named in [enforce] or asks for it by the label cgphase.mode, and never
// where somebody else manages it (hands_off). A label of no known mode means observe. Where labels
// are unknown, no pattern enforces.
Mode mode_for(const Config& config, const ContainerInfo& container);

// The terms of one container: those of its labels (cgphase.class, cgphase.cpu.min,
// ...), then those of `containers` in their order; the last one counts.
struct FoundTerms {
  Terms terms;
  std::vector<std::string> ignored;  // "cgphase.class=gold: must be ...", labels of no known value
};
FoundTerms terms_for(const Config& config, const ContainerInfo& container);

// Shell pattern: * any bytes ('/' too), ? one byte, [abc] one of a set; a backslash is
// itself, for names of units have them (fnmatch(3), FNM_NOESCAPE).
bool matches_any(const std::vector<std::string>& patterns, const std::string& text);

// Puts back in `asked` what a running daemon cannot change; one sentence for each such key.
std::vector<std::string> keep_until_restart(const Config& now, Config& asked);

}  // namespace cgphase
