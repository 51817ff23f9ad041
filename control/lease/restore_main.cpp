// cgphase-restore: restores the limits that cgphased changed. It runs once, or as the companion
// (--watch). It needs only the lease file of the daemon.
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "base/parse.h"
#include "control/lease/companion.h"
#include "control/lease/restore.h"

namespace {

using namespace cgphase;

constexpr const char* kUsage =
    "usage: cgphase-restore [--runtime-dir DIR] [--cgroup-root DIR]\n"
    "       cgphase-restore --watch --pid PID [--silence 3s] [--stop-fd FD] [...]\n"
    "Restores every limit that cgphased changed to its original, unless somebody else has\n"
    "changed it since. Exit status: 0 done, 1 something failed (one line each), 2 usage.\n"
    "  --runtime-dir DIR   directory of the lease file (/run/cgphase)\n"
    "  --cgroup-root DIR   cgroup v2 mount, if the lease file has none (/sys/fs/cgroup)\n"
    "  --watch             wait for the death or the silence of PID, then restore\n"
    "  -h, --help          this text\n";

struct Arguments {
  WatchOptions options{.runtime_dir = "/run/cgphase", .cgroup_root = "/sys/fs/cgroup"};
  bool watch = false;
  bool help = false;
};

bool take_number(std::string_view text, int& into) {
  const auto number = parse_u64(text);
  if (!number || *number > 0x7fffffff) return false;
  into = static_cast<int>(*number);
  return true;
}

bool take_option(std::string_view name, const char* value, Arguments& arguments) {
  WatchOptions& options = arguments.options;
  if (name == "--runtime-dir")
    options.runtime_dir = value;
  else if (name == "--cgroup-root")
    options.cgroup_root = value;
  else if (name == "--pid")
    return take_number(value, options.pid);
  else if (name == "--stop-fd")
    return take_number(value, options.stop_fd);
  else if (name == "--silence") {
    const auto silence = parse_duration_ns(value);
    if (!silence || *silence <= 0) return false;
    options.silence =
        std::chrono::ceil<std::chrono::milliseconds>(std::chrono::nanoseconds(*silence));
  } else
    return false;
  return true;
}

bool parse(int count, char** words, Arguments& arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--watch")
      arguments.watch = true;
    else if (word == "--help" || word == "-h")
      arguments.help = true;
    else if (i + 1 >= count || !take_option(word, words[i + 1], arguments)) {
      std::fprintf(stderr, "cgphase-restore: invalid option or value: '%s'\n%s", words[i], kUsage);
      return false;
    } else
      ++i;
  }
  if (arguments.watch && arguments.options.pid <= 0) {
    std::fprintf(stderr, "cgphase-restore: --watch needs --pid\n%s", kUsage);
    return false;
  }
  return true;
}

int restore_once(const WatchOptions& options) {
  auto leases = LeaseTable::open_existing({.runtime_dir = options.runtime_dir});
  if (!leases && leases.error().kind == ErrorKind::not_found) {
    std::puts("no limit is leased; nothing to restore");
    return 0;
  }
  if (!leases) {
    std::fprintf(stderr, "cgphase-restore: %s\n", leases.error().text.c_str());
    return 1;
  }
  const bool owned = (*leases)->try_own();  // a living daemon keeps its leases
  const RestoreReport report = restore_leases(**leases, options.cgroup_root);
  if (owned) (*leases)->remove_unused();
  for (const std::string& line : report.failures)
    std::fprintf(stderr, "cgphase-restore: %s\n", line.c_str());
  std::printf("%d restored, %d left to others, %d gone\n", report.restored, report.foreign,
              report.gone);
  return report.failures.empty() ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  Arguments arguments;
  if (!parse(count, words, arguments)) return 2;
  if (arguments.help) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  return arguments.watch ? watch_daemon(arguments.options) : restore_once(arguments.options);
}
