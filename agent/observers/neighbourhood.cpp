#include "agent/observers/neighbourhood.h"

#include <utility>

#include "collectors/cgroup_tree.h"

namespace cgphase {
namespace {

// Of one kind or more; a host may have a hundred of the same.
constexpr std::size_t kMostTold = 4;

bool forbids(const Neighbour& neighbour) {
  return neighbour.name->kind == NeighbourKind::manager ||
         neighbour.name->kind == NeighbourKind::copy;
}

bool kills(const Neighbour& neighbour) { return !forbids(neighbour); }

// One of each name, "A (pid 7), B (pid 9)".
template <class Wanted>
std::string tell(const Neighbours& neighbours, Wanted wanted) {
  std::string text;
  std::size_t told = 0;
  const NeighbourName* last = nullptr;
  for (const Neighbour& neighbour : neighbours.seen) {
    if (!wanted(neighbour) || std::exchange(last, neighbour.name) == neighbour.name) continue;
    if (told++ == kMostTold) return text + ", and more";
    text += (text.empty() ? "" : ", ") + describe(neighbour);
  }
  return text;
}

}  // namespace

bool Neighbourhood::look(MonotonicTime now) {
  const bool fresh = looked_ && error_.empty() && now >= *looked_ && now - *looked_ < kPeriod;
  if (!std::exchange(asked_, false) && fresh) return false;
  Result<Neighbours> found = find_neighbours(proc_root_, &kernel_threads_, above_root_);
  if (found) {
    found_ = std::move(*found);
    looked_ = now;
    error_.clear();
  } else {
    error_ = found.error().text;
  }
  judge();
  return found.has_value();
}

void Neighbourhood::judge() {
  killer_ = false;
  monitored_.clear();
  for (const Neighbour& neighbour : found_.seen) {
    killer_ = killer_ || neighbour.name->kind == NeighbourKind::killer;
    if (neighbour.name->kind != NeighbourKind::monitor) continue;
    std::size_t end = 0;
    for (std::size_t level = 0; level < kMaxCgroupDepth && end != std::string::npos; ++level) {
      end = neighbour.cgroup.find('/', end + 1);
      monitored_.insert(neighbour.cgroup.substr(0, end));
    }
  }
  standing_down_ = tell(found_, forbids);
  if (standing_down_.empty() && !looked_)
    standing_down_ = "who else manages limits here is not known: " + error_;
}

bool Neighbourhood::wants_margin(const CgroupPath& container) const {
  return killer_ || monitored_.contains(container);
}

Source Neighbourhood::source() const {
  Source source{"neighbours", error_.empty() && found_.complete, tell(found_, kills)};
  if (!error_.empty())
    source.detail = "who else acts on limits here cannot be seen: " + error_;
  else if (!found_.complete)
    source.detail = "more than " + std::to_string(kMostProcesses) + " processes or " +
                    std::to_string(kMostMonitors) + " monitors in containers: the rest is not seen";
  return source;
}

}  // namespace cgphase
