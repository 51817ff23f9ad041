#include "cli/commands/size.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "cli/output/table.h"
#include "cli/output/view.h"
#include "model/phase.h"
#include "policy/ceiling.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr double kGiBs = 0x1p30, kMiBs = 0x1p20;
constexpr std::array<ShirtSize, 5> kShirts = {{{"XS", 0.5, 1 * kGiBs},
                                               {"S", 1, 4 * kGiBs},
                                               {"M", 2, 8 * kGiBs},
                                               {"L", 4, 16 * kGiBs},
                                               {"XL", 8, 32 * kGiBs}}};
// A peak of one second with a smaller weight counts as forgotten, as in policy `phase`.
constexpr double kForgottenWeight = 1.0 / 64;
// without an event in n samples its share is below 3 / n, at 95 %
constexpr double kRuleOfThree = 3;

// Rounds up to a hundredth of a core.
double up_to_centicores(double cores) {
  return std::max(std::ceil(cores * 100 - 1e-9) / 100, 0.01);
}

double up_to_mib(double bytes) { return std::max(std::ceil(bytes / kMiBs), 1.0); }

// `memory_peak`: a need in bytes that the part must cover, too.
SizedPart part_of(int slot, const PhaseRecord& record, double risk, const AncestorLimits& most,
                  double memory_peak = 0) {
  SizedPart part{.slot = slot};
  part.samples = std::max(record.cpu_cores.count(), record.memory_bytes.count());
  part.seconds = std::max(record.cpu_cores.total_weight(), record.memory_bytes.total_weight());
  part.runs = record.runs;
  const auto cpu = record.cpu_cores.quantile(1 - risk);
  const auto memory = record.memory_bytes.peak(kForgottenWeight);
  part.enough = cpu && memory && part.samples >= kSizeLeastSamples &&
                (part.seconds >= kSizeLeastSeconds || part.runs >= kSizeLeastRuns);
  if (!part.enough) return part;
  part.cpu_cores = std::min(up_to_centicores(*cpu), most.cpu_cores);
  const double need = std::max(*memory, memory_peak);
  part.memory_bytes = std::min(up_to_mib(need * (1 + kSizeMemoryHeadroom)),
                               std::max(std::floor(most.memory_bytes / kMiBs), 1.0)) * kMiBs;
  return part;
}

double mib_of(const SizedPart& part) { return std::round(part.memory_bytes / kMiBs); }

// The size of the part; empty if it is larger than all.
std::string_view shirt_of(const SizedPart& part) {
  const ShirtSize* shirt = shirt_for(part.cpu_cores, part.memory_bytes);
  return shirt != nullptr ? shirt->name : "";
}

std::string for_docker(const SizedPart& part) {
  return fmt::format("--cpus {:.2f} --memory {:.0f}m", part.cpu_cores, mib_of(part));
}

std::string for_systemd(const SizedPart& part) {
  return fmt::format("CPUQuota={:.0f}% MemoryMax={:.0f}M", part.cpu_cores * 100, mib_of(part));
}

double risk_shown(const SizedPart& part, double risk) {
  return std::min(1.0, std::max(risk, kRuleOfThree / part.samples));
}

json part_json(const SizedPart& part, double risk) {
  json out = {{"enough_history", part.enough}, {"samples", std::round(part.samples)},
              {"hours", part.seconds / 3600}, {"runs", part.runs},
              {"cpu_cores", nullptr}, {"cpu_millicores", nullptr}, {"memory_bytes", nullptr},
              {"memory_mib", nullptr}, {"size", nullptr}, {"docker", nullptr},
              {"systemd", nullptr}, {"risk_shown", nullptr}};
  if (!part.enough) return out;
  out["cpu_cores"] = part.cpu_cores;
  out["cpu_millicores"] = std::llround(part.cpu_cores * 1000);
  out["memory_bytes"] = static_cast<std::uint64_t>(part.memory_bytes);
  out["memory_mib"] = mib_of(part);
  if (const auto size = shirt_of(part); !size.empty()) out["size"] = size;
  out["docker"] = for_docker(part);
  out["systemd"] = for_systemd(part);
  out["risk_shown"] = risk_shown(part, risk);
  return out;
}

std::string letter_of(const SizedPart& part) {
  return part.slot != kUnknownSlot ? phase_letter(part.slot) : "?";
}

json sized_json(const Sized& sized) {
  json out = {{"name", escape_name(sized.name)}, {"kind", sized.kind},
              {"enough_history", sized.overall.enough},
              {"reason", sized.overall.enough ? json() : json(sized.reason)},
              {"overall", part_json(sized.overall, sized.risk)}};
  json phases = json::array();
  for (const SizedPart& part : sized.phases) {
    json one = part_json(part, sized.risk);
    const bool known = part.slot != kUnknownSlot;
    one["phase"] = known ? json(part.slot) : json();
    one["letter"] = letter_of(part);
    one["share"] = part.share;
    phases.push_back(std::move(one));
  }
  out["phases"] = std::move(phases);
  return out;
}

