#include "policy/budget/host_fit_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/text.h"

namespace cgphase {
namespace {

using nlohmann::json;
using std::chrono::seconds;

std::string amount(double cores, double bytes) {
  return fmt::format("{:.2f} cores and {}", cores, human_bytes(bytes));
}

std::string lasting(seconds duration) {
  return human_duration(static_cast<double>(duration.count()));
}

std::string sentence(const FitAnswer& answer) {
  const FitQuestion& question = answer.question;
  std::string text = fmt::format(
      "{}: {} are free for {} at a risk of {:.3g} %; {} are requested", answer.fits ? "yes" : "no",
      amount(answer.free_cpu_cores, answer.free_memory_bytes), lasting(question.duration),
      question.risk * 100, amount(question.cpu_cores, question.memory_bytes));
  if (answer.fits) return text;
  if (answer.fits_for) return text + "; it would fit for " + lasting(*answer.fits_for);
  if (answer.change)
    text += fmt::format("; try again in {}: {} is then expected to change its phase "
                        "({:.0f} %) and leave room",
                        lasting(answer.change->in), escape_name(answer.change->name),
                        answer.change->probability * 100);
  return text;
}

json resource_json(const Peak& peak, PeakBasis basis) {
  return {{"peak", peak.empty() ? 0 : peak.front().value},
          {"at_most", peak.empty() ? 0 : peak.back().value},
          {"basis", to_string(basis)}};
}

json or_null(const std::optional<double>& value) { return value ? json(*value) : json(); }

}  // namespace

json to_json(const FitAnswer& answer) {
  json containers = json::array();
  for (const FitDemand& demand : answer.demands)
    containers.push_back({{"name", escape_name(demand.name)},
                          {"cpu_cores", resource_json(demand.cpu_cores, demand.cpu_basis)},
                          {"memory_bytes",
                           resource_json(demand.memory_bytes, demand.memory_basis)}});
  const HostCapacity& host = answer.host.capacity;
  json change;
  if (answer.change)
    change = {{"name", escape_name(answer.change->name)},
              {"probability", answer.change->probability},
              {"in_seconds", answer.change->in.count()}};
  return {{"schema", 1},
          {"fits", answer.fits},
          {"sentence", sentence(answer)},
          {"risk", answer.question.risk},
          {"seconds", answer.question.duration.count()},
          {"asked",
           {{"cpu_cores", answer.question.cpu_cores},
            {"memory_bytes", answer.question.memory_bytes}}},
          {"free",
           {{"cpu_cores", answer.free_cpu_cores}, {"memory_bytes", answer.free_memory_bytes}}},
          {"host", {{"cpu_cores", host.cpu_cores}, {"memory_bytes", host.memory.value}}},
          {"reserve",
           {{"cpu_cores", host.cpu_cores * kFitReserve},
            {"memory_bytes", static_cast<double>(host.memory.value) * kFitReserve}}},
          {"outside",
           {{"cpu_cores", or_null(answer.host.outside_cpu_cores)},
            {"memory_bytes", or_null(answer.host.outside_memory_bytes)}}},
          {"containers_need",
           {{"cpu_cores", answer.containers_cpu_cores},
            {"memory_bytes", answer.containers_memory_bytes}}},
          {"fits_for_seconds", answer.fits_for ? json(answer.fits_for->count()) : json()},
          {"next_change", std::move(change)},
          {"containers", std::move(containers)}};
}

}  // namespace cgphase
