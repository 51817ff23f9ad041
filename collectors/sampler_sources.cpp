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

}  // namespace cgphase
