#include "lab/prototypes/prototypes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/check.h"

namespace cgphase {
namespace {

// A product that should be whole may be slightly above it: 0.07 * 100.
constexpr double kRounding = 1e-9;

std::size_t at_least(double share, std::size_t count) {
  return static_cast<std::size_t>(std::ceil(share * static_cast<double>(count) - kRounding));
}

}  // namespace

Result<LengthBins> LengthBins::create(std::vector<std::uint64_t> lower_bounds) {
  if (lower_bounds.empty() || lower_bounds.front() != 1)
    return failure(ErrorKind::invalid, "length bins: the first one must begin at 1");
  if (lower_bounds.size() > kMaxLengthBins)
    return failure(ErrorKind::invalid,
                   "length bins: more than " + std::to_string(kMaxLengthBins));
  const auto fall = std::ranges::adjacent_find(lower_bounds, std::ranges::greater_equal());
  if (fall != lower_bounds.end())
    return failure(ErrorKind::invalid, "length bins: " + std::to_string(*(fall + 1)) +
                                           " is not above " + std::to_string(*fall));
  if (lower_bounds.back() > kMaxRunLength)
    return failure(ErrorKind::invalid, "length bins: " + std::to_string(lower_bounds.back()) +
                                           " is beyond " + std::to_string(kMaxRunLength));
  LengthBins bins;
  bins.lower_bounds_ = std::move(lower_bounds);
  return bins;
}

std::size_t LengthBins::of(std::uint64_t length) const {
  CHECK_INVARIANT(length >= 1);
  const auto above = std::ranges::upper_bound(lower_bounds_, length);
  return static_cast<std::size_t>(above - lower_bounds_.begin()) - 1;
}

std::uint64_t LengthBins::from(std::size_t bin) const { return lower_bounds_.at(bin); }

std::optional<std::uint64_t> LengthBins::to(std::size_t bin) const {
  if (bin + 1 >= lower_bounds_.size()) return std::nullopt;
  return lower_bounds_[bin + 1] - 1;
}

Signature signature_of(const PhaseSequence& sequence, const LengthBins& bins) {
  Signature signature;
  signature.reserve(sequence.runs.size());
  for (const PhaseRun& run : sequence.runs) signature.push_back({run.phase, bins.of(run.length)});
  return signature;
}

// ---- prototypes ----

PrototypeSet find_prototypes(std::span<const PhaseSequence> sequences, const LengthBins& bins,
                             double cover) {
  CHECK_INVARIANT(cover > 0 && cover <= 1);
  struct Group {
    std::size_t count = 0, first = 0;
  };
  std::map<Signature, Group> groups;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    Group& group = groups[signature_of(sequences[i], bins)];
    if (group.count++ == 0) group.first = i;
  }
  std::vector<std::pair<const Signature*, Group>> ranked;
  for (const auto& [signature, group] : groups) ranked.emplace_back(&signature, group);
  std::ranges::stable_sort(ranked, std::ranges::greater(),
                           [](const auto& entry) { return entry.second.count; });
  PrototypeSet set{sequences.size(), 0, groups.size(), {}};
  const std::size_t wanted = at_least(cover, sequences.size());
  for (const auto& [signature, group] : ranked) {
    if (set.covered >= wanted) break;
    set.covered += group.count;
    set.prototypes.push_back({*signature, group.count, sequences[group.first].id});
  }
  return set;
}

// ---- tree ----

