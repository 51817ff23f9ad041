// Common patterns in the phase sequences of many executions: prototypes, the probabilistic tree,
// and the chain of phases. After AI4DL (Buchaca et al., HotCloud'20), which bins the lengths of
// phases, so that similar executions get the same sequence. Pure.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/phase_sequence.h"

namespace cgphase {

// ---- signatures ----

inline constexpr std::size_t kMaxLengthBins = 32;

// Bin i contains the lengths from its lower bound to below the lower bound of bin i + 1. The last
// bin is open.
class LengthBins {
 public:
  LengthBins() = default;  // 1-9, 10-99, 100-999, 1000 and more
  // Lower bounds in steps. Errors: invalid (not rising from 1, too many, beyond kMaxRunLength).
  static Result<LengthBins> create(std::vector<std::uint64_t> lower_bounds);

  std::size_t count() const { return lower_bounds_.size(); }
  std::size_t of(std::uint64_t length) const;                   // length >= 1
  std::uint64_t from(std::size_t bin) const;                    // shortest length
  std::optional<std::uint64_t> to(std::size_t bin) const;       // longest; absent for the last bin

 private:
  std::vector<std::uint64_t> lower_bounds_ = {1, 10, 100, 1000};
};

// A phase (0..kUnknownPhase) and the bin of its length.
struct BinnedPhase {
  int phase = 0;
  std::size_t bin = 0;
  friend auto operator<=>(const BinnedPhase&, const BinnedPhase&) = default;
};

// An execution in the form in which executions are compared.
using Signature = std::vector<BinnedPhase>;
Signature signature_of(const PhaseSequence& sequence, const LengthBins& bins);

// ---- prototypes ----

struct Prototype {
  Signature signature;
  std::size_t count = 0;  // executions of this signature
  std::string example;    // the first such execution
};

struct PrototypeSet {
  std::size_t executions = 0, covered = 0, distinct = 0;  // distinct: number of signatures
  std::vector<Prototype> prototypes;                      // by descending count, then by signature
};

// Returns the fewest signatures that together cover at least the share `cover` (above 0, at most 1)
// of the executions. Signatures are disjoint, so these are the most frequent ones.
PrototypeSet find_prototypes(std::span<const PhaseSequence> sequences, const LengthBins& bins,
                             double cover);

// ---- tree ----

inline constexpr double kMinTreeShare = 0.001;    // smallest allowed minimum share of a branch
inline constexpr std::size_t kMaxTreeDepth = 64;  // together they bound the nodes to 64,000

// A node represents the executions that begin with the path from the root to it: count == ends +
// rest + the children's counts.
struct TreeNode {
  BinnedPhase label;        // meaningless in the root, which represents all executions
  std::size_t count = 0;
  std::size_t ends = 0;     // executions that end after this phase
  std::size_t rest = 0;     // executions in branches that are too small or too deep to keep
  std::uint64_t steps = 0;  // in this phase, over all `count` executions
  std::vector<TreeNode> children;  // by falling count, then by label
};

// Builds the tree from branches with at least `min_share` (kMinTreeShare..1) of all executions.
TreeNode phase_tree(std::span<const PhaseSequence> sequences, const LengthBins& bins,
                    double min_share);

// ---- chain ----

// States of the chain besides the phases and kUnknownPhase.
inline constexpr int kStartState = kUnknownPhase + 1;
inline constexpr int kEndState = kUnknownPhase + 2;  // the execution or its recording ended
inline constexpr int kChainStates = kUnknownPhase + 3;

// Lengths of the runs of a phase, in steps. The q-quantile of n runs is the length of the ceil(q
// n)-th shortest.
struct Dwell {
  double mean = 0;
  std::uint64_t min = 0, p10 = 0, p50 = 0, p90 = 0, max = 0;
};

// A Markov chain per step (`stay` and `leave`), and a semi-Markov chain whose jumps (`jump`) follow
// dwell times.
struct ChainState {
  struct Transition {
    int to = 0;
    std::size_t count = 0;
    double jump = 0;   // probability that `to` follows when the state is left
    double leave = 0;  // probability that a step of the state is followed by one of `to`
    Dwell dwell;       // of the runs that `to` followed; zeros for the start
  };
  int state = 0;
  std::size_t visits = 0;   // runs; executions for the start
  std::uint64_t steps = 0;  // 0 for the start
  double stay = 0;          // probability that a step is followed by one of the same phase
  Dwell dwell;
  std::vector<Transition> transitions;  // by falling count, then by state
};

// Returns the start, then every phase that was seen, in order. For each state, the sum of `jump` is
// 1, and so is the sum of `stay` and `leave`.
std::vector<ChainState> phase_chain(std::span<const PhaseSequence> sequences);

}  // namespace cgphase
