#include "lab/replay/contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace cgphase {
namespace {

// Each worker has the state of one execution in memory.
constexpr unsigned kMostThreads = 8;

// The settings in which entrants of one contest can differ.
std::string key_of(const Entrant& entrant) {
  const ReplaySettings& settings = entrant.settings;
  return fmt::format("{} {} {} {} {} {} {}", to_string(entrant.contender.policy),
                     entrant.contender.margin, settings.risk, settings.safety,
                     settings.window_seconds, settings.step_seconds,
                     settings.loop.guard_threshold);
}

Swept swept_of(const ContenderResult& result) {
  return {sums_of(result, Resource::cpu), sums_of(result, Resource::memory)};
}

}  // namespace

std::size_t Contest::enter(const Entrant& entrant) {
  const auto [found, fresh] = places_.try_emplace(key_of(entrant), entrants_.size());
  if (fresh) entrants_.push_back(entrant);
  entrants_[found->second].keep_limits |= entrant.keep_limits;
  entrants_[found->second].swept_only &= entrant.swept_only;
  return found->second;
}

std::vector<std::size_t> Contest::enter_all(const std::vector<Entrant>& entrants) {
  std::vector<std::size_t> places;
  for (const Entrant& entrant : entrants) places.push_back(enter(entrant));
  return places;
}

Result<Swept> Contest::swept(std::size_t place) const {
  if (!results_[place]) return std::unexpected(results_[place].error());
  return entrants_[place].swept_only ? swept_[place] : swept_of(*results_[place]);
}

void Contest::run(const ReplayInput& input) {
  results_.assign(entrants_.size(), ContenderResult{});
  swept_.assign(entrants_.size(), Swept{});
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < entrants_.size(); i = next++) {
      results_[i] = replay(input, entrants_[i].settings, entrants_[i].contender,
                           entrants_[i].keep_limits);
      if (!results_[i] || !entrants_[i].swept_only) continue;
      swept_[i] = swept_of(*results_[i]);
      results_[i]->executions = std::vector<ExecutionResult>();  // frees the memory
    }
  };
  const std::size_t processors =
      std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads);
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < std::min(processors, entrants_.size()); ++i)
    others.emplace_back(work);
  work();
}

}  // namespace cgphase
