#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "base/fd.h"
#include "tests/workloads/far_end.h"
#include "tests/workloads/mlp.h"
#include "tests/workloads/pace.h"
#include "tests/workloads/plan.h"
#include "tests/workloads/random.h"
#include "tests/workloads/response_cache.h"
#include "tests/workloads/run.h"

namespace cgphase::workloads {

namespace {

constexpr int kInput = 256, kEmbedding = 128;
constexpr std::size_t kRowsPerRequest = 16;
constexpr std::size_t kResponseFloats = std::size_t{kEmbedding} * kRowsPerRequest;
constexpr std::array kFirstWidths = {kInput, 384, 384, 384, kEmbedding};
constexpr std::array kSecondWidths = {kInput, 512, 512, 512, 512, 512, kEmbedding};
constexpr double kCacheSegmentsAtSizeOne = 80;  // of half a MiB each
constexpr double kLullKeepsShare = 0.3;         // of the cache, from some seconds into a lull on
constexpr double kTrimAfterSeconds = 3;

using SteadyClock = std::chrono::steady_clock;

class Service {
 public:
  Service(const RunOptions& options, LabelFile& labels)
      : options_(options),
        labels_(labels),
        stages_(serve_plan(options.seed, options.seconds)),
        cache_(kResponseFloats,
               static_cast<std::size_t>(std::max(1.0, kCacheSegmentsAtSizeOne * options.size))),
        input_(static_cast<Eigen::Index>(rows_at_a_time(kRowsPerRequest, options)), kInput) {}

  Status run();
  nlohmann::ordered_json outcome() const;
  std::uint64_t served() const { return latencies_ms_.size(); }

 private:
  Status deploy(int model, Milliseconds length);
  Status serve_stage(double begin_seconds, double end_seconds, bool lull);
  Status answer_until(double offset_seconds);
  Status answer(const Arrival& arrival);
  // The request and its response over the network, if there is one.
  Status receive();
  Status reply(std::span<const float> response);
  Status load(int model);
  std::string model_path(int model) const {
    return fmt::format("{}/model_{}", options_.work_dir, model);
  }
  double elapsed_seconds() const {
    return std::chrono::duration<double>(SteadyClock::now() - begin_).count();
  }

