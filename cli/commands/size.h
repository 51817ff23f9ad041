// What to request the next time, from what was learned of the phases: exact numbers and a T-shirt
// size, overall and per phase (docs/operations.md). Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/output/style.h"
#include "collectors/sample.h"
#include "policy/phase/phase_record.h"

namespace cgphase {

// The T-shirts, ascending: a size covers a need if neither number is below it.
struct ShirtSize {
  const char* name;
  double cpu_cores;
  double memory_bytes;
};
std::span<const ShirtSize> shirt_sizes();
// The smallest that covers; absent where none does.
const ShirtSize* shirt_for(double cpu_cores, double memory_bytes);

// Fewer samples, or as many of a shorter time in fewer runs, are not enough history to size by.
inline constexpr double kSizeLeastSamples = 60, kSizeLeastSeconds = 300;
inline constexpr int kSizeLeastRuns = 3;
// Share over the highest memory need seen: what has not been seen yet must not kill.
inline constexpr double kSizeMemoryHeadroom = 0.15;
inline constexpr double kSizeDefaultRisk = 0.001;

// Of all of a run (slot -1), or of one phase.
struct SizedPart {
  int slot = -1;
  double samples = 0, seconds = 0, share = 0;  // share of all time
  int runs = 0;
  bool enough = false;
  double cpu_cores = 0, memory_bytes = 0;  // where there is enough
};

struct Sized {
  std::string name, kind;  // kind: container, image, service
  double risk = kSizeDefaultRisk;
  SizedPart overall;
  std::vector<SizedPart> phases;  // ascending
  std::string reason;             // why there is not enough
};

// CPU: as much as all but `risk` of the samples used, as far as the samples can tell. Memory: the
// highest need, and the headroom. Neither is more than `host` has. `records` null: nothing was
// learned.
Sized size_of(std::string name, std::string kind, const PhaseRecords* records, double risk,
              const HostCapacity& host = {});

// {"schema":1, "risk", "sizes":[...]} and its text.
nlohmann::json size_json(std::span<const Sized> sizes, double risk);
std::string render_sizes(const nlohmann::json& body, const TextStyle& style);

}  // namespace cgphase