namespace {

struct Course {
  const PhaseSequence* sequence = nullptr;
  Signature signature;
};

// `courses` is sorted, and its executions agree in the first `depth` phases.
void grow(TreeNode& node, std::span<const Course> courses, std::size_t depth,
          std::size_t min_count) {
  // Executions that end here come first, because a prefix sorts before its extensions.
  while (node.ends < courses.size() && courses[node.ends].signature.size() == depth) ++node.ends;
  courses = courses.subspan(node.ends);
  while (!courses.empty()) {
    const BinnedPhase label = courses.front().signature[depth];
    std::size_t count = 0;
    std::uint64_t steps = 0;
    for (; count < courses.size() && courses[count].signature[depth] == label; ++count)
      steps += courses[count].sequence->runs[depth].length;
    if (count < min_count || depth >= kMaxTreeDepth) {
      node.rest += count;
    } else {
      TreeNode& child = node.children.emplace_back();
      child.label = label;
      child.count = count;
      child.steps = steps;
      grow(child, courses.first(count), depth + 1, min_count);
    }
    courses = courses.subspan(count);
  }
  std::ranges::stable_sort(node.children, std::ranges::greater(), &TreeNode::count);
}

}  // namespace

TreeNode phase_tree(std::span<const PhaseSequence> sequences, const LengthBins& bins,
                    double min_share) {
  CHECK_INVARIANT(min_share >= kMinTreeShare && min_share <= 1);
  std::vector<Course> courses;
  courses.reserve(sequences.size());
  for (const PhaseSequence& sequence : sequences)
    courses.push_back({&sequence, signature_of(sequence, bins)});
  std::ranges::sort(courses, {}, &Course::signature);
  TreeNode root;
  root.count = sequences.size();
  grow(root, courses, 0, at_least(min_share, sequences.size()));
  return root;
}

// ---- chain ----

namespace {

using Lengths = std::vector<std::uint64_t>;

Dwell dwell_of(Lengths& lengths) {
  if (lengths.empty()) return {};
  std::ranges::sort(lengths);
  std::uint64_t sum = 0;
  for (const std::uint64_t length : lengths) sum += length;
  const auto quantile = [&](std::size_t percent) {
    return lengths[(lengths.size() * percent + 99) / 100 - 1];
  };
  return {static_cast<double>(sum) / static_cast<double>(lengths.size()),
          lengths.front(), quantile(10), quantile(50), quantile(90), lengths.back()};
}

// Runs of one state, grouped by the next state. Runs of the start have length 0.
using Exits = std::map<int, Lengths>;

ChainState state_of(int state, Exits& exits) {
  ChainState out;
  out.state = state;
  Lengths all;
  for (const auto& [to, lengths] : exits) all.insert(all.end(), lengths.begin(), lengths.end());
  out.visits = all.size();
  for (const std::uint64_t length : all) out.steps += length;
  out.dwell = dwell_of(all);
  const auto visits = static_cast<double>(out.visits);
  // The start takes no steps.
  const double steps = state == kStartState ? visits : static_cast<double>(out.steps);
  out.stay = (steps - visits) / steps;
  for (auto& [to, lengths] : exits) {
    const auto count = static_cast<double>(lengths.size());
    out.transitions.push_back(
        {to, lengths.size(), count / visits, count / steps, dwell_of(lengths)});
  }
  std::ranges::stable_sort(out.transitions, std::ranges::greater(),
                           &ChainState::Transition::count);
  return out;
}

}  // namespace

std::vector<ChainState> phase_chain(std::span<const PhaseSequence> sequences) {
  std::vector<Exits> exits(kChainStates);
  for (const PhaseSequence& sequence : sequences) {
    PhaseRun before{kStartState, 0};
    for (const PhaseRun& run : sequence.runs) {
      exits[static_cast<std::size_t>(before.phase)][run.phase].push_back(before.length);
      before = run;
    }
    exits[static_cast<std::size_t>(before.phase)][kEndState].push_back(before.length);
  }
  std::vector<ChainState> chain;
  const auto append = [&](int state) {
    Exits& out = exits[static_cast<std::size_t>(state)];
    if (!out.empty()) chain.push_back(state_of(state, out));
  };
  append(kStartState);
  for (int phase = 0; phase <= kUnknownPhase; ++phase) append(phase);
  return chain;
}

}  // namespace cgphase
