// Cost of reading a trace, and of reading it and finding its phases, compared with cutting the same
// file into lines. There is one JSON line per kind of columns (our own, those of AI4DL), number of
// rows and work. It has rows and megabytes per second and the time relative to cutting lines. It
// also has the peak memory of the work (VmHWM of its own process). If memory is constant, it is the
// same for few rows and for many.
//
//   bench_trace [ROWS]          (default 1000000; a tenth of them is measured too)
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include "base/parse.h"
#include "model/trace_features.h"
#include "model/trace_phases.h"
#include "tests/model/example_models.h"
#include "tests/model/temporary_folder.h"
#include "traces/text_lines.h"
#include "traces/trace.h"

namespace {

using namespace cgphase;
using SteadyClock = std::chrono::steady_clock;

constexpr std::size_t kRows = 1'000'000;
constexpr int kRounds = 3;

// ---- the traces ----

// An execution that computes, waits and reads in turns.
Sample sample_at(std::uint64_t second, Random& random) {
  const std::uint64_t phase = second / 40 % 3;
  Sample sample;
  sample.id = {0, 1};
  sample.cpu.usage_usec = 800'000 * second + random.below(50'000);
  sample.cpu.nr_periods = 10 * second;
  sample.cpu.nr_throttled = second / 7;
  sample.cpu.throttled_usec = 900 * second;
  sample.memory_current = Bytes{400'000'000 + 300'000'000 * phase + random.below(1'000'000)};
  sample.memory_peak = Bytes{1'100'000'000};
  sample.memory.anon_bytes = 300'000'000 + 300'000'000 * phase + random.below(1'000'000);
  sample.memory.file_bytes = 80'000'000 + random.below(1'000'000);
  sample.memory.shmem_bytes = 4096;
  sample.memory.kernel_bytes = 5'000'000 + random.below(10'000);
  sample.memory.unevictable_bytes = 0;
  sample.memory.slab_reclaimable_bytes = 2'000'000;
  sample.memory.inactive_file_bytes = 50'000'000;
  sample.memory.pgfault = 3000 * second;
  sample.memory.pgmajfault = second / 100;
  sample.memory.workingset_refault_file = second / 50;
  sample.memory.workingset_refault_anon = 0;
  sample.swap_current = Bytes{0};
  sample.memory_events = {.high = 0, .max = 0, .oom = 0, .oom_kill = 0};
  sample.io.read_bytes = 40'960 * second * phase;
  sample.io.write_bytes = 8192 * second;
  sample.cpu_pressure.some.total_usec = 1000 * second;
  sample.memory_pressure.some.total_usec = 0;
  sample.io_pressure.some.total_usec = 500 * second;
  sample.pids_current = 17;
  return sample;
}

void write_own(const std::string& path, std::size_t rows) {
  std::ofstream file(path, std::ios::binary);
  ContainerInfo container;
  container.name = "job", container.path = "/job.slice/job.service";
  TraceRecord record{.container = &container,
                     .time = WallTime(std::chrono::hours(480'000)),
                     .host = {8, Bytes{16 * kGiB}},
                     .interval_seconds = 1,
                     .label = "compute"};
  record.original.cpu_max = CpuMax{Microseconds{200'000}};
  record.original.memory_max = MemoryLimit{Bytes{2 * kGiB}};
  std::string text;
  write_trace_header(text);
  Random random(1);
  Sample now, before;
  for (std::size_t i = 0; i < rows; ++i) {
    before = std::exchange(now, sample_at(i, random));
    record.sample = &now;
    record.previous = i > 0 ? &before : nullptr;
    record.time += std::chrono::milliseconds(1000);
    write_trace_row(text, record);
    file << text;
    text.clear();
  }
}

// AI4DL's columns, which have no CPU limit. Such a file is read twice.
void write_ai4dl(const std::string& path, std::size_t rows) {
  std::ofstream file(path, std::ios::binary);
  file << "\"\",\"timestamp\",\"service\",\"pod.id\",\"cpu.num.cores\",\"cpu.usage\","
          "\"cpu.usage.cores\",\"cpu.usage.pct\",\"cpu.usage.pct.container.requested\","
          "\"mem.current\",\"mem.limit\",\"mem.usage.pct\",\"mem.working.set\"\n";
  Random random(1);
  char line[256];
  for (std::size_t i = 0; i < rows; ++i) {
    const double cores = 0.001 * static_cast<double>(random.below(4000));
    const auto memory = static_cast<double>(random.below(1'000'000'000));
    std::snprintf(line, sizeof line,
                  "\"%zu\",%zu,\"service\",\"pod-1\",16,%.0f,%.3f,%.3f,%.3f,%.0f,2147483648,%.3f,"
                  "%.0f\n",
                  i + 1, 1'600'000'000 + 15 * i, cores * 15e9, cores, cores / 0.16, cores / 0.04096,
                  memory, memory / 2147483648.0 * 100, memory);
    file << line;
  }
}

// ---- the work ----

// Each returns the number of rows; 0 is a failure.
std::size_t cut_lines(const std::string& path) {
  Result<TextLines> lines = TextLines::open(path);
  if (!lines) return 0;
  std::size_t count = 0;
  std::string_view line;
  for (Result<bool> more = lines->next(line); more && *more; more = lines->next(line)) ++count;
  return count - 1;
}

std::size_t read_all(const std::string& path) {
  Result<TraceReader> reader = TraceReader::open(path, {.max_rows = kAnyTraceRows});
  if (!reader) return 0;
  std::size_t count = 0;
  const Status status = read_rows(*reader, [&](const TraceRow&) -> Status {
    ++count;
    return {};
  });
  return status ? count : 0;
}

std::size_t predict_all(const std::string& path) {
  const auto engine = PhaseEngine::create(random_model(1, {6, 10, 3, 5}, 0.3));
  Result<TraceReader> reader = TraceReader::open(path, {.max_rows = kAnyTraceRows});
  if (!engine || !reader) return 0;
  PhaseFollower follower(*engine);
  std::size_t count = 0, known = 0;
  const Status status = read_rows(*reader, [&](const TraceRow& row) -> Status {
    known += follower.add(reader->execution(), row).known();
    ++count;
    return {};
  });
  return status && known <= count ? count : 0;
}

// ---- measuring ----

struct Figures {
  double seconds = 0;
  std::uint64_t peak_kib = 0;
};

std::uint64_t peak_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:"))
      return std::strtoull(line.c_str() + sizeof "VmHWM:", nullptr, 10);
  return 0;
}

// Runs in its own process, so that the memory is its own.
Figures measure(const std::function<std::size_t(const std::string&)>& work,
                const std::string& path, std::size_t rows) {
  int ends[2];
  if (::pipe(ends) != 0) std::exit(EXIT_FAILURE);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto begun = SteadyClock::now();
    const bool right = work(path) == rows;
    const std::chrono::duration<double> taken = SteadyClock::now() - begun;
    const Figures figures{taken.count(), peak_kib()};
    const bool told = ::write(ends[1], &figures, sizeof figures) == sizeof figures;
    ::_exit(right && told ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  Figures figures;
  const bool told = child > 0 && ::read(ends[0], &figures, sizeof figures) == sizeof figures;
  int status = 0;
  if (!told || ::waitpid(child, &status, 0) != child || status != 0) {
    std::fprintf(stderr, "bench_trace: %s was not read to its end\n", path.c_str());
    std::exit(EXIT_FAILURE);
  }
  ::close(ends[0]);
  ::close(ends[1]);
  return figures;
}

void run(const char* columns, const std::string& path, std::size_t rows) {
  struct Work {
    const char* name;
    std::size_t (*work)(const std::string&);
    Figures best{};
  };
  Work all[] = {{"lines", cut_lines}, {"read", read_all}, {"predict", predict_all}};
  for (int round = 0; round < kRounds; ++round)
    for (Work& each : all) {
      const Figures figures = measure(each.work, path, rows);
      if (round == 0 || figures.seconds < each.best.seconds) each.best = figures;
    }
  const auto bytes = static_cast<double>(std::filesystem::file_size(path));
  for (const Work& each : all)
    std::printf("{\"bench\":\"trace\",\"columns\":\"%s\",\"rows\":%zu,\"bytes\":%.0f,"
                "\"work\":\"%s\",\"seconds\":%.3f,\"rows_per_s\":%.0f,\"mb_per_s\":%.1f,"
                "\"of_lines\":%.2f,\"peak_kib\":%llu}\n",
                columns, rows, bytes, each.name, each.best.seconds,
                static_cast<double>(rows) / each.best.seconds, bytes / 1e6 / each.best.seconds,
                each.best.seconds / all[0].best.seconds,
                static_cast<unsigned long long>(each.best.peak_kib));
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t most = kRows;
  if (argc > 1) most = parse_u64(argv[1]).value_or(0);
  if (most < 10) {
    std::fputs("usage: bench_trace [ROWS]\n", stderr);
    return 2;
  }
  const TemporaryFolder folder;
  const std::string path = folder.path("trace.csv");
  for (const std::size_t rows : {most / 10, most}) {
    write_own(path, rows);
    run("own", path, rows);
    write_ai4dl(path, rows);
    run("ai4dl", path, rows);
  }
  return EXIT_SUCCESS;
}
