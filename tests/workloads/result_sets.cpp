#include "tests/workloads/result_sets.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

namespace cgphase::workloads {
namespace {

// 60 samples of traces with one row per second; those jobs last two to four minutes.
constexpr double kShortWindowSeconds = 60;

using Wanted = std::function<bool(const std::string& name)>;

// All executions of the wanted traces of a directory, by name.
Result<std::vector<Execution>> read(const std::string& directory, const Wanted& wanted,
                                    const std::vector<std::string>& columns) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    const bool trace = name.ends_with(".csv") || name.ends_with(".csv.gz");
    if (trace && wanted(name)) paths.push_back(entry.path());
  }
  if (error) return errno_failure(directory, error.value());
  std::sort(paths.begin(), paths.end());
  std::vector<Execution> executions;
  for (const std::string& path : paths) {
    auto trace = read_trace(path, {.columns = columns});
    if (!trace) return std::unexpected(trace.error());
    std::move(trace->executions.begin(), trace->executions.end(), std::back_inserter(executions));
  }
  return executions;
}

struct Source {
  ResultSet set;
  std::string directory;
  Wanted scored, training;
};

Wanted none() {
  return [](const std::string&) { return false; };
}

Wanted only(std::string name) {
  return [name = std::move(name)](const std::string& file) { return file == name; };
}

// One of the programs of tests/workloads: trained on the earlier recordings, scored on the rest.
Source recorded(const ResultPlaces& places, const std::string& program, std::string title,
                bool service) {
  const auto held_out = [](const std::string& name) {
    return name.find("heldout") != std::string::npos;
  };
  return {.set = {.name = "recorded-" + program, .title = std::move(title), .service = service,
                  .window_seconds = kShortWindowSeconds, .executions = {}, .training = {}},
          .directory = places.recorded,
          .scored = [=](const std::string& name) {
            return name.starts_with(program) && held_out(name);
          },
          .training = [=](const std::string& name) {
            return name.starts_with(program) && !held_out(name);
          }};
}

Source public_set(const ResultPlaces& places, const std::string& folder, ResultSet set,
                  Wanted scored) {
  return {.set = std::move(set), .directory = places.others + "/" + folder,
          .scored = std::move(scored), .training = none()};
}

std::vector<Source> sources(const ResultPlaces& places) {
  std::vector<Source> all{
      recorded(places, "train", "Our training job, two held-out runs", false),
      recorded(places, "batch", "Our batch job, two held-out runs", false),
      recorded(places, "serve", "Our inference service, two held-out runs", true)};
  if (places.others.empty()) return all;
  const auto add = [&](const char* folder, const char* name, const char* title, bool service,
                       double window_seconds, Wanted wanted) {
    all.push_back(public_set(places, folder,
                             {.name = name, .title = title, .service = service,
                              .window_seconds = window_seconds, .executions = {}, .training = {}},
                             std::move(wanted)));
  };
  const std::string torch_service = "serve-a.csv";
  add("torch", "torch-jobs", "PyTorch jobs, one run each of eight", false, kShortWindowSeconds,
      [=](const std::string& name) { return name != torch_service; });
  add("torch", "torch-service", "A PyTorch inference service", true, kShortWindowSeconds,
      only(torch_service));
  add("ai4dl", "ai4dl-jobs", "AI4DL's four training jobs", false, 600, only("sample.csv"));
  add("ai4dl", "ai4dl-service", "AI4DL's service", true, 600, only("sample-vr.csv"));
  add("supercloud", "supercloud", "A 31 h batch job (MIT Supercloud)", false, 600,
      only("supercloud.csv"));
  add("nezha", "nezha", "50 pod-days of micro-services (Nezha)", true, 600, only("nezha.csv"));
  return all;
}

}  // namespace

Result<std::vector<ResultSet>> read_result_sets(const ResultPlaces& places,
                                                const std::vector<std::string>& columns) {
  std::vector<ResultSet> sets;
  for (Source& source : sources(places)) {
    auto scored = read(source.directory, source.scored, columns);
    if (!scored) return std::unexpected(scored.error());
    auto training = read(source.directory, source.training, columns);
    if (!training) return std::unexpected(training.error());
    source.set.executions = std::move(*scored);
    source.set.training = std::move(*training);
    if (source.set.executions.empty())
      return failure(ErrorKind::not_found,
                     source.directory + ": no traces for " + source.set.name);
    sets.push_back(std::move(source.set));
  }
  return sets;
}

}  // namespace cgphase::workloads
