#include "collectors/sampler_sources.h"

#include <algorithm>
#include <string>

#include "base/text.h"

namespace cgphase {

Source inotify_source(const CgroupTree& tree, const WriteWatch& unit_writes) {
  constexpr const char* kMore = ": raise fs.inotify.max_user_watches and max_user_instances";
  const bool nothing_there = tree.root_fd() < 0;  // no cgroup v2: nothing to watch
  if (!nothing_there && (tree.event_fd() < 0 || tree.unwatched() > 0))
    return {"inotify", false, std::string("only a periodic walk finds cgroups") + kMore};
  if (unit_writes.unwatched() > 0)
    return {"inotify", false,
            std::string("limits that systemd resets look like somebody else's change") + kMore};
  if (unit_writes.overflows() == 0) return {"inotify", true, ""};
  return {"inotify", true,
          "overflows: " + std::to_string(unit_writes.overflows()) +
              "; limits that systemd reset then looked like somebody else's change: raise "
              "fs.inotify.max_queued_events"};
}

Source cgroups_source(const CgroupTree& tree, std::size_t waiting) {
  const std::size_t beyond = tree.beyond_depth() + tree.beyond_count() + waiting;
  std::string text;
  if (beyond > 0 || tree.unreadable() > 0)
    text = std::to_string(beyond) + " beyond the limits of depth, length, count or descriptors, " +
           std::to_string(tree.unreadable()) + " that cannot be opened";
  // Only the owner with the most cgroups is named.
  const auto owners = tree.owners_in_trouble();
  const auto worst = std::ranges::max_element(owners, {}, &CgroupOwner::beyond);
  if (worst != owners.end()) {
    if (!text.empty()) text += "; ";
    text += "the subtree of " + escape_name(worst->name) + " has ";
    text += worst->beyond > 0 ? "more than its quota of " + std::to_string(kMaxCgroupsPerOwner) +
                                    " cgroups, and the rest is not followed"
                              : "more changes than its quota, and is scanned later";
    if (owners.size() > 1) text += "; so have " + std::to_string(owners.size() - 1) + " others";
  }
  return {"all cgroups", text.empty(), text};
}

void CutFiles::add(const CgroupPath& path, KernelFile file) {
  if (count++ == 0) first = escape_name(path) + "/" + kernel_file_name(file);
}

Source kernel_files_source(const CutFiles& cut, std::uint64_t impossible_samples) {
  std::string detail;
  if (cut.count > 0)
    detail = "a file was truncated in " + std::to_string(cut.count) + " cgroups, first " +
             cut.first + "; complete lines are used, and it is read again at each tick";
  if (impossible_samples > 0)
    detail += (detail.empty() ? "" : "; ") + std::to_string(impossible_samples) +
              " samples were impossible (more than the host has, or a counter that jumped) and "
              "do not count";
  return {"kernel files", cut.count == 0, detail};
}

Source engine_files_source(const std::vector<const UnknownLabels*>& unknown) {
  if (unknown.empty()) return {kEngineFilesSource, true, ""};
  return {kEngineFilesSource, false,
          "the labels of " + std::to_string(unknown.size()) +
              " containers are not known, so that no pattern enforces them; first " +
              escape_name(unknown.front()->name) + ": " + escape_name(unknown.front()->why)};
}

}  // namespace cgphase
