#include "collectors/process_cgroup.h"

#include <limits.h>
#include <stdlib.h>

#include <array>
#include <cstddef>

#include "base/file.h"
#include "base/parse.h"

namespace cgphase {
namespace {

// One line per hierarchy of cgroup v1, each with a path of at most 4096 bytes.
constexpr std::size_t kProcessCgroupBytes = 64 * 1024;
constexpr std::size_t kMountsBytes = 16 << 20;  // enough for thousands of containers
constexpr std::string_view kUnified = "0::";

bool is_octal(char digit) { return digit >= '0' && digit <= '7'; }

// mountinfo escapes blanks and backslashes of a path as \OOO.
std::string unescape_mount(std::string_view text) {
  std::string path;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool escaped = text[at] == '\\' && at + 3 < text.size() && is_octal(text[at + 1]) &&
                         is_octal(text[at + 2]) && is_octal(text[at + 3]);
    if (!escaped) {
      path += text[at];
      continue;
    }
    const int byte = (text[at + 1] - '0') * 64 + (text[at + 2] - '0') * 8 + (text[at + 3] - '0');
    path += static_cast<char>(byte);
    at += 3;
  }
  return path;
}

std::string real_path(const std::string& path) {
  std::array<char, PATH_MAX> real;
  return ::realpath(path.c_str(), real.data()) == nullptr ? path : std::string(real.data());
}

}  // namespace

CgroupPath kernel_path_of_root(const std::string& proc_root, const std::string& cgroup_root) {
  const auto mounts = read_file(proc_root + "/self/mountinfo", kMountsBytes);
  if (!mounts || cgroup_root.empty()) return {};
  const std::string root = real_path(cgroup_root);
  std::string_view rest = *mounts, line;
  std::size_t longest = 0;
  CgroupPath found;
  // If mounts are nested or stacked, the last and innermost is visible.
  while (next_line(rest, line)) {
    if (line.find(" - cgroup2 ") == std::string_view::npos) continue;
    std::string_view top, point;
    for (int i = 0; i < 4; ++i) next_word(line, top);
    if (!next_word(line, point) || !point.starts_with('/')) continue;
    const std::string mount = unescape_mount(point);
    const CgroupPath below = path_below(root, mount);
    if (below.empty() || mount.size() < longest) continue;
    longest = mount.size();
    found = top == "/" ? CgroupPath() : unescape_mount(top);
    if (below != "/") found += below;
  }
  return found;
}

CgroupPath cgroup_of_process(const std::string& process) {
  const auto text = read_file(process + "/cgroup", kProcessCgroupBytes);
  if (!text) return {};
  std::string_view rest = *text, line;
  while (next_line(rest, line))
    if (line.starts_with(kUnified)) return CgroupPath(line.substr(kUnified.size()));
  return {};
}

}  // namespace cgphase
