#include "lab/prototypes/prototypes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "model/phase_sequence_reader.h"
#include "model/train/random.h"
#include "tests/model/test_data.h"

using namespace cgphase;

namespace {

LengthBins bins_of(std::vector<std::uint64_t> bounds) {
  Result<LengthBins> bins = LengthBins::create(std::move(bounds));
  REQUIRE(bins);
  return *bins;
}

std::string bins_refusal(std::vector<std::uint64_t> bounds) {
  const Result<LengthBins> bins = LengthBins::create(std::move(bounds));
  return bins ? "accepted" : bins.error().text;
}

// With 1-4 short and 5 up long: a and b are alike, c is longer, d takes another course, e ends
// early.
const std::vector<PhaseSequence> kFive = {{"a", {{0, 2}, {1, 5}}},
                                          {"b", {{0, 4}, {1, 9}}},
                                          {"c", {{0, 3}, {1, 6}, {0, 1}}},
                                          {"d", {{1, 1}}},
                                          {"e", {{0, 1}}}};
const LengthBins kShortLong = *LengthBins::create({1, 5});

std::vector<PhaseSequence> random_sequences(std::uint64_t seed, std::size_t count) {
  Random random(seed);
  std::vector<PhaseSequence> sequences(count);
  for (std::size_t i = 0; i < count; ++i) {
    sequences[i].id = std::to_string(i);
    const std::size_t runs = 1 + random.below(6);
    for (std::size_t run = 0; run < runs; ++run)
      sequences[i].add({static_cast<int>(random.below(3)), 1 + random.below(30)});
  }
  return sequences;
}

const ChainState& state_named(const std::vector<ChainState>& chain, int state) {
  const auto found = std::ranges::find(chain, state, &ChainState::state);
  REQUIRE(found != chain.end());
  return *found;
}

const ChainState::Transition& exit_to(const ChainState& state, int to) {
  const auto found = std::ranges::find(state.transitions, to, &ChainState::Transition::to);
  REQUIRE(found != state.transitions.end());
  return *found;
}

}  // namespace

TEST_CASE("a length is in the last bin that begins at or below it") {
  const LengthBins bins = bins_of({1, 5, 20});
  CHECK(bins.of(1) == 0);
  CHECK(bins.of(4) == 0);
  CHECK(bins.of(5) == 1);
  CHECK(bins.of(19) == 1);
  CHECK(bins.of(20) == 2);
  CHECK(bins.of(kMaxRunLength) == 2);
  CHECK(bins.from(1) == 5);
  CHECK(bins.to(1) == 19);
  CHECK(!bins.to(2));
}

TEST_CASE("bins that do not rise from 1 within their bounds are refused") {
  CHECK(bins_refusal({}) == "length bins: the first one must begin at 1");
  CHECK(bins_refusal({2, 3}) == "length bins: the first one must begin at 1");
  CHECK(bins_refusal({1, 4, 4}) == "length bins: 4 is not above 4");
  CHECK(bins_refusal({1, 4, 3}) == "length bins: 3 is not above 4");
  CHECK(bins_refusal({1, kMaxRunLength}) == "accepted");
  CHECK(bins_refusal({1, kMaxRunLength + 1}) == "length bins: 1000000001 is beyond 1000000000");
  std::vector<std::uint64_t> many(kMaxLengthBins);
  std::iota(many.begin(), many.end(), 1);
  CHECK(bins_refusal(many) == "accepted");
  many.push_back(100);
  CHECK(bins_refusal(many) == "length bins: more than 32");
}

TEST_CASE("a signature is the phases with the bins of their lengths") {
  CHECK(signature_of(kFive[2], kShortLong) == Signature{{0, 0}, {1, 1}, {0, 0}});
}

// ---- prototypes ----

TEST_CASE("prototypes are the most frequent signatures, with the first execution of each") {
  const PrototypeSet set = find_prototypes(kFive, kShortLong, 0.6);
  CHECK(set.executions == 5);
  CHECK(set.distinct == 4);
  CHECK(set.covered == 3);
  REQUIRE(set.prototypes.size() == 2);
  CHECK(set.prototypes[0].signature == Signature{{0, 0}, {1, 1}});
  CHECK(set.prototypes[0].count == 2);
  CHECK(set.prototypes[0].example == "a");
  // Of the three that occur once, the first in order: a prefix sorts before its extensions.
  CHECK(set.prototypes[1].signature == Signature{{0, 0}});
  CHECK(set.prototypes[1].example == "e");
}

TEST_CASE("a share that is reached exactly needs no further prototype") {
  CHECK(find_prototypes(kFive, kShortLong, 0.4).prototypes.size() == 1);
  CHECK(find_prototypes(kFive, kShortLong, 0.41).prototypes.size() == 2);
  CHECK(find_prototypes(kFive, kShortLong, 1).prototypes.size() == 4);
}

