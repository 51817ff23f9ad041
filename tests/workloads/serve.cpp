#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "base/fd.h"
#include "base/file.h"
#include "tests/workloads/mlp.h"
#include "tests/workloads/pace.h"
#include "tests/workloads/plan.h"
#include "tests/workloads/random.h"
#include "tests/workloads/response_cache.h"
#include "tests/workloads/run.h"

namespace cgphase::workloads {

namespace {

constexpr int kInput = 256, kEmbedding = 128;
constexpr Eigen::Index kRowsPerRequest = 32;
constexpr std::size_t kResponseFloats = std::size_t{kEmbedding} * kRowsPerRequest;
constexpr std::array kFirstWidths = {kInput, 512, 512, 512, kEmbedding};
constexpr std::array kSecondWidths = {kInput, 512, 512, 512, 512, 512, 512, 512, kEmbedding};
constexpr double kCacheSegmentsAtSizeOne = 40;  // of 1 MiB each
constexpr double kLullKeepsShare = 0.3;         // of the cache, from some seconds into a lull on
constexpr std::chrono::seconds kTrimAfter{3};
constexpr std::size_t kMaxModelBytes = std::size_t{64} << 20;
constexpr Milliseconds kStartSlot{100};

using SteadyClock = std::chrono::steady_clock;

class Service {
 public:
  Service(const RunOptions& options, LabelFile& labels)
      : options_(options),
        labels_(labels),
        stages_(serve_plan(options.seed, options.seconds)),
        cache_(kResponseFloats,
               static_cast<std::size_t>(std::max(1.0, kCacheSegmentsAtSizeOne * options.size))),
        input_(kRowsPerRequest, kInput) {}

  Status run();
  nlohmann::ordered_json outcome() const;
  std::uint64_t served() const { return latencies_ms_.size(); }

 private:
  Status start();
  Status serve_stage(double end_seconds, bool lull, std::span<const Arrival>& waiting);
  Status answer(const Arrival& arrival);
  Status load(int model);
  std::string model_path(int model) const {
    return fmt::format("{}/model_{}", options_.work_dir, model);
  }
  SteadyClock::time_point moment(double offset_seconds) const {
    return begin_ + std::chrono::duration_cast<SteadyClock::duration>(
                        std::chrono::duration<double>(offset_seconds));
  }

  const RunOptions& options_;
  LabelFile& labels_;
  std::vector<Stage> stages_;
  std::array<std::optional<Mlp>, 2> models_;
  ResponseCache cache_;
  Matrix input_;
  SteadyClock::time_point begin_;
  std::vector<double> latencies_ms_;
  std::uint64_t hits_ = 0;
};

std::span<const int> widths(int model) {
  if (model == 0) return kFirstWidths;
  return kSecondWidths;
}

// The registry's part: both models lie on disk before the first request.
Status Service::start() {
  for (const int model : {0, 1}) {
    std::string bytes;
    Mlp(widths(model), derive_seed(options_.seed, 20 + static_cast<std::uint64_t>(model)))
        .serialize(bytes);
    auto file = open_path(model_path(model), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (!file) return std::unexpected(file.error());
    if (auto status = write_all(file->get(), bytes); !status) return status;
    if (fsync(file->get()) != 0) return errno_failure("fsync " + model_path(model), errno);
  }
  return load(0);
}

Status Service::load(int model) {
  auto bytes = read_file(model_path(model), kMaxModelBytes);
  if (!bytes) return std::unexpected(bytes.error());
  auto& slot = models_[static_cast<std::size_t>(model)];
  slot.emplace(widths(model), 0);
  return slot->deserialize(*bytes);
}

Status Service::answer(const Arrival& arrival) {
  const auto model = static_cast<std::size_t>(arrival.model);
  if (!models_[model])
    if (auto status = load(arrival.model); !status) return status;
  const std::uint64_t key = 2 * std::uint64_t{arrival.key} + model;
  if (!cache_.find(key).empty()) {
    ++hits_;
    return {};
  }
  Random random(key);
  for (float& value : input_.reshaped()) value = random.bell();
  const Matrix& output = models_[model]->forward(Rows(input_.data(), input_.rows(), input_.cols()));
  std::copy_n(output.data(), kResponseFloats, cache_.insert(key).data());
  return {};
}

Status Service::serve_stage(double end_seconds, bool lull, std::span<const Arrival>& waiting) {
  const auto trim_at = SteadyClock::now() + kTrimAfter;
  bool trimmed = !lull;
  const auto keep =
      static_cast<std::size_t>(kCacheSegmentsAtSizeOne * options_.size * kLullKeepsShare);
  while (!waiting.empty() && waiting.front().offset_seconds < end_seconds) {
    const auto due = moment(waiting.front().offset_seconds);
    std::this_thread::sleep_until(due);
    if (auto status = answer(waiting.front()); !status) return status;
    const std::chrono::duration<double, std::milli> latency = SteadyClock::now() - due;
    latencies_ms_.push_back(latency.count());
    waiting = waiting.subspan(1);
    if (!trimmed && SteadyClock::now() > trim_at) {
      cache_.trim(keep);
      trimmed = true;
    }
  }
  std::this_thread::sleep_until(moment(end_seconds));
  return {};
}

Status Service::run() {
  const std::vector<Arrival> all = arrivals(options_.seed, stages_);
  std::span<const Arrival> waiting = all;
  latencies_ms_.reserve(all.size());
  begin_ = SteadyClock::now();
  double end_seconds = 0;
  for (const Stage& stage : stages_) {
    labels_.enter(stage.phase);
    end_seconds += std::chrono::duration<double>(stage.length).count();
    if (stage.phase == "start")
      if (auto status = start(); !status) return status;
    if (auto status = serve_stage(end_seconds, stage.phase == "lull", waiting); !status)
      return status;
  }
  labels_.enter("end");
  return {};
}

nlohmann::ordered_json Service::outcome() const {
  std::vector<double> sorted = latencies_ms_;
  std::sort(sorted.begin(), sorted.end());
  const auto percentile = [&](double share) {
    if (sorted.empty()) return 0.0;
    const double index = std::floor(share * static_cast<double>(sorted.size() - 1));
    return sorted[static_cast<std::size_t>(index)];
  };
  return {{"hits", hits_},
          {"latency_ms",
           {{"p50", percentile(0.5)}, {"p95", percentile(0.95)}, {"p99", percentile(0.99)}}}};
}

}  // namespace

Result<RunReport> run_serve(const RunOptions& options, LabelFile& labels) {
  Service service(options, labels);
  if (auto status = service.run(); !status) return std::unexpected(status.error());
  return RunReport{"requests", service.served(), service.outcome()};
}

}  // namespace cgphase::workloads
