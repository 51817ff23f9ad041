#include "cli/replay/contest.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace cgphase {
namespace {

// Each holds what it knows of one execution in memory.
constexpr unsigned kMostThreads = 8;

// All in which the entrants of one contest can differ.
std::string key_of(const Entrant& entrant) {
  const ReplaySettings& settings = entrant.settings;
  return fmt::format("{} {} {} {} {} {}", to_string(entrant.contender.policy),
                     entrant.contender.margin, settings.risk, settings.rails,
                     settings.window_seconds, settings.step_seconds);
}

}  // namespace

std::size_t Contest::enter(const Entrant& entrant) {
  const auto [found, fresh] = places_.try_emplace(key_of(entrant), entrants_.size());
  if (fresh) entrants_.push_back(entrant);
  entrants_[found->second].keep_limits |= entrant.keep_limits;
  return found->second;
}

std::vector<std::size_t> Contest::enter_all(const std::vector<Entrant>& entrants) {
  std::vector<std::size_t> places;
  for (const Entrant& entrant : entrants) places.push_back(enter(entrant));
  return places;
}

void Contest::run(const ReplayInput& input) {
  results_.assign(entrants_.size(), ContenderResult{});
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < entrants_.size(); i = next++)
      results_[i] = replay(input, entrants_[i].settings, entrants_[i].contender,
                           entrants_[i].keep_limits);
  };
  const std::size_t processors =
      std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads);
  std::vector<std::jthread> others;
  for (std::size_t i = 1; i < std::min(processors, entrants_.size()); ++i)
    others.emplace_back(work);
  work();
}

}  // namespace cgphase