TEST_CASE("rounding of a share does not require one more execution") {
  REQUIRE(0.07 * 100 > 7);
  std::vector<PhaseSequence> sequences(7, {"", {{0, 1}}});
  for (int i = 0; i < 93; ++i) {  // all different
    PhaseSequence other;
    for (int run = 0; run <= i / 31; ++run) other.add({run % 2 == 0 ? 1 + i % 31 : 0, 1});
    sequences.push_back(other);
  }
  const PrototypeSet set = find_prototypes(sequences, LengthBins{}, 0.07);
  CHECK(set.distinct == 94);
  CHECK(set.covered == 7);
}

TEST_CASE("with one bin only the order of the phases matters") {
  CHECK(find_prototypes(kFive, bins_of({1}), 1).distinct == 4);
  const std::vector<PhaseSequence> same = {{"", {{0, 1}}}, {"", {{0, 99}}}};
  CHECK(find_prototypes(same, bins_of({1}), 1).distinct == 1);
}

TEST_CASE("more cover never needs fewer prototypes, and none is redundant") {
  const auto sequences = random_sequences(3, 300);
  std::size_t before = 0;
  for (const double cover : {0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0}) {
    const PrototypeSet set = find_prototypes(sequences, LengthBins{}, cover);
    CHECK(set.prototypes.size() >= before);
    before = set.prototypes.size();
    CHECK(static_cast<double>(set.covered) >= cover * 300 - 1e-6);
    const std::size_t least = set.prototypes.back().count;
    CHECK(static_cast<double>(set.covered - least) < cover * 300);
    CHECK(std::ranges::is_sorted(set.prototypes, std::ranges::greater(), &Prototype::count));
  }
  CHECK(find_prototypes(sequences, LengthBins{}, 1).covered == 300);
}

// ---- tree ----

TEST_CASE("a node counts the executions that begin with its path") {
  const TreeNode root = phase_tree(kFive, kShortLong, kMinTreeShare);
  CHECK(root.count == 5);
  CHECK(root.ends == 0);
  REQUIRE(root.children.size() == 2);
  const TreeNode& first = root.children[0];
  CHECK(first.label == BinnedPhase{0, 0});
  CHECK(first.count == 4);
  CHECK(first.ends == 1);           // e
  CHECK(first.steps == 10);         // 2 + 4 + 3 + 1
  REQUIRE(first.children.size() == 1);
  const TreeNode& second = first.children[0];
  CHECK(second.label == BinnedPhase{1, 1});
  CHECK(second.count == 3);
  CHECK(second.ends == 2);          // a and b
  CHECK(second.steps == 20);        // 5 + 9 + 6
  REQUIRE(second.children.size() == 1);
  CHECK(second.children[0].ends == 1);
  CHECK(root.children[1].label == BinnedPhase{1, 0});
  CHECK(root.children[1].ends == 1);
}

TEST_CASE("branches below the share are counted as the rest") {
  const TreeNode root = phase_tree(kFive, kShortLong, 0.4);
  REQUIRE(root.children.size() == 1);
  CHECK(root.rest == 1);
  const TreeNode& second = root.children[0].children[0];
  CHECK(second.children.empty());
  CHECK(second.rest == 1);
}

TEST_CASE("the tree ends at its greatest depth") {
  PhaseSequence longest{"", {}};
  for (std::size_t i = 0; i < kMaxTreeDepth + 1; ++i) longest.add({static_cast<int>(i % 2), 1});
  const TreeNode root = phase_tree(std::vector{longest}, LengthBins{}, 1);
  const TreeNode* node = &root;
  std::size_t depth = 0;
  for (; !node->children.empty(); node = &node->children[0]) ++depth;
  CHECK(depth == kMaxTreeDepth);
  CHECK(node->ends == 0);
  CHECK(node->rest == 1);
}

namespace {

// Checks the invariants of every node, and compares with a count over all sequences.
void check_node(const TreeNode& node, const std::vector<Signature>& signatures, Signature& path,
                double least) {
  std::size_t sum = node.ends + node.rest, begin = 0, same = 0;
  for (const TreeNode& child : node.children) sum += child.count;
  CHECK(sum == node.count);
  for (const Signature& signature : signatures) {
    if (signature.size() < path.size() ||
        !std::equal(path.begin(), path.end(), signature.begin()))
      continue;
    ++begin;
    same += signature.size() == path.size();
  }
  CHECK(node.count == begin);
  CHECK(node.ends == same);
  CHECK(static_cast<double>(node.count) >= least);
  CHECK(std::ranges::is_sorted(node.children, std::ranges::greater(), &TreeNode::count));
  for (const TreeNode& child : node.children) {
    path.push_back(child.label);
    check_node(child, signatures, path, least);
    path.pop_back();
  }
}

}  // namespace

