// Renders list and show.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/output/bursts.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "cli/output/view.h"
#include "policy/decision.h"
#include "protocol/sentence.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr std::size_t kNameWidth = 32;
constexpr std::size_t kShownIdBytes = 12;
constexpr std::size_t kShownGpuBytes = 12;  // "GPU-" or "MIG-" and 8 digits, or a PCI address

// "0.60 of 2.00", or one number if both are the same.
std::string limit_cell(std::optional<double> now, std::optional<double> original,
                       std::string (*text)(std::optional<double>)) {
  if (now == original) return now ? text(now) : "none";
  return (now ? text(now) : "none") + " of " + (original ? text(original) : "none");
}

std::string cpu_limit(const ContainerReport& container) {
  return limit_cell(real(container.limits.cpu_cores()), real(container.original.cpu_cores()),
                    cores_text);
}

std::string memory_limit(const ContainerReport& container) {
  return limit_cell(real(container.limits.memory_bytes()), real(container.original.memory_bytes()),
                    bytes_text);
}

// "1.40, 820 MiB"; "-" if both are absent or 0.
std::string pair_text(std::optional<double> cores, std::optional<double> bytes) {
  if (cores.value_or(0) == 0 && bytes.value_or(0) == 0) return "-";
  return cores_text(cores) + ", " + bytes_text(bytes);
}

std::string saving_text(const ContainerReport& container) {
  return pair_text(container.saving.cpu_cores, real(container.saving.memory_bytes));
}

std::string recommendation_text(const ContainerReport& container) {
  if (!container.recommendation) return "-";
  return pair_text(real(container.recommendation->cpu_cores()),
                   real(container.recommendation->memory_bytes()));
}

// True if a conflicting writer sets the container's limits: it is only observed, whatever its mode.
bool has_rival(const ContainerReport& container) {
  return container.cpu_blocked_by == Verdict::rival ||
         container.memory_blocked_by == Verdict::rival;
}

Tone mode_tone(const ContainerReport& container) {
  if (!container.container.hands_off.empty() || container.paused || has_rival(container))
    return Tone::dim;
  return container.mode == Mode::enforce ? Tone::good : Tone::plain;
}

Tone phase_tone(const ContainerReport& container) {
  return container.phase.known() ? Tone::plain : Tone::dim;
}

std::string blocked_by_text(const ContainerReport& container) {
  const std::optional<Verdict>&cpu = container.cpu_blocked_by,
        &memory = container.memory_blocked_by;
  if (!cpu && !memory) return "-";
  if (cpu == memory) return to_string(*cpu);
  return fmt::format("cpu {}, memory {}", cpu ? to_string(*cpu) : "-",
                     memory ? to_string(*memory) : "-");
}

// Below a millisecond, which is the smallest unit of duration_text(), whole microseconds.
std::string usec_text(std::optional<double> usec) {
  if (!usec) return "-";
  const double whole = std::round(*usec);
  return whole >= 1 && whole < 1000 ? fmt::format("{:.0f} us", whole) : duration_text(*usec / 1e6);
}

std::string or_dash(std::string text) { return text.empty() ? "-" : text; }

// Shortens hexadecimal ids as the engines do; other ids stay whole.
std::string short_id(const ContainerReport& container) {
  const std::string id = escape_name(container.container.engine_id);
  const bool hex = id.find_first_not_of("0123456789abcdef") == std::string::npos;
  return or_dash(hex ? id.substr(0, kShownIdBytes) : id);
}

// Ids of the GPUs, each cut to `bytes`; "-" if there is none.
std::string gpus_text(const ContainerReport& container, std::size_t bytes) {
  std::string text;
  for (const std::string& id : container.gpu_ids)
    text += (text.empty() ? "" : ", ") + escape_name(id).substr(0, bytes);
  return or_dash(text);
}

// Counts since the daemon started; empty if nothing is counted.
std::string run_queue_text(const RunQueueStat& stat) {
  if (!stat.waits) return "";
  return usec_text(real(stat.wait_usec)) + " waited in " + count_text(real(stat.waits)) +
         " waits, recently up to " + usec_text(real(stat.longest_wait_usec)) + "; " +
         count_text(real(stat.voluntary_switches)) + " voluntary, " +
         count_text(real(stat.involuntary_switches)) + " involuntary switches";
}

std::string network_text(const NetworkStat& stat) {
  std::string text;
  if (stat.receive_bytes)
    text = bytes_text(real(stat.receive_bytes)) + " received, " +
           bytes_text(real(stat.transmit_bytes)) + " sent";
  if (stat.tcp_retransmits)
    text += (text.empty() ? "" : ", ") + count_text(real(stat.tcp_retransmits)) +
            " TCP segments retransmitted";
  return text;
}

