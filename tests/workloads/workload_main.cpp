// workload train|serve|batch [--seed N] [--size X] [--seconds S] [--wait S] [--work-dir D]
// [--labels F] [--result F] [--arithmetic X] [--far-end A]: runs one workload and prints one JSON
// line.
// workload far-end --far-end A: the other end of its network, at address A (far_end.h), until it is
// killed. Exit status: 0 ok, 1 failure, 2 usage.
#include <fmt/format.h>
#include <malloc.h>

#include <charconv>
#include <cstdio>
#include <span>

#include "base/file.h"
#include "tests/workloads/far_end.h"
#include "tests/workloads/pace.h"
#include "tests/workloads/plan.h"
#include "tests/workloads/run.h"

namespace {

using namespace cgphase;
using namespace cgphase::workloads;

constexpr const char* kUsage =
    "usage: workload train|serve|batch [--seed N] [--size X] [--seconds S] [--wait S] "
    "[--work-dir D] [--labels F] [--result F] [--arithmetic X] [--far-end A]\n"
    "       workload far-end --far-end A\n";

struct Arguments {
  std::string workload, labels, result;
  RunOptions run;
};

template <class Number>
bool parse_number(std::string_view text, Number& number, Number low, Number high) {
  const auto end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  return parsed.ec == std::errc{} && parsed.ptr == end && number >= low && number <= high;
}

bool take_option(std::string_view name, std::string_view value, Arguments& arguments) {
  RunOptions& run = arguments.run;
  if (name == "--seed") return parse_number(value, run.seed, std::uint64_t{0}, ~std::uint64_t{0});
  if (name == "--size") return parse_number(value, run.size, kMinSize, kMaxSize);
  if (name == "--seconds") return parse_number(value, run.seconds, kMinSeconds, kMaxSeconds);
  if (name == "--wait") return parse_number(value, run.wait, 0.0, kMaxSeconds);
  if (name == "--work-dir") return !(run.work_dir = value).empty();
  if (name == "--arithmetic") return parse_number(value, run.arithmetic, kMinArithmetic, 1.0);
  if (name == "--far-end") return !(run.far_end = value).empty();
  if (name == "--labels") return !(arguments.labels = value).empty();
  if (name == "--result") return !(arguments.result = value).empty();
  return false;
}

Result<Arguments> parse_arguments(std::span<char*> words) {
  Arguments arguments;
  if (words.empty()) return failure(ErrorKind::invalid, "no workload given");
  arguments.workload = words[0];
  for (std::size_t i = 1; i < words.size(); i += 2)
    if (i + 1 == words.size() || !take_option(words[i], words[i + 1], arguments))
      return failure(ErrorKind::invalid, fmt::format("{}: unknown option or bad value", words[i]));
  return arguments;
}

Result<RunReport> run(const Arguments& arguments, LabelFile& labels) {
  if (arguments.workload == "train") return run_train(arguments.run, labels);
  if (arguments.workload == "serve") return run_serve(arguments.run, labels);
  if (arguments.workload == "batch") return run_batch(arguments.run, labels);
  return failure(ErrorKind::invalid, arguments.workload + ": no such workload");
}

std::string to_json_line(const Arguments& arguments, const RunReport& report, double wall) {
  nlohmann::ordered_json line = {{"workload", arguments.workload},
                                 {"seed", arguments.run.seed},
                                 {"size", arguments.run.size},
                                 {"unit", report.unit},
                                 {"units", report.units},
                                 {"cpu_seconds", cpu_seconds()},
                                 {"wall_seconds", wall}};
  line.update(report.outcome);
  return line.dump() + "\n";
}

Status run_and_report(const Arguments& arguments) {
  if (arguments.workload == "far-end") return run_far_end(arguments.run.far_end);
  const double begin = monotonic_seconds();
  auto labels = LabelFile::create(arguments.labels);
  if (!labels) return std::unexpected(labels.error());
  const auto report = run(arguments, *labels);
  if (!report) return std::unexpected(report.error());
  const std::string line = to_json_line(arguments, *report, monotonic_seconds() - begin);
  std::fputs(line.c_str(), stdout);
  return arguments.result.empty() ? Status{} : replace_file(arguments.result, line);
}

}  // namespace

int main(int argc, char** argv) {
  // Big buffers get their own mappings. So freed memory returns to the kernel at once, and the
  // memory of a stage is visible in its cgroup.
  mallopt(M_MMAP_THRESHOLD, 256 * 1024);
  mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
  const auto arguments = parse_arguments(std::span(argv + 1, static_cast<std::size_t>(argc - 1)));
  if (!arguments) {
    std::fprintf(stderr, "workload: %s\n%s", arguments.error().text.c_str(), kUsage);
    return 2;
  }
  if (const auto status = run_and_report(*arguments); !status) {
    std::fprintf(stderr, "workload %s: %s\n", arguments->workload.c_str(),
                 status.error().text.c_str());
    return 1;
  }
  return 0;
}
