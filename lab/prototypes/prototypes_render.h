// Formats the findings of `cgphase prototypes` as -o asks for (docs/internals/lab.md). Pure: the
// same findings give the same bytes on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/prototypes/prototypes.h"

namespace cgphase {

struct PrototypesReport {
  LengthBins bins;
  double cover = 0, min_share = 0;       // as requested
  std::optional<double> step_seconds;    // absent if the step is unknown
  std::size_t without_phase_count = 0;   // executions too short for any phase
  PrototypeSet prototypes;
  TreeNode tree;
  std::vector<ChainState> chain;
};

enum class Drawing : std::uint8_t { tree, chain };

// Without `legend` the tables have no column titles.
std::string prototypes_text(const PrototypesReport& report, bool legend = true);
std::string prototypes_json(const PrototypesReport& report);
// Input for graphviz.
std::string prototypes_dot(const PrototypesReport& report, Drawing drawing);
// Self-contained SVG: no script, no font, no external reference.
std::string prototypes_svg(const PrototypesReport& report, Drawing drawing);

// Texts that all formats share.
std::string state_name(int state);                // "D", "unknown", "start", "end"
std::string label_text(const BinnedPhase& label, const LengthBins& bins);  // "D(10-99)", "?(1)"
std::string share_text(double share);             // "12.5 %"
double share_of(std::size_t count, std::size_t total);

}  // namespace cgphase
