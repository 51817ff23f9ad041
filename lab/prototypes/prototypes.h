// What the phase sequences of many executions have in common: prototypes, the probabilistic tree,
// and the chain of phases. After AI4DL (Buchaca et al., HotCloud'20), which bins the lengths of
// phases so that executions of about the same course become the same sequence. Pure.
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

// Bin i holds the lengths from its lower bound to below that of bin i + 1; the last one is open.
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

// An execution as it is compared with others.
using Signature = std::vector<BinnedPhase>;
Signature signature_of(const PhaseSequence& sequence, const LengthBins& bins);

// ---- prototypes ----

struct Prototype {
  Signature signature;
  std::size_t count = 0;  // executions of this signature
  std::string example;    // the first of them
};

struct PrototypeSet {
  std::size_t executions = 0, covered = 0, distinct = 0;  // distinct: signatures in all
  std::vector<Prototype> prototypes;                      // by falling count, then by signature
};

// The fewest signatures that together cover at least the share `cover` (above 0, at most 1) of the
// executions: signatures are disjoint, so these are the most frequent ones.
PrototypeSet find_prototypes(std::span<const PhaseSequence> sequences, const LengthBins& bins,
                             double cover);

// ---- tree ----

inline constexpr double kMinTreeShare = 0.001;    // the smallest branch that may be asked for
inline constexpr std::size_t kMaxTreeDepth = 64;  // with it a bound on the nodes: 64,000

// A node stands for the executions that begin with the path from the root to it:
// count == ends + rest + the children's counts.
struct TreeNode {
  BinnedPhase label;        // meaningless in the root, which stands for all executions
  std::size_t count = 0;
  std::size_t ends = 0;     // executions that are over after this phase
  std::size_t rest = 0;     // executions that go on into branches too small or too deep to keep
  std::uint64_t steps = 0;  // in this phase, over all `count` executions
  std::vector<TreeNode> children;  // by falling count, then by label
};

// Keeps the branches that hold at least `min_share` (kMinTreeShare..1) of all executions.
TreeNode phase_tree(std::span<const PhaseSequence> sequences, const LengthBins& bins,
                    double min_share);

// ---- chain ----

// States of the chain beside the phases and kUnknownPhase.
inline constexpr int kStartState = kUnknownPhase + 1;
inline constexpr int kEndState = kUnknownPhase + 2;  // the execution, or its record, was over
inline constexpr int kChainStates = kUnknownPhase + 3;

// How long the runs of a phase were, in steps. A quantile q of n runs is the length of the
// ceil(q n)-th shortest.
struct Dwell {
  double mean = 0;
  std::uint64_t min = 0, p10 = 0, p50 = 0, p90 = 0, max = 0;
};

// A Markov chain with steps as its clock (`stay` and `leave`), and a semi-Markov chain whose jumps
// (`jump`) come after dwell times of their own.
struct ChainState {
  struct Transition {
    int to = 0;
    std::size_t count = 0;
    double jump = 0;   // probability that this is where the state is left to
    double leave = 0;  // probability that a step of the state is followed by one of `to`
    Dwell dwell;       // of the runs that went there; zeros from the start
  };
  int state = 0;
  std::size_t visits = 0;   // runs; executions for the start
  std::uint64_t steps = 0;  // none in the start
  double stay = 0;          // probability that a step is followed by one of the same phase
  Dwell dwell;
  std::vector<Transition> transitions;  // by falling count, then by state
};

// The start, then every phase that was seen, in order. Sums of `jump`, and of `stay` and `leave`,
// are 1 for each.
std::vector<ChainState> phase_chain(std::span<const PhaseSequence> sequences);

}  // namespace cgphase
