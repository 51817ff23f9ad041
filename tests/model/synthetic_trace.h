// Synthetic telemetry with known phases, from a seed.
#pragma once

#include "model/train/random.h"
#include "traces/trace.h"

namespace cgphase {

// One execution that cycles through idle, compute and load (label), `seconds` long at one sample
// per second, with a little noise. Limits: 2 cores, 1 GiB.
inline Trace synthetic_trace(std::uint64_t seed, int seconds = 360) {
  Random random(seed);
  Trace trace;
  trace.path = "synthetic-" + std::to_string(seed) + ".csv";
  trace.crc = static_cast<std::uint32_t>(seed);
  Execution& execution = trace.executions.emplace_back();
  execution.id = "synthetic";
  execution.original.cpu_max = CpuMax{Microseconds{200'000}};
  execution.original.memory_max = MemoryLimit{Bytes{kGiB}};
  execution.host = {8, Bytes{16 * kGiB}};
  double cpu = 0, faults = 0, read = 0;
  for (int t = 0; t < seconds; ++t) {
    const int phase = (t / 40) % 3;
    cpu += (phase == 0 ? 0.02 : phase == 1 ? 1.8 : 0.6) * (1 + 0.05 * random.normal()) * 1e6;
    faults += phase == 2 ? 20'000 : 10;
    read += phase == 2 ? 3e7 : 0;
    TraceRow row;
    row.time = MonotonicTime(std::chrono::seconds(t));
    row.sample.id = {0, 1};
    row.sample.cpu.usage_usec = static_cast<std::uint64_t>(cpu);
    row.sample.memory.anon_bytes =
        static_cast<std::uint64_t>((phase == 0 ? 100 : phase == 1 ? 700 : 400) * 1e6);
    row.sample.memory.pgfault = static_cast<std::uint64_t>(faults);
    row.sample.io.read_bytes = static_cast<std::uint64_t>(read);
    row.sample.io.write_bytes = 0;
    row.label = phase == 0 ? "idle" : phase == 1 ? "compute" : "load";
    execution.rows.push_back(row);
  }
  return trace;
}

}  // namespace cgphase
