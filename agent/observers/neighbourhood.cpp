#include "agent/observers/neighbourhood.h"

#include <utility>

#include "collectors/cgroup_tree.h"

namespace cgphase {
namespace {

constexpr std::size_t kMostNamed = 4;

bool forbids(const Neighbour& neighbour) {
  return neighbour.name->kind == NeighbourKind::manager ||
         neighbour.name->kind == NeighbourKind::copy;
}

bool allows(const Neighbour& neighbour) { return !forbids(neighbour); }

// Returns one of each name: "A (pid 7), B (pid 9)".
template <class Wanted>
std::string names_of(const Neighbours& neighbours, Wanted wanted) {
  std::string text;
  std::size_t named = 0;
  const NeighbourName* last = nullptr;
  for (const Neighbour& neighbour : neighbours.seen) {
    if (!wanted(neighbour) || std::exchange(last, neighbour.name) == neighbour.name) continue;
    if (named++ == kMostNamed) return text + ", and more";
    text += (text.empty() ? "" : ", ") + describe(neighbour);
  }
  return text;
}

}  // namespace

bool Neighbourhood::scan(MonotonicTime now) {
  const bool fresh = scanned_ && error_.empty() && now >= *scanned_ && now - *scanned_ < kPeriod;
  if (!std::exchange(requested_, false) && fresh) return false;
  Result<Neighbours> found = find_neighbours(proc_root_, &kernel_threads_, above_root_);
  if (found) {
    found_ = std::move(*found);
    scanned_ = now;
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
  standing_down_ = names_of(found_, forbids);
  if (standing_down_.empty() && !scanned_)
    standing_down_ = "other managers of limits cannot be detected: " + error_;
}

bool Neighbourhood::wants_margin(const CgroupPath& container) const {
  return killer_ || monitored_.contains(container);
}

Source Neighbourhood::source() const {
  Source source{"neighbours", error_.empty() && found_.complete, names_of(found_, allows)};
  if (!error_.empty())
    source.detail = "other managers of limits cannot be detected: " + error_;
  else if (!found_.complete)
    source.detail = "more than " + std::to_string(kMostProcesses) + " processes or " +
                    std::to_string(kMostMonitors) + " monitors in containers: the rest is ignored";
  return source;
}

}  // namespace cgphase
