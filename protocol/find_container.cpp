// find_container() of protocol/report.h.
#include <algorithm>
#include <functional>

#include "base/text.h"
#include "protocol/report.h"

namespace cgphase {
namespace {

using Containers = std::span<const ContainerInfo* const>;

constexpr std::size_t kShortestIdPrefix = 4;
constexpr std::size_t kNamesInError = 4;
constexpr std::size_t kShownName = 128;
// The most pairs of letters compared for a hint: a millisecond in the sampling thread.
constexpr std::size_t kMostCompared = 1 << 18;

std::vector<std::size_t> matching(Containers containers,
                                  const std::function<bool(const ContainerInfo&)>& matches) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < containers.size(); ++i)
    if (matches(*containers[i])) found.push_back(i);
  return found;
}

std::string label(const ContainerInfo& container) {
  return escape_name(container.name) + " (" + escape_name(container.engine_id.substr(0, 12)) + ")";
}

std::unexpected<Error> ambiguous(Containers containers, std::span<const std::size_t> found,
                                 std::string_view text) {
  std::string names;
  for (const std::size_t index : found.first(std::min(found.size(), kNamesInError)))
    names += (names.empty() ? "" : ", ") + label(*containers[index]);
  if (found.size() > kNamesInError) names += ", ...";
  return failure(ErrorKind::invalid, "'" + escape_name(text.substr(0, kShownName)) + "' names " +
                                         std::to_string(found.size()) + " containers: " + names +
                                         "; give more of the id, or the path");
}

std::unexpected<Error> missing(Containers containers, std::string_view text) {
  const std::string_view shown = text.substr(0, kShownName);
  std::vector<std::string_view> names;
  std::size_t compared = 0;
  for (const ContainerInfo* container : containers) {
    if (container->name.size() > kShownName) continue;
    compared += shown.size() * container->name.size();
    if (compared > kMostCompared) break;
    names.emplace_back(container->name);
  }
  const std::string_view close = nearest(shown, names);
  const std::string hint = close.empty() ? "; 'cgphase list' shows those there are"
                                         : "; did you mean '" + escape_name(close) + "'?";
  return failure(ErrorKind::not_found, "no container '" + printable(shown) + "'" + hint);
}

}  // namespace

Result<std::size_t> find_container(Containers containers, std::string_view text) {
  const std::string raw = unescape_name(text);
  const auto is = [&](const std::string& value) { return value == text || value == raw; };
  const auto id_begins = [&](const ContainerInfo& container) {
    return text.size() >= kShortestIdPrefix && container.engine_id.starts_with(text);
  };
  const std::function<bool(const ContainerInfo&)> ways[] = {
      [&](const ContainerInfo& container) { return is(container.name); },
      [&](const ContainerInfo& container) { return is(container.path); },
      [&](const ContainerInfo& container) { return is(container.engine_id); },
      id_begins,
  };
  for (const auto& way : ways) {
    const std::vector<std::size_t> found = matching(containers, way);
    if (found.size() == 1) return found.front();
    if (found.size() > 1) return ambiguous(containers, found, text);
  }
  return missing(containers, text);
}

Result<std::size_t> find_container(std::span<const ContainerReport> reports,
                                   std::string_view text) {
  std::vector<const ContainerInfo*> containers;
  containers.reserve(reports.size());
  for (const ContainerReport& report : reports) containers.push_back(&report.container);
  return find_container(containers, text);
}

}  // namespace cgphase
