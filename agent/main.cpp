// cgphased: options in, exit code out.
#include <getopt.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "agent/daemon.h"
#include "agent/readiness.h"
#include "collectors/ebpf/probe.h"
#include "storage/store.h"

namespace {

constexpr const char* kUsage =
    "usage: cgphased [--config F] [--cgroup-root D] [--proc-root D] [--state-dir D]\n"
    "                [--runtime-dir D] [--mode observe|advise|enforce] [--policy POLICY]\n"
    "                [--model F] [--once] [--check-config] [--version] [--help]\n";

// Options that stand for a key of the configuration.
struct KeyOption {
  const char* option;
  const char* key;
  bool path;  // relative to where the command was given; in a file it must be absolute
};
constexpr std::array<KeyOption, 7> kKeyOptions = {{{"cgroup-root", "cgroup_root", true},
                                                   {"proc-root", "proc_root", true},
                                                   {"state-dir", "state_dir", true},
                                                   {"runtime-dir", "runtime_dir", true},
                                                   {"mode", "mode", false},
                                                   {"policy", "policy", false},
                                                   {"model", "model", true}}};

enum Option : int { kConfig = 100, kOnce, kCheckConfig, kVersion, kHelp };

constexpr option kOptions[] = {
    {"cgroup-root", required_argument, nullptr, 0}, {"proc-root", required_argument, nullptr, 1},
    {"state-dir", required_argument, nullptr, 2},   {"runtime-dir", required_argument, nullptr, 3},
    {"mode", required_argument, nullptr, 4},        {"policy", required_argument, nullptr, 5},
    {"model", required_argument, nullptr, 6},       {"config", required_argument, nullptr, kConfig},
    {"once", no_argument, nullptr, kOnce},          {"version", no_argument, nullptr, kVersion},
    {"check-config", no_argument, nullptr, kCheckConfig},
    {"help", no_argument, nullptr, kHelp},
    {nullptr, 0, nullptr, 0}};

int code(cgphase::Exit exit) { return static_cast<int>(exit); }

int usage_error(const std::string& text) {
  std::fprintf(stderr, "cgphased: %s\n%s", text.c_str(), kUsage);
  return code(cgphase::Exit::usage);
}

// The program's, then of the libraries that can tell theirs, one per line.
int version() {
  std::printf("cgphased %s\n%s\n%s\n", CGPHASE_VERSION, cgphase::libbpf_release().c_str(),
              cgphase::sqlite_release().c_str());
  return code(cgphase::Exit::ok);
}

int check_config(const cgphase::DaemonOptions& options) {
  const auto config = cgphase::effective_config(options);
  if (!config) {
    std::fprintf(stderr, "cgphased: %s\n", config.error().text.c_str());
    return code(cgphase::Exit::invalid);
  }
  for (const std::string& warning : config->warnings)
    std::fprintf(stderr, "cgphased: %s\n", warning.c_str());
  const cgphase::Started<void> ready = cgphase::check_readiness(*config);
  if (ready) return code(cgphase::Exit::ok);
  std::fprintf(stderr, "cgphased: %s\n", ready.error().text.c_str());
  return code(ready.error().exit);
}

void add_override(cgphase::DaemonOptions& options, const KeyOption& entry, const char* value) {
  std::error_code unreadable;  // then the value is judged as it was given
  const std::string text =
      entry.path ? std::filesystem::absolute(value, unreadable).lexically_normal().string() : value;
  options.overrides.push_back({entry.key, text, std::string("--") + entry.option});
}

}  // namespace

int main(int argc, char** argv) {
  cgphase::DaemonOptions options;
  bool only_check = false;
  opterr = 0;
  for (int found; (found = ::getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    switch (found) {
      case kConfig: options.config_path = optarg; break;
      case kOnce: options.once = true; break;
      case kCheckConfig: only_check = true; break;
      case kVersion: return version();
      case kHelp: std::fputs(kUsage, stdout); return 0;
      case '?': return usage_error(std::string("unknown or incomplete option ") + argv[optind - 1]);
      default: add_override(options, kKeyOptions.at(static_cast<std::size_t>(found)), optarg);
    }
  }
  if (optind < argc) return usage_error(std::string("unexpected argument ") + argv[optind]);
  return only_check ? check_config(options) : code(cgphase::run_daemon(options));
}