std::string sentence(const Sized& sized) {
  const std::string name = escape_name(sized.name);
  const SizedPart& part = sized.overall;
  if (!part.enough) return name + ": not enough history: " + sized.reason + "\n";
  const std::string_view size = shirt_of(part);
  std::string text = fmt::format(
      "{}: {} {}, {} millicores and {} MiB ({:.0f} samples over {:.1f} hours of {} {})\n", name,
      size.empty() ? "larger than" : "size", size.empty() ? kShirts.back().name : size,
      count_text(std::round(part.cpu_cores * 1000)), count_text(mib_of(part)),
      std::round(part.samples), part.seconds / 3600, part.runs, part.runs == 1 ? "run" : "runs");
  text += fmt::format("  docker run {}\n  systemctl set-property UNIT {}\n", for_docker(part),
                      for_systemd(part));
  text += fmt::format("  CPU: all but {:.3g} % of the samples used less; memory: the highest need, "
                      "plus {:.0f} %\n",
                      sized.risk * 100, kSizeMemoryHeadroom * 100);
  const double shown = risk_shown(part, sized.risk);
  if (shown > sized.risk)
    text += fmt::format("  too few samples to show a risk below {:.2g} %\n", shown * 100);
  return text;
}

std::string phase_table(const Sized& sized, const TextStyle& style) {
  using enum Table::Align;
  Table table({{"PHASE", left}, {"TIME", right}, {"SIZE", left}, {"MILLICORES", right},
               {"MIB", right}, {"SAMPLES", right}});
  for (const SizedPart& part : sized.phases) {
    const std::string size(part.enough ? shirt_of(part) : "-");
    const auto if_enough = [&](double value) {
      return count_text(part.enough ? std::optional(value) : std::nullopt);
    };
    table.add({{letter_of(part)},
               {percent_text(part.share)},
               {size.empty() ? "> " + std::string(kShirts.back().name) : size},
               {if_enough(std::round(part.cpu_cores * 1000))},
               {if_enough(mib_of(part))},
               {count_text(std::round(part.samples))}});
  }
  return table.text(style);
}

}  // namespace

std::span<const ShirtSize> shirt_sizes() { return kShirts; }

const ShirtSize* shirt_for(double cpu_cores, double memory_bytes) {
  const auto found = std::ranges::find_if(kShirts, [&](const ShirtSize& shirt) {
    return shirt.cpu_cores >= cpu_cores && shirt.memory_bytes >= memory_bytes;
  });
  return found == kShirts.end() ? nullptr : &*found;
}

Sized size_of(std::string name, std::string kind, const LearnedPhases* learned, double risk,
              const HostCapacity& host) {
  const AncestorLimits most = within_host(host);
  Sized sized{.name = std::move(name), .kind = std::move(kind), .risk = risk, .overall = {},
              .phases = {}, .reason = {}};
  PhaseRecord all;
  if (learned != nullptr)
    for (const auto& [slot, record] : learned->records) {
      all.cpu_cores.merge(record.cpu_cores, 1);
      all.memory_bytes.merge(record.memory_bytes, 1);
      all.runs = std::max(all.runs, record.runs);
      sized.phases.push_back(part_of(slot, record, risk, most));
    }
  // A run keeps no record of a phase with few samples, but its peak includes them.
  const double peak = learned != nullptr ? highest_of(learned->runs).memory_bytes : 0;
  sized.overall = part_of(-1, all, risk, most, peak);
  for (SizedPart& part : sized.phases)
    part.share = sized.overall.seconds > 0 ? part.seconds / sized.overall.seconds : 0;
  if (learned == nullptr || learned->records.empty())
    sized.reason = "nothing was learned about it yet";
  else if (!sized.overall.enough)
    sized.reason = fmt::format(
        "{:.0f} samples over {:.0f} s of {} run{}; needed are {:.0f} samples over {:.0f} s or of "
        "{} runs",
        sized.overall.samples, sized.overall.seconds, sized.overall.runs,
        sized.overall.runs == 1 ? "" : "s", kSizeLeastSamples, kSizeLeastSeconds, kSizeLeastRuns);
  return sized;
}

json size_json(std::span<const Sized> sizes, double risk) {
  json list = json::array();
  for (const Sized& sized : sizes) list.push_back(sized_json(sized));
  return {{"schema", 1},
          {"risk", risk},
          {"cpu_quantile", 1 - risk},
          {"memory_headroom", kSizeMemoryHeadroom},
          {"sizes", std::move(list)}};
}

std::string render_sizes(std::span<const Sized> sizes, const TextStyle& style) {
  std::string text;
  for (const Sized& sized : sizes) {
    if (!text.empty()) text += '\n';
    text += sentence(sized);
    if (!sized.phases.empty()) text += phase_table(sized, style);
  }
  return text;
}

}  // namespace cgphase
