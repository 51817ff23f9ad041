// Renders status and doctor.
#include <fmt/format.h>

#include <vector>

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

std::string heading(const json& body, const TextStyle& style) {
  return fmt::format("cgphase {}, mode {}, policy {}, up {}\n", view_text(body, "/version"),
                     toned(view_text(body, "/mode"), Tone::strong, style),
                     view_text(body, "/policy"),
                     duration_text(view_number(body, "/uptime_seconds")));
}

std::string containers_text(const json& body) {
  const double observe = view_number(body, "/containers/observe").value_or(0);
  const double advise = view_number(body, "/containers/advise").value_or(0);
  const double enforce = view_number(body, "/containers/enforce").value_or(0);
  const double hands_off = view_number(body, "/containers/hands_off").value_or(0);
  std::string text = fmt::format("{:.0f} seen: {:.0f} observe, {:.0f} advise, {:.0f} enforce",
                                 observe + advise + enforce, observe, advise, enforce);
  if (hands_off > 0) text += fmt::format(" ({:.0f} hands off)", hands_off);
  return text;
}

std::string saved_text(const json& body) {
  const double core_seconds = view_number(body, "/saved_core_seconds").value_or(0);
  const double byte_seconds = view_number(body, "/saved_byte_seconds").value_or(0);
  return fmt::format("now {} cores, {}; since cgphased started {:.2f} core-hours, {:.2f} GiB-hours",
                     cores_text(view_number(body, "/saved_now/cpu_cores")),
                     bytes_text(view_number(body, "/saved_now/memory_bytes")),
                     core_seconds / kSecondsPerHour, byte_seconds / kSecondsPerHour / 0x1p30);
}

std::string started_text(const json& body, const TextStyle& style) {
  return "since cgphased started at " +
         time_text(view_number(body, "/started").value_or(0), style.utc);
}

// Covers the whole journal. Without a journal it covers only this run of the daemon, and says so.
std::string changes_text(const json& body, const TextStyle& style) {
  const auto up = view_number(body, "/writes/up"), down = view_number(body, "/writes/down");
  if (!view_flag(body, "/changed_anything"))
    return view_text(body, "/store/state") == "off"
               ? "nothing has been changed " + started_text(body, style)
               : "nothing has been changed on this host";
  if (up.value_or(0) + down.value_or(0) > 0)
    return fmt::format("{} up, {} down, {} trials reverted {}", count_text(up), count_text(down),
                       count_text(view_number(body, "/trials_reverted")),
                       started_text(body, style));
  return fmt::format("none {}; the last one before was at {}", started_text(body, style),
                     time_text(view_number(body, "/last_written_before").value_or(0), style.utc));
}

std::string model_text(const json& body) {
  std::string text =
      fmt::format("{} ({} phases, {} features, step {})", view_text(body, "/model/path"),
                  count_text(view_number(body, "/model/phases")),
                  count_text(view_number(body, "/model/features")),
                  duration_text(view_number(body, "/model/step_seconds")));
  const std::string provenance = view_text(body, "/model/provenance");
  if (view_text(body, "/model/origin") == "installed") text += ", installed on this host";
  return provenance.empty() ? text : text + ", " + provenance;
}

std::string overhead_text(const json& body) {
  const auto cores = view_number(body, "/overhead_cpu_cores");
  return (cores ? fmt::format("{:.2f} % of one core", 100 * *cores) : "CPU not measured yet") +
         ", " + bytes_text(view_number(body, "/rss_bytes"));
}

void add_companion(Lines& lines, const json& body) {
  if (view_flag(body, "/companion_alive")) return lines.add("companion", "alive");
  if (const json& needed = view(body, "/companion_needed"); needed.is_boolean() && !needed)
    return lines.add("companion", "not needed: no limit can be written on this host");
  lines.add("companion", "not running: if the daemon dies, limits are not restored", Tone::bad);
}

void add_sources(Lines& lines, const json& body) {
  const char* title = "sources";
  for (const json& source : view_array(body, "/sources")) {
    const bool present = view_flag(source, "/present");
    const std::string detail = view_text(source, "/detail");
    std::string text = view_text(source, "/name") + (present ? " ok" : " off");
    if (!detail.empty()) text += (present ? ", " : ": ") + detail;
    lines.add(title, text, present ? Tone::plain : Tone::caution);
    title = "";
  }
}

void add_gpus(Lines& lines, const json& body) {
  const char* title = "gpus";
  for (const json& gpu : view_array(body, "/gpus")) {
    const std::string name = view_text(gpu, "/name");
    lines.add(title, fmt::format("{}{}: {} busy, {} of {}", view_text(gpu, "/id"),
                                 name.empty() ? "" : " " + name,
                                 percent_text(view_number(gpu, "/utilisation_ratio")),
                                 bytes_text(view_number(gpu, "/memory_bytes")),
                                 bytes_text(view_number(gpu, "/memory_total_bytes"))));
    title = "";
  }
}

Tone level_tone(const std::string& level) {
  return level == "ok" ? Tone::good : level == "warn" ? Tone::caution : Tone::bad;
}

// What the history lost since the daemon started.
std::string lost_text(const json& body) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  const auto count = [&](const char* path, const char* what) {
    if (const double number = view_number(body, path).value_or(0); number > 0)
      add(fmt::format("{:.0f} {}", number, what));
  };
  count("/store/dropped_samples", "samples dropped because memory was full");
  count("/store/dropped_entries", "journal entries dropped because memory was full");
  count("/store/left_out", "refusals over one user's share of the journal");
  count("/store/damaged", "damaged blocks or rows");
  if (const std::string kept = view_text(body, "/store/quarantined"); !kept.empty())
    add("the content of a damaged file, kept as " + kept);
  return text;
}

// What the daemon changed and saves.
void add_effects(Lines& lines, const json& body, const TextStyle& style) {
  lines.add("changes", changes_text(body, style),
            view_flag(body, "/changed_anything") ? Tone::plain : Tone::good);
  if (view_flag(body, "/kill_switch"))
    lines.add("kill switch",
              "on: limits are restored and containers only observed until the file is removed",
              Tone::caution);
  lines.add("containers", containers_text(body));
  lines.add("saved", saved_text(body));
}

}  // namespace

std::string render_summary(const json& body, const TextStyle& style) {
  Lines lines;
  add_effects(lines, body, style);
  lines.add("overhead", overhead_text(body));
  return heading(body, style) + lines.text(style);
}

std::string render_status(const json& body, const TextStyle& style) {
  Lines lines;
  add_effects(lines, body, style);
  lines.add("model", model_text(body));
  lines.add("store", bytes_text(view_number(body, "/store/size_bytes")) + " of " +
                         bytes_text(view_number(body, "/store/cap_bytes")) + ", " +
                         view_text(body, "/store/state"));
  if (const std::string lost = lost_text(body); !lost.empty())
    lines.add("lost", lost, Tone::caution);
  lines.add("overhead", overhead_text(body));
  add_sources(lines, body);
  add_gpus(lines, body);
  add_companion(lines, body);
  for (const json& line : view_array(body, "/degraded"))
    lines.add("degraded", view_text(line, ""), Tone::caution);
  return heading(body, style) + lines.text(style);
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
