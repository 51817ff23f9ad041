// Renders status and doctor.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/text.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "cli/output/time_text.h"
#include "cli/output/view.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr double kSecondsPerHour = 3600;

class Lines {
 public:
  void add(const char* title, std::string text, Tone tone = Tone::plain) {
    table_.add({{title, Tone::dim}, {std::move(text), tone}});
  }
  std::string text(TextStyle style) const {
    style.legend = false;
    return table_.text(style);
  }

 private:
  Table table_{{{"", Table::Align::left}, {"", Table::Align::left}}};
};

std::string heading(const StatusReport& report, const TextStyle& style) {
  return fmt::format("cgphase {}, mode {}, policy {}, up {}\n", printable(report.version),
                     toned(to_string(report.mode), Tone::strong, style),
                     printable(report.policy), duration_text(report.uptime_seconds));
}

std::string containers_text(const StatusReport& report) {
  const int observe = report.containers_observe, advise = report.containers_advise,
            enforce = report.containers_enforce;
  std::string text = fmt::format("{} seen: {} observe, {} advise, {} enforce",
                                 observe + advise + enforce, observe, advise, enforce);
  if (report.containers_hands_off > 0)
    text += fmt::format(" ({} hands off)", report.containers_hands_off);
  return text;
}

std::string saved_text(const StatusReport& report) {
  return fmt::format("now {} cores, {}; since cgphased started {:.2f} core-hours, {:.2f} GiB-hours",
                     cores_text(report.saved_now.cpu_cores),
                     bytes_text(real(report.saved_now.memory_bytes)),
                     report.saved_core_seconds / kSecondsPerHour,
                     report.saved_byte_seconds / kSecondsPerHour / 0x1p30);
}

std::string time_of_day(WallTime time, const TextStyle& style) {
  return time_text(seconds_since_epoch(time), style.utc);
}

std::string started_text(const StatusReport& report, const TextStyle& style) {
  return "since cgphased started at " + time_of_day(report.started, style);
}

// Covers the whole journal. Without a journal it covers only this run of the daemon, and says so.
std::string changes_text(const StatusReport& report, const TextStyle& style) {
  if (!report.changed_anything)
    return report.store.state == "off"
               ? "nothing has been changed " + started_text(report, style)
               : "nothing has been changed on this host";
  if (report.writes_up + report.writes_down > 0)
    return fmt::format("{} up, {} down, {} trials reverted {}", report.writes_up,
                       report.writes_down, report.trials_reverted, started_text(report, style));
  return fmt::format("none {}; the last one before was at {}", started_text(report, style),
                     time_of_day(report.last_written_before.value_or(WallTime{}), style));
}

std::string model_text(const StatusReport& report) {
  const auto& model = report.model;
  std::string text = fmt::format("{} ({} phases, {} features, step {})", escape_name(model.path),
                                 model.phases, model.features, duration_text(model.step_seconds));
  if (model.origin == "installed") text += ", installed on this host";
  return model.provenance.empty() ? text : text + ", " + printable(model.provenance);
}

std::string overhead_text(const StatusReport& report) {
  const auto cores = report.overhead_cpu_cores;
  return (cores ? fmt::format("{:.2f} % of one core", 100 * *cores) : "CPU not measured yet") +
         ", " + bytes_text(real(report.rss_bytes));
}

void add_companion(Lines& lines, const StatusReport& report) {
  if (report.companion_alive) return lines.add("companion", "alive");
  if (!report.companion_needed)
    return lines.add("companion", "not needed: no limit can be written on this host");
  lines.add("companion", "not running: if the daemon dies, limits are not restored", Tone::bad);
}

void add_sources(Lines& lines, const StatusReport& report) {
  const char* title = "sources";
  for (const SourceReport& source : report.sources) {
    std::string text = printable(source.name) + (source.present ? " ok" : " off");
    if (!source.detail.empty())
      text += (source.present ? ", " : ": ") + printable(source.detail);
    lines.add(title, text, source.present ? Tone::plain : Tone::caution);
    title = "";
  }
}

void add_gpus(Lines& lines, const StatusReport& report) {
  const char* title = "gpus";
  for (const GpuReport& gpu : report.gpus) {
    const std::string name = gpu.name.empty() ? "" : " " + escape_name(gpu.name);
    lines.add(title, fmt::format("{}{}: {} busy, {} of {}", escape_name(gpu.id), name,
                                 percent_text(gpu.use.utilisation_ratio),
                                 bytes_text(real(gpu.use.memory_bytes)),
                                 bytes_text(real(gpu.memory_total_bytes))));
    title = "";
  }
}

Tone level_tone(const std::string& level) {
  return level == "ok" ? Tone::good : level == "warn" ? Tone::caution : Tone::bad;
}

// What the history lost since the daemon started.
std::string lost_text(const StatusReport& report) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  const auto count = [&](std::uint64_t number, const char* what) {
    if (number > 0) add(fmt::format("{} {}", number, what));
  };
  const auto& store = report.store;
  count(store.dropped_samples, "samples dropped because they could not be written");
  count(store.dropped_entries, "journal entries dropped because they could not be written");
  count(store.left_out, "refusals over one user's share of the journal");
  count(store.damaged, "damaged blocks or rows");
  if (!store.quarantined.empty())
    add("the earlier history file, kept as " + escape_name(store.quarantined));
  return text;
}

// What the daemon changed and saves.
void add_effects(Lines& lines, const StatusReport& report, const TextStyle& style) {
  lines.add("changes", changes_text(report, style),
            report.changed_anything ? Tone::plain : Tone::good);
  if (report.kill_switch)
    lines.add("kill switch",
              "on: limits are restored and containers only observed until the file is removed",
              Tone::caution);
  lines.add("containers", containers_text(report));
  lines.add("saved", saved_text(report));
}

}  // namespace

std::string render_summary(const StatusReport& report, const TextStyle& style) {
  Lines lines;
  add_effects(lines, report, style);
  lines.add("overhead", overhead_text(report));
  return heading(report, style) + lines.text(style);
}

std::string render_status(const StatusReport& report, const TextStyle& style) {
  Lines lines;
  add_effects(lines, report, style);
  lines.add("model", model_text(report));
  lines.add("store", bytes_text(real(report.store.size_bytes)) + " of " +
                         bytes_text(real(report.store.cap_bytes)) + ", " +
                         printable(report.store.state));
  if (const std::string lost = lost_text(report); !lost.empty())
    lines.add("lost", lost, Tone::caution);
  lines.add("overhead", overhead_text(report));
  add_sources(lines, report);
  add_gpus(lines, report);
  add_companion(lines, report);
  for (const std::string& line : report.degraded)
    lines.add("degraded", printable(line), Tone::caution);
  return heading(report, style) + lines.text(style);
}

std::string render_doctor(const json& body, const TextStyle& style) {
  Table table({{"", Table::Align::left}, {"", Table::Align::left}, {"", Table::Align::left}});
  for (const json& finding : view_array(body, "/findings")) {
    const std::string level = view_text(finding, "/level");
    table.add({{level, level_tone(level)},
               {view_text(finding, "/name"), Tone::plain},
               {view_text(finding, "/text"), Tone::plain}});
    const std::string way_out = view_text(finding, "/way_out");
    if (way_out.empty()) continue;
    table.add({{"", Tone::plain}, {"", Tone::plain}, {"-> " + way_out, Tone::dim}});
  }
  TextStyle bare = style;
  bare.legend = false;
  return table.text(bare);
}

}  // namespace cgphase
