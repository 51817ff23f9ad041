#include "policy/baselines/oracle_policy.h"

#include <algorithm>
#include <fmt/format.h>

#include "policy/ceiling.h"

namespace cgphase {
namespace {

Result<std::unique_ptr<Policy>> make_oracle(const PolicyArgs& making,
                                            std::optional<double> deviations) {
  const auto& future = making.environment.future;
  if (!future)
    return failure(ErrorKind::invalid,
                   fmt::format("policy \"{}\" must know the future, which only cgphase replay does",
                               making.name));
  const std::size_t rows = future->seconds.size();
  if (future->cpu_cores.size() != rows || future->memory_bytes.size() != rows ||
      !std::is_sorted(future->seconds.begin(), future->seconds.end()))
    return failure(ErrorKind::invalid,
                   fmt::format("policy \"{}\": the future is not in time order", making.name));
  return std::make_unique<OraclePolicy>(future, making.environment.window_seconds, deviations);
}

// Replaces each absent value by the next known one.
FutureDemand::Values next_known(FutureDemand::Values values) {
  for (std::size_t i = values.size(); i-- > 1;)
    if (!values[i - 1]) values[i - 1] = values[i];
  return values;
}

}  // namespace

OraclePolicy::OraclePolicy(std::shared_ptr<const FutureDemand> future, double window_seconds,
                           std::optional<double> deviations)
    : future_(std::move(future)), known_cpu_(next_known(future_->cpu_cores)),
      known_memory_(next_known(future_->memory_bytes)), window_seconds_(window_seconds),
      deviations_(deviations) {}

void OraclePolicy::observe(const Observation& observation) {
  const double now = seconds_at(observation);
  const FutureDemand& future = *future_;
  for (; next_ < future.seconds.size() && future.seconds[next_] <= now + window_seconds_; ++next_) {
    if (future.seconds[next_] <= now) continue;
    if (const auto cores = future.cpu_cores[next_]) cpu_.add(future.seconds[next_], *cores);
    if (const auto bytes = future.memory_bytes[next_]) memory_.add(future.seconds[next_], *bytes);
  }
  cpu_.drop_until(now);
  memory_.drop_until(now);
  if (observation.cpu_cores) last_cpu_ = observation.cpu_cores;
  if (observation.memory_need_bytes) last_memory_ = observation.memory_need_bytes;
}

std::optional<double> OraclePolicy::wanted(const WindowStatistic& coming,
                                           const FutureDemand::Values& known,
                                           const std::optional<double>& last) const {
  if (coming.size() == 0) return next_ < known.size() && known[next_] ? known[next_] : last;
  return deviations_ ? coming.mean_plus_deviations(*deviations_) : coming.maximum();
}

Recommendation OraclePolicy::allocate(const Limits& original, const HostCapacity& host) const {
  Recommendation allocation;
  allocation.reason = Reason::window_statistics;
  if (const auto cpu = wanted(cpu_, known_cpu_, last_cpu_))
    allocation.cpu = capped_cores(*cpu, original, host);
  if (const auto memory = wanted(memory_, known_memory_, last_memory_))
    allocation.memory = capped_bytes(*memory, original, host);
  allocation.cpu_sample_count = static_cast<double>(cpu_.size());
  allocation.memory_sample_count = static_cast<double>(memory_.size());
  return allocation;
}

Result<std::unique_ptr<Policy>> make_oracle_max(const PolicyArgs& making) {
  return make_oracle(making, std::nullopt);
}

Result<std::unique_ptr<Policy>> make_oracle_2sd(const PolicyArgs& making) {
  return make_oracle(making, making.values.at("deviations"));
}

}  // namespace cgphase