std::string block_text(const BlockStat& stat) {
  if (!stat.requests) return "";
  std::string text =
      bytes_text(real(stat.bytes)) + " in " + count_text(real(stat.requests)) + " requests";
  if (stat.latency_usec && *stat.requests > 0)
    text += ", " + usec_text(*real(stat.latency_usec) / static_cast<double>(*stat.requests)) +
            " each";
  return text;
}

std::vector<Table::Column> list_columns(const TextStyle& style) {
  using enum Table::Align;
  std::vector<Table::Column> columns = {{"NAME", left},      {"MODE", left},
                                        {"PHASE", left},     {"FOR", right},
                                        {"CPU", right},      {"CPU LIMIT", right},
                                        {"MEMORY", right},   {"MEMORY LIMIT", right},
                                        {"RECOMMENDED", right}, {"SAVED", right},
                                        {"NEXT", left}};
  if (style.wide)
    columns.insert(columns.end(), {{"GPU", right},
                                   {"GPU MEMORY", right},
                                   {"GPUS", left},
                                   {"ENGINE", left},
                                   {"ID", left},
                                   {"IMAGE", left},
                                   {"BLOCKED BY", left},
                                   {"THROTTLED", right},
                                   {"OOM", right},
                                   {"PATH", left}});
  return columns;
}

std::vector<Table::Cell> list_row(const ContainerReport& container, const TextStyle& style) {
  const std::string name = escape_name(container.container.name);
  std::vector<Table::Cell> row = {
      {style.shorten ? shortened_name(name, kNameWidth) : name, Tone::plain},
      {mode_text(container), mode_tone(container)},
      {phase_text(container), phase_tone(container)},
      {duration_text(container.seconds_in_phase), Tone::plain},
      {cores_text(container.cpu_cores), Tone::plain},
      {cpu_limit(container), Tone::plain},
      {bytes_text(real(container.memory_need_bytes)), Tone::plain},
      {memory_limit(container), Tone::plain},
      {recommendation_text(container), Tone::plain},
      {saving_text(container), Tone::good},
      {next_text(container), Tone::plain}};
  if (!style.wide) return row;
  row.insert(row.end(),
             {{cores_text(container.gpu.utilisation_ratio), Tone::plain},
              {bytes_text(real(container.gpu.memory_bytes)), Tone::plain},
              {gpus_text(container, kShownGpuBytes), Tone::plain},
              {to_string(container.container.engine), Tone::plain},
              {short_id(container), Tone::plain},
              {or_dash(escape_name(container.container.image)), Tone::plain},
              {blocked_by_text(container), Tone::plain},
              {usec_text(real(container.throttled_usec)), Tone::plain},
              {count_text(real(container.oom_kills)),
               container.oom_kills.value_or(0) > 0 ? Tone::bad : Tone::plain},
              {escape_name(container.container.path), Tone::plain}});
  return row;
}

std::string phases_seen_text(const ContainerReport& container) {
  std::string text;
  for (const PhaseSeen& seen : container.phases_seen)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", phase_letter(seen.phase), seen.steps);
  return text.empty() ? "-" : text + " steps";
}

std::string terms_text(const Terms& terms) {
  std::string text = std::string("class ") + to_string(terms.service_class);
  if (terms.cpu_min) text += ", at least " + cores_text(real(terms.cpu_min)) + " cores";
  if (terms.memory_min) text += ", at least " + bytes_text(real(terms.memory_min)) + " of memory";
  if (terms.cpu_max) text += ", up to " + cores_text(real(terms.cpu_max)) + " cores";
  if (terms.memory_max) text += ", up to " + bytes_text(real(terms.memory_max)) + " of memory";
  if (terms.sleep) text += *terms.sleep ? ", may sleep" : ", never sleeps";
  if (terms.freeze_longest)
    text += fmt::format(", frozen for at most {}", duration_text(terms.freeze_longest->count()));
  return text;
}

std::string sleep_text(const ContainerReport& report) {
  std::string text;
  if (report.asleep_bytes) text = bytes_text(real(report.asleep_bytes)) + " asleep";
  if (!report.last_wake) return text;
  const WakeReport& wake = *report.last_wake;
  text += (text.empty() ? "" : "; ") + std::string("woke with ") +
          bytes_text(static_cast<double>(wake.asleep_bytes)) + " asleep";
  if (wake.waited_usec) text += " and waited " + usec_text(real(wake.waited_usec));
  return text;
}