TEST_CASE("every node agrees with a count over all sequences") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    CAPTURE(seed);
    const auto sequences = random_sequences(seed, 200);
    std::vector<Signature> signatures;
    for (const PhaseSequence& sequence : sequences)
      signatures.push_back(signature_of(sequence, LengthBins{}));
    for (const double share : {kMinTreeShare, 0.01, 0.1}) {
      Signature path;
      check_node(phase_tree(sequences, LengthBins{}, share), signatures, path, share * 200 - 1e-6);
    }
  }
}

// ---- chain ----

TEST_CASE("the chain counts jumps, steps and dwell times") {
  const std::vector<ChainState> chain = phase_chain(kFive);
  REQUIRE(chain.size() == 3);
  const ChainState& start = chain[0];
  CHECK(start.state == kStartState);
  CHECK(start.visits == 5);
  CHECK(start.stay == 0);
  CHECK(exit_to(start, 0).jump == 0.8);
  CHECK(exit_to(start, 0).leave == 0.8);
  CHECK(exit_to(start, 1).count == 1);

  const ChainState& zero = chain[1];  // runs of 2, 4, 3, 1 and 1
  CHECK(zero.visits == 5);
  CHECK(zero.steps == 11);
  CHECK(zero.stay == 6.0 / 11);
  CHECK(zero.dwell.mean == 2.2);
  CHECK(zero.dwell.min == 1);
  CHECK(zero.dwell.p10 == 1);
  CHECK(zero.dwell.p50 == 2);
  CHECK(zero.dwell.p90 == 4);
  CHECK(zero.dwell.max == 4);
  CHECK(zero.transitions[0].to == 1);
  const ChainState::Transition& on = exit_to(zero, 1);  // after 2, 4 and 3
  CHECK(on.count == 3);
  CHECK(on.jump == 0.6);
  CHECK(on.leave == 3.0 / 11);
  CHECK(on.dwell.mean == 3);
  CHECK(on.dwell.p50 == 3);
  CHECK(exit_to(zero, kEndState).dwell.max == 1);

  const ChainState& one = chain[2];
  CHECK(exit_to(one, 0).count == 1);
  CHECK(exit_to(one, 0).dwell.p50 == 6);
  CHECK(exit_to(one, kEndState).count == 3);
}

TEST_CASE("a quantile is the shortest length that this share of runs does not exceed") {
  std::vector<PhaseSequence> sequences;
  for (std::uint64_t length = 1; length <= 11; ++length)
    sequences.push_back({"", {{kUnknownPhase, length}}});
  const Dwell eleven = state_named(phase_chain(sequences), kUnknownPhase).dwell;
  CHECK(eleven.p10 == 2);  // ceil(1.1)
  CHECK(eleven.p50 == 6);
  CHECK(eleven.p90 == 10);
  sequences.pop_back();
  const Dwell ten = state_named(phase_chain(sequences), kUnknownPhase).dwell;
  CHECK(ten.p10 == 1);
  CHECK(ten.p50 == 5);
  CHECK(ten.p90 == 9);
}

TEST_CASE("probabilities add up to one, and a state is entered as often as left") {
  for (const std::uint64_t seed : {4U, 5U, 6U}) {
    CAPTURE(seed);
    const auto sequences = random_sequences(seed, 150);
    std::map<int, std::size_t> come, go;
    for (const ChainState& state : phase_chain(sequences)) {
      double jump = 0, step = state.stay;
      for (const ChainState::Transition& transition : state.transitions) {
        jump += transition.jump;
        step += transition.leave;
        come[transition.to] += transition.count;
        go[state.state] += transition.count;
        CHECK(transition.dwell.min <= transition.dwell.p50);
        CHECK(transition.dwell.p90 <= state.dwell.max);
      }
      CHECK(jump == doctest::Approx(1).epsilon(1e-12));
      CHECK(step == doctest::Approx(1).epsilon(1e-12));
      CHECK(go[state.state] == state.visits);
    }
    CHECK(come[kEndState] == 150);
    CHECK(go[kStartState] == 150);
    for (int phase = 0; phase < 3; ++phase) CHECK(come[phase] == go[phase]);
  }
}

TEST_CASE("no sequences give no prototype, no branch and no state") {
  CHECK(find_prototypes({}, LengthBins{}, 1).prototypes.empty());
  CHECK(phase_tree({}, LengthBins{}, 1).children.empty());
  CHECK(phase_chain({}).empty());
}

// ---- 561 executions of AI4DL's fleet; the expected numbers were counted with awk and sort ----

