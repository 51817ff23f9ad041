// What to request next time, from the statistics of the phases: exact numbers and a T-shirt size,
// overall and per phase (docs/operations.md). Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/output/style.h"
#include "collectors/sample.h"
#include "policy/phase/learned_phases.h"

namespace cgphase {

// T-shirt sizes, ascending. A size covers a need if neither number is below it.
struct ShirtSize {
  const char* name;
  double cpu_cores;
  double memory_bytes;
};
std::span<const ShirtSize> shirt_sizes();
// Returns the smallest size that covers the need; null if none does.
const ShirtSize* shirt_for(double cpu_cores, double memory_bytes);

// Enough history needs this many samples, and either this much time or this many runs.
inline constexpr double kSizeLeastSamples = 60, kSizeLeastSeconds = 300;
inline constexpr int kSizeLeastRuns = 3;
// Added to the highest memory need seen, as a share. A higher need that was not seen yet must not
// cause an OOM kill.
inline constexpr double kSizeMemoryHeadroom = 0.15;
inline constexpr double kSizeDefaultRisk = 0.001;

// The size for whole runs (slot -1) or for one phase.
struct SizedPart {
  int slot = -1;
  double samples = 0, seconds = 0, share = 0;  // share of the total time
  int runs = 0;
  bool enough = false;
  double cpu_cores = 0, memory_bytes = 0;  // set if there is enough history
};

struct Sized {
  std::string name, kind;  // kind: container, image, service
  double risk = kSizeDefaultRisk;
  SizedPart overall;
  std::vector<SizedPart> phases;  // ascending
  std::string reason;             // why there is not enough history
};

// Computes the size. CPU: all but `risk` of the samples used less, as far as the samples can show.
// Memory: the highest need, plus the headroom. Neither exceeds `host`. `learned` null: nothing was
// learned.
Sized size_of(std::string name, std::string kind, const LearnedPhases* learned, double risk,
              const HostCapacity& host = {});

// Returns {"schema":1, "risk", "sizes":[...]}.
nlohmann::json size_json(std::span<const Sized> sizes, double risk);
std::string render_sizes(std::span<const Sized> sizes, const TextStyle& style);

}  // namespace cgphase