std::string weight_text(const ContainerReport& container) {
  return limit_cell(real(container.limits.cpu_weight), real(container.original.cpu_weight),
                    count_text);
}

std::string pinned_text(const Pin& pin) {
  return (pin.cpu ? cores_text(real(pin.cpu)) + " cores" : "") +
         (pin.cpu && pin.memory ? ", " : "") +
         (pin.memory ? bytes_text(real(pin.memory)) + " of memory" : "");
}

}  // namespace

std::string mode_text(const ContainerReport& container) {
  if (!container.container.hands_off.empty()) return "hands off";
  if (container.paused) return "paused";
  if (has_rival(container)) return to_string(Verdict::rival);
  const bool unknown = !container.container.labels_unknown.empty();
  return std::string(to_string(container.mode)) + (unknown ? ", labels unknown" : "");
}

std::string phase_text(const ContainerReport& container) {
  const std::string letter = phase_letter(container.phase);
  return container.phase.known() ? letter + " " + percent_text(phase_confidence(container.phase))
                                 : letter;
}

std::string next_text(const ContainerReport& container) {
  if (container.next.empty() || container.next.front().phase < 0) return "-";
  const NextPhase& next = container.next.front();
  std::optional<double> seconds;
  if (next.in_seconds) seconds = static_cast<double>(*next.in_seconds);
  return fmt::format("{} {} in {}", phase_letter(next.phase), percent_text(next.probability),
                     duration_text(seconds));
}

std::string render_list(const ListReply& reply, const TextStyle& style) {
  if (reply.containers.empty()) return style.legend ? "no containers seen\n" : "";
  Table table(list_columns(style));
  for (const ContainerReport& container : reply.containers) table.add(list_row(container, style));
  return table.text(style);
}

std::string render_show(const ContainerReport& report, const json& bursts,
                        const TextStyle& style) {
  Table table({{"", Table::Align::left}, {"", Table::Align::left}});
  const auto line = [&](const char* title, std::string text) {
    table.add({{title, Tone::dim}, {or_dash(std::move(text)), Tone::plain}});
  };
  const ContainerInfo& container = report.container;
  line("name", escape_name(container.name));
  line("engine", to_string(container.engine));
  line("id", escape_name(container.engine_id));
  line("image", escape_name(container.image));
  line("path", escape_name(container.path));
  line("mode", mode_text(report));
  if (!container.hands_off.empty()) line("hands off", printable(container.hands_off));
  if (!container.labels_unknown.empty()) line("labels", printable(container.labels_unknown));
  if (report.terms) line("terms", terms_text(*report.terms));
  if (report.limits.cpu_weight != report.original.cpu_weight)
    line("cpu weight", weight_text(report));
  if (report.limits.frozen == true)
    line("frozen", report.original.frozen == true ? "by somebody else" : "by cgphase");
  if (report.pinned.any()) line("pinned", pinned_text(report.pinned));
  line("phase", phase_text(report) + " (" + to_string(report.phase.state) + "), for " +
                    duration_text(report.seconds_in_phase));
  line("next", next_text(report));
  line("phases seen", phases_seen_text(report));
  line("cpu", cores_text(report.cpu_cores) + " cores, limit " + cpu_limit(report));
  line("memory", bytes_text(real(report.memory_need_bytes)) + " needed, " +
                     bytes_text(real(report.memory_current_bytes)) + " charged, limit " +
                     memory_limit(report));
  if (const std::string soft = soft_limit_text(report.original); !soft.empty())
    line("original", soft);
  if (!report.gpu_ids.empty())
    line("gpu", cores_text(report.gpu.utilisation_ratio) + " busy, " +
                    bytes_text(real(report.gpu.memory_bytes)) + ", on " +
                    gpus_text(report, std::string::npos));
  for (const auto& [title, text] : {std::pair("run queue", run_queue_text(report.run_queue)),
                                    std::pair("network", network_text(report.network)),
                                    std::pair("block", block_text(report.block))})
    if (!text.empty()) line(title, text);
  line("recommended", recommendation_text(report));
  line("saved", saving_text(report));
  line("blocked by", blocked_by_text(report));
  line("throttled", usec_text(real(report.throttled_usec)));
  line("memory wait", usec_text(real(report.memory_delay_usec)));
  if (const std::string text = sleep_text(report); !text.empty()) line("sleep", text);
  line("oom kills", count_text(real(report.oom_kills)));
  TextStyle bare = style;
  bare.legend = false;
  const std::string burst_table = render_container_bursts(bursts, style);
  return table.text(bare) + (burst_table.empty() ? "" : '\n' + burst_table);
}

}  // namespace cgphase
