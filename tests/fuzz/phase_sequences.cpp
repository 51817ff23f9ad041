// read_phase_sequences: a refusal names file and line. Accepted sequences keep the promises of
// model/phase_sequence.h, are the same when written and read again, and add up as a tree.
#include "model/phase_sequence_reader.h"

#include "lab/prototypes/prototypes.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/refusal.h"

using namespace cgphase;

namespace {

void check_runs(const PhaseSequence& sequence) {
  int before = -1;
  CHECK_INVARIANT(!sequence.runs.empty());
  for (const PhaseRun& run : sequence.runs) {
    CHECK_INVARIANT(run.phase >= 0 && run.phase <= kUnknownPhase && run.length > 0);
    CHECK_INVARIANT(run.phase != before);
    before = run.phase;
  }
}

// A run that is longer than a file allows is written in pieces.
std::string written(const std::vector<PhaseSequence>& sequences) {
  std::string text = "phase_runs\n";
  for (const PhaseSequence& sequence : sequences) {
    for (const PhaseRun& run : sequence.runs)
      for (std::uint64_t left = run.length; left > 0;) {
        const std::uint64_t piece = std::min(left, kMaxRunLength);
        text += run.phase == kUnknownPhase ? "?" : std::to_string(run.phase);
        text += ':' + std::to_string(piece) + ' ';
        left -= piece;
      }
    text += '\n';
  }
  return text;
}

void check_tree(const TreeNode& node) {
  std::size_t count = node.ends + node.rest;
  for (const TreeNode& child : node.children) {
    check_tree(child);
    count += child.count;
  }
  CHECK_INVARIANT(count == node.count);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const MemoryFile file;
  file.write(bytes, size);
  PhaseSequences sequences, copy;
  if (const Status read = read_phase_sequences(file.path(), sequences); !read) {
    check_refusal(read.error(), file.path(), "");
    return 0;
  }
  const std::vector<PhaseSequence>& all = sequences.with_phases();
  for (const PhaseSequence& sequence : all) check_runs(sequence);
  if (all.empty()) return 0;
  file.write(written(all));
  CHECK_INVARIANT(read_phase_sequences(file.path(), copy).has_value());
  CHECK_INVARIANT(copy.with_phases().size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    CHECK_INVARIANT(copy.with_phases()[i].runs == all[i].runs);
  check_tree(phase_tree(all, {}, kMinTreeShare));
  const PrototypeSet prototypes = find_prototypes(all, {}, 1);
  CHECK_INVARIANT(prototypes.covered == all.size());
  for (const ChainState& state : phase_chain(all)) CHECK_INVARIANT(state.visits > 0);
  return 0;
}