  const RunOptions& options_;
  LabelFile& labels_;
  std::vector<Stage> stages_;
  std::array<std::optional<Mlp>, 2> models_;
  ResponseCache cache_;
  Matrix input_;
  Fd clients_;
  SteadyClock::time_point begin_;
  std::span<const Arrival> waiting_;
  std::vector<double> latencies_ms_;
  std::uint64_t hits_ = 0;
};

std::span<const int> widths(int model) {
  if (model == 0) return kFirstWidths;
  return kSecondWidths;
}

// Writes a model as the registry delivers it: row by row, at an even rate.
Status Service::deploy(int model, Milliseconds length) {
  Random random(derive_seed(options_.seed, 20 + static_cast<std::uint64_t>(model)));
  auto file = open_path(model_path(model), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (!file) return std::unexpected(file.error());
  std::vector<std::size_t> rows;  // floats in each, layer by layer: weights, then the bias
  std::vector<float> scales;
  const auto layers = widths(model);
  for (std::size_t i = 0; i + 1 < layers.size(); ++i)
    for (int r = 0; r <= layers[i]; ++r) {
      rows.push_back(static_cast<std::size_t>(layers[i + 1]));
      scales.push_back(r < layers[i] ? std::sqrt(2.0F / static_cast<float>(layers[i])) : 0.0F);
    }
  std::vector<float> row;
  Spread spread(length, rows.size(), Pace::Late::slip);
  for (std::uint64_t next = 0, end = 0; spread.next(next, end);)
    for (; next < end; ++next) {
      row.resize(rows[next]);
      for (float& value : row) value = random.bell() * scales[next];
      const std::string_view bytes(reinterpret_cast<const char*>(row.data()), row.size() * 4);
      if (auto status = write_all(file->get(), bytes); !status) return status;
    }
  if (fsync(file->get()) != 0) return errno_failure("fsync " + model_path(model), errno);
  return {};
}

Status Service::load(int model) {
  const auto file = open_path(model_path(model), O_RDONLY);
  if (!file) return std::unexpected(file.error());
  auto& slot = models_[static_cast<std::size_t>(model)];
  slot.emplace(widths(model));
  return slot->read_parameters(file->get());
}

Status Service::answer(const Arrival& arrival) {
  const auto model = static_cast<std::size_t>(arrival.model);
  if (!models_[model])
    if (auto status = load(arrival.model); !status) return status;
  const std::uint64_t key = 2 * std::uint64_t{arrival.key} + model;
  if (auto status = receive(); !status) return status;
  if (const std::span<const float> known = cache_.find(key); !known.empty()) {
    ++hits_;
    return reply(known);
  }
  Random random(key);
  for (float& value : input_.reshaped()) value = random.bell();
  const Matrix& output = models_[model]->forward(Rows(input_.data(), input_.rows(), input_.cols()));
  // With fewer rows at a time, the response is filled by repeating them.
  const std::span<float> response = cache_.insert(key);
  const auto made = static_cast<std::size_t>(output.size());
  for (std::size_t begin = 0; begin < response.size(); begin += made)
    std::copy_n(output.data(), std::min(made, response.size() - begin), &response[begin]);
  return reply(response);
}

Status Service::receive() {
  std::array<char, kRequestBytes> request;
  return clients_.valid() ? read_exactly(clients_.get(), request) : Status{};
}

Status Service::reply(std::span<const float> response) {
  if (!clients_.valid()) return {};
  return write_all(clients_.get(), {reinterpret_cast<const char*>(response.data()),
                                    response.size() * sizeof(float)});
}

Status Service::answer_until(double offset_seconds) {
  for (; !waiting_.empty() && waiting_.front().offset_seconds < offset_seconds;
       waiting_ = waiting_.subspan(1)) {
    if (auto status = answer(waiting_.front()); !status) return status;
    latencies_ms_.push_back((elapsed_seconds() - waiting_.front().offset_seconds) * 1000);
  }
  return {};
}

// Requests are collected and answered together, slot by slot, as inference servers batch them. The
// cache's content depends on when requests arrived and never on when they were answered. So every
// run of a seed does the same work.
Status Service::serve_stage(double begin_seconds, double end_seconds, bool lull) {
  const double trim_seconds = begin_seconds + kTrimAfterSeconds;
  bool trimmed = !lull || trim_seconds >= end_seconds;
  Pace pace(kSlot, Pace::Late::catch_up);
  for (double until = begin_seconds; until < end_seconds;) {
    pace.wait();
    until = std::min(elapsed_seconds(), end_seconds);
    if (!trimmed && until >= trim_seconds) {
      if (auto status = answer_until(trim_seconds); !status) return status;
      cache_.trim(
          static_cast<std::size_t>(kCacheSegmentsAtSizeOne * options_.size * kLullKeepsShare));
      trimmed = true;
    }
    if (auto status = answer_until(until); !status) return status;
  }
  return {};
}

Status Service::run() {
  const std::vector<Arrival> all = arrivals(options_.seed, stages_);
  waiting_ = all;
  latencies_ms_.reserve(all.size());
  if (!options_.far_end.empty()) {
    auto socket =
        ask_far_end(options_.far_end, ask_requests(options_.seed, options_.seconds));
    if (!socket) return std::unexpected(socket.error());
    clients_ = std::move(*socket);
  }
  begin_ = SteadyClock::now();
  double begin_seconds = 0;
  for (const Stage& stage : stages_) {
    labels_.enter(stage.phase);
    const double end_seconds = begin_seconds + std::chrono::duration<double>(stage.length).count();
    if (stage.phase == "start") {
      for (const int model : {0, 1})
        if (auto status = deploy(model, stage.length * 2 / 5); !status) return status;
      if (auto status = load(0); !status) return status;
    }
    if (auto status = serve_stage(begin_seconds, end_seconds, stage.phase == "lull"); !status)
      return status;
    begin_seconds = end_seconds;
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