namespace {

std::vector<PhaseSequence> fleet() {
  const std::string path = test_data("ai4dl/fleet_phase_sequences.csv");
  if (path.empty()) return {};
  PhaseSequences sequences;
  const Status status = read_phase_sequences(path, sequences);
  if (!status) FAIL(status.error().text);
  REQUIRE(sequences.with_phases().size() == 561);
  return sequences.with_phases();
}

}  // namespace

TEST_CASE("the chain of the fleet has the counted transitions and dwell times") {
  const auto sequences = fleet();
  if (sequences.empty()) return;
  const std::vector<ChainState> chain = phase_chain(sequences);
  REQUIRE(chain.size() == 6);
  std::uint64_t steps = 0;
  for (const ChainState& state : chain) steps += state.steps;
  CHECK(steps == 28'948);
  struct Known {
    std::size_t runs;
    std::uint64_t steps, p10, p50, p90, max;
  };
  const Known known[] = {{442, 15'846, 1, 8, 50, 1563}, {561, 2'246, 4, 4, 4, 6},
                         {771, 6'161, 1, 3, 24, 407}, {562, 2'773, 2, 5, 7, 27},
                         {131, 1'922, 1, 1, 9, 232}};
  for (int phase = 0; phase < 5; ++phase) {
    CAPTURE(phase);
    const ChainState& state = state_named(chain, phase);
    const Known& expected = known[phase];
    CHECK(state.visits == expected.runs);
    CHECK(state.steps == expected.steps);
    CHECK(state.dwell.p10 == expected.p10);
    CHECK(state.dwell.p50 == expected.p50);
    CHECK(state.dwell.p90 == expected.p90);
    CHECK(state.dwell.max == expected.max);
  }
  CHECK(exit_to(state_named(chain, kStartState), 1).count == 561);
  const ChainState& zero = state_named(chain, 0);
  CHECK(exit_to(zero, 2).count == 371);
  CHECK(exit_to(zero, 3).count == 65);
  CHECK(exit_to(zero, 4).count == 3);
  CHECK(exit_to(zero, kEndState).count == 3);
  CHECK(exit_to(zero, kEndState).dwell.mean == 415);
  CHECK(exit_to(state_named(chain, 3), kEndState).count == 300);
}

TEST_CASE("the prototypes of the fleet are the counted ones") {
  const auto sequences = fleet();
  if (sequences.empty()) return;
  const PrototypeSet set = find_prototypes(sequences, LengthBins{}, 0.9);
  CHECK(set.distinct == 82);
  CHECK(set.covered == 505);
  REQUIRE(set.prototypes.size() == 32);
  CHECK(set.prototypes[0].count == 143);
  CHECK(set.prototypes[0].signature == Signature{{1, 0}, {2, 0}});
  CHECK(set.prototypes[1].count == 51);
  CHECK(set.prototypes[1].signature == Signature{{1, 0}, {3, 0}, {0, 0}, {2, 0}, {3, 0}});
  CHECK(set.prototypes[2].count == 39);
  CHECK(set.prototypes[2].signature == Signature{{1, 0}, {3, 0}, {2, 1}, {3, 0}});
  // By order only, six sequences cover 397 of 561, 71 %, and 90 % needs 16.
  const LengthBins order = bins_of({1});
  CHECK(find_prototypes(sequences, order, 0.9).prototypes.size() == 16);
  CHECK(find_prototypes(sequences, order, 0.9).covered == 507);
  CHECK(find_prototypes(sequences, order, 1).prototypes.size() == 48);
  CHECK(find_prototypes(sequences, order, 397.0 / 561).prototypes.size() == 6);
}

TEST_CASE("the tree of the fleet has the counted branches") {
  const auto sequences = fleet();
  if (sequences.empty()) return;
  const TreeNode root = phase_tree(sequences, LengthBins{}, 0.01);
  REQUIRE(root.children.size() == 1);
  const TreeNode& warm_up = root.children[0];
  CHECK(warm_up.count == 561);
  CHECK(warm_up.steps == 2'246);
  REQUIRE(warm_up.children.size() == 5);
  const std::size_t counts[] = {285, 208, 28, 20, 14};
  const BinnedPhase labels[] = {{3, 0}, {2, 0}, {4, 0}, {0, 0}, {3, 1}};
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(warm_up.children[i].count == counts[i]);
    CHECK(warm_up.children[i].label == labels[i]);
  }
  CHECK(warm_up.rest == 6);
  CHECK(warm_up.children[1].ends == 143);
  const auto count_nodes = [](const auto& self, const TreeNode& node) -> std::size_t {
    std::size_t count = 1;
    for (const TreeNode& child : node.children) count += self(self, child);
    return count;
  };
  CHECK(count_nodes(count_nodes, root) == 38);  // the root, and 37 prefixes of 6 executions or more
}
