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

Source descriptors_source(const TrackedList& containers) {
  const bool starved = std::ranges::any_of(
      containers, [](const auto& one) { return one->files.short_of_descriptors(); });
  return {"descriptors", !starved,
          starved ? "files could not be opened: raise the limit of open files (LimitNOFILE=)" : ""};
}

Source kernel_files_source(const TrackedList& containers, std::uint64_t impossible_samples) {
  std::size_t count = 0;
  std::string first, detail;
  for (const auto& one : containers)
    if (const auto file = one->files.cut_file(); file && count++ == 0)
      first = escape_name(one->path) + "/" + kernel_file_name(*file);
  if (count > 0)
    detail = "a file was truncated in " + std::to_string(count) + " cgroups, first " + first +
             "; complete lines are used, and it is read again at each tick";
  if (impossible_samples > 0)
    detail += (detail.empty() ? "" : "; ") + std::to_string(impossible_samples) +
              " samples were impossible (more than the host has, or a counter that jumped) and "
              "do not count";
  return {"kernel files", count == 0, detail};
}

Source engine_files_source(const UnlabelledMap& containers) {
  if (containers.empty()) return {kEngineFilesSource, true, ""};
  const Unlabelled& first = containers.begin()->second;
  return {kEngineFilesSource, false,
          "the labels of " + std::to_string(containers.size()) +
              " containers are not known, so that no pattern enforces them; first " +
              escape_name(first.name) + ": " + escape_name(first.why)};
}

}  // namespace cgphase
