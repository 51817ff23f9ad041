// Renders list and show.
#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "cli/output/bursts.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "cli/output/view.h"
#include "policy/decision.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr std::size_t kNameWidth = 32;
constexpr std::size_t kShownIdBytes = 12;
constexpr std::size_t kShownGpuBytes = 12;  // "GPU-" or "MIG-" and 8 digits, or a PCI address

// "0.60 of 2.00", or one number if both are the same.
std::string limit_cell(const json& container, const char* now_path, const char* original_path,
                       std::string (*text)(std::optional<double>)) {
  const auto now = view_number(container, now_path);
  const auto original = view_number(container, original_path);
  if (now == original) return now ? text(now) : "none";
  return (now ? text(now) : "none") + " of " + (original ? text(original) : "none");
}

std::string cpu_limit(const json& container) {
  return limit_cell(container, "/limits/cpu_cores", "/original/cpu_cores", cores_text);
}

std::string memory_limit(const json& container) {
  return limit_cell(container, "/limits/memory_bytes", "/original/memory_bytes", bytes_text);
}

// "1.40, 820 MiB"; "-" if both are absent or 0.
std::string pair_text(const json& container, const char* cores_path, const char* bytes_path) {
  const auto cores = view_number(container, cores_path);
  const auto bytes = view_number(container, bytes_path);
  if (cores.value_or(0) == 0 && bytes.value_or(0) == 0) return "-";
  return cores_text(cores) + ", " + bytes_text(bytes);
}

std::string saving_text(const json& container) {
  return pair_text(container, "/saving/cpu_cores", "/saving/memory_bytes");
}

std::string proposal_text(const json& container) {
  return pair_text(container, "/proposal/cpu_cores", "/proposal/memory_bytes");
}

// True if a conflicting writer sets the container's limits: it is only observed, whatever its mode.
bool has_rival(const json& container) {
  constexpr const char* kRival = to_string(Verdict::rival);
  return view_text(container, "/holding/cpu") == kRival ||
         view_text(container, "/holding/memory") == kRival;
}

Tone mode_tone(const json& container) {
  if (!view_text(container, "/hands_off").empty() || view_flag(container, "/paused") ||
      has_rival(container))
    return Tone::dim;
  return view_text(container, "/mode") == "enforce" ? Tone::good : Tone::plain;
}

Tone phase_tone(const json& container) {
  return view_text(container, "/phase/state") == "known" ? Tone::plain : Tone::dim;
}

std::string holding_text(const json& container) {
  const std::string cpu = view_text(container, "/holding/cpu");
  const std::string memory = view_text(container, "/holding/memory");
  if (cpu.empty() && memory.empty()) return "-";
  if (cpu == memory) return cpu;
  return "cpu " + (cpu.empty() ? "-" : cpu) + ", memory " + (memory.empty() ? "-" : memory);
}

// Below a millisecond, which is the smallest unit of duration_text(), whole microseconds.
std::string usec_text(std::optional<double> usec) {
  if (!usec) return "-";
  const double whole = std::round(*usec);
  return whole >= 1 && whole < 1000 ? fmt::format("{:.0f} us", whole) : duration_text(*usec / 1e6);
}

std::string or_dash(std::string text) { return text.empty() ? "-" : text; }

// Shortens hexadecimal ids as the engines do; other ids stay whole.
std::string short_id(const json& container) {
  const std::string id = view_text(container, "/engine_id");
  const bool hex = id.find_first_not_of("0123456789abcdef") == std::string::npos;
  return or_dash(hex ? id.substr(0, kShownIdBytes) : id);
}

// Ids of the GPUs, each cut to `bytes`; "-" if there is none.
std::string gpus_text(const json& container, std::size_t bytes) {
  std::string text;
  for (const json& id : view_array(container, "/gpu/ids"))
    text += (text.empty() ? "" : ", ") + view_text(id, "").substr(0, bytes);
  return or_dash(text);
}

// Counts since the daemon started; empty if nothing is counted.
std::string run_queue_text(const json& container) {
  const json& stat = view(container, "/run_queue");
  const auto waits = view_number(stat, "/waits");
  if (!waits) return "";
  return usec_text(view_number(stat, "/wait_usec")) + " waited in " + count_text(waits) +
         " waits, recently up to " + usec_text(view_number(stat, "/longest_wait_usec")) + "; " +
         count_text(view_number(stat, "/voluntary_switches")) + " voluntary, " +
         count_text(view_number(stat, "/involuntary_switches")) + " involuntary switches";
}

std::string network_text(const json& container) {
  const json& stat = view(container, "/network");
  std::string text;
  if (const auto received = view_number(stat, "/receive_bytes"))
    text = bytes_text(received) + " received, " + bytes_text(view_number(stat, "/transmit_bytes")) +
           " sent";
  if (const auto again = view_number(stat, "/tcp_retransmits"))
    text += (text.empty() ? "" : ", ") + count_text(again) + " TCP segments retransmitted";
  return text;
}

std::string block_text(const json& container) {
  const json& stat = view(container, "/block");
  const auto requests = view_number(stat, "/requests");
  if (!requests) return "";
  std::string text = bytes_text(view_number(stat, "/bytes")) + " in " + count_text(requests) +
                     " requests";
  const auto latency = view_number(stat, "/latency_usec");
  if (latency && *requests > 0) text += ", " + usec_text(*latency / *requests) + " each";
  return text;
}

std::vector<Table::Column> list_columns(const TextStyle& style) {
  using enum Table::Align;
  std::vector<Table::Column> columns = {{"NAME", left},      {"MODE", left},
                                        {"PHASE", left},     {"FOR", right},
                                        {"CPU", right},      {"CPU LIMIT", right},
                                        {"MEMORY", right},   {"MEMORY LIMIT", right},
                                        {"PROPOSAL", right}, {"SAVED", right},
                                        {"NEXT", left}};
  if (style.wide)
    columns.insert(columns.end(), {{"GPU", right},
                                   {"GPU MEMORY", right},
                                   {"GPUS", left},
                                   {"ENGINE", left},
                                   {"ID", left},
                                   {"IMAGE", left},
                                   {"HOLDING", left},
                                   {"THROTTLED", right},
                                   {"OOM", right},
                                   {"PATH", left}});
  return columns;
}

std::vector<Table::Cell> list_row(const json& container, const TextStyle& style) {
  const std::string name = view_text(container, "/name");
  std::vector<Table::Cell> row = {
      {style.shorten ? shortened_name(name, kNameWidth) : name, Tone::plain},
      {mode_text(container), mode_tone(container)},
      {phase_text(container), phase_tone(container)},
      {duration_text(view_number(container, "/seconds_in_phase")), Tone::plain},
      {cores_text(view_number(container, "/usage/cpu_cores")), Tone::plain},
      {cpu_limit(container), Tone::plain},
      {bytes_text(view_number(container, "/usage/memory_need_bytes")), Tone::plain},
      {memory_limit(container), Tone::plain},
      {proposal_text(container), Tone::plain},
      {saving_text(container), Tone::good},
      {next_text(container), Tone::plain}};
  if (!style.wide) return row;
  const auto kills = view_number(container, "/oom_kills");
  row.insert(row.end(),
             {{cores_text(view_number(container, "/gpu/utilisation_ratio")), Tone::plain},
              {bytes_text(view_number(container, "/gpu/memory_bytes")), Tone::plain},
              {gpus_text(container, kShownGpuBytes), Tone::plain},
              {or_dash(view_text(container, "/engine")), Tone::plain},
              {short_id(container), Tone::plain},
              {or_dash(view_text(container, "/image")), Tone::plain},
              {holding_text(container), Tone::plain},
              {usec_text(view_number(container, "/throttled_usec")), Tone::plain},
              {count_text(kills), kills.value_or(0) > 0 ? Tone::bad : Tone::plain},
              {view_text(container, "/path"), Tone::plain}});
  return row;
}

std::string phases_seen_text(const json& container) {
  std::string text;
  for (const json& seen : view_array(container, "/phases_seen"))
    text += (text.empty() ? "" : ", ") + view_text(seen, "/letter") + " " +
            count_text(view_number(seen, "/steps"));
  return text.empty() ? "-" : text + " steps";
}

}  // namespace

std::string mode_text(const json& container) {
  if (!view_text(container, "/hands_off").empty()) return "hands off";
  if (view_flag(container, "/paused")) return "paused";
  if (has_rival(container)) return to_string(Verdict::rival);
  return or_dash(view_text(container, "/mode"));
}

std::string phase_text(const json& container) {
  const std::string letter = or_dash(view_text(container, "/phase/letter"));
  if (view_text(container, "/phase/state") != "known") return letter;
  return letter + " " + percent_text(view_number(container, "/phase/confidence"));
}

std::string next_text(const json& container) {
  const json& next = view_array(container, "/next");
  if (next.empty() || view_number(next[0], "/phase").value_or(0) < 0) return "-";
  // 0: the time is unknown (model/forecast.h).
  auto seconds = view_number(next[0], "/in_seconds");
  if (seconds == 0) seconds.reset();
  return fmt::format("{} {} in {}", or_dash(view_text(next[0], "/letter")),
                     percent_text(view_number(next[0], "/probability")), duration_text(seconds));
}

std::string render_list(const json& body, const TextStyle& style) {
  const json& containers = view_array(body, "/containers");
  if (containers.empty()) return style.legend ? "no containers seen\n" : "";
  Table table(list_columns(style));
  for (const json& container : containers) table.add(list_row(container, style));
  return table.text(style);
}

std::string render_show(const json& body, const TextStyle& style) {
  Table table({{"", Table::Align::left}, {"", Table::Align::left}});
  const auto line = [&](const char* title, std::string text) {
    table.add({{title, Tone::dim}, {or_dash(std::move(text)), Tone::plain}});
  };
  line("name", view_text(body, "/name"));
  line("engine", view_text(body, "/engine"));
  line("id", view_text(body, "/engine_id"));
  line("image", view_text(body, "/image"));
  line("path", view_text(body, "/path"));
  line("mode", mode_text(body));
  if (const std::string owner = view_text(body, "/hands_off"); !owner.empty())
    line("hands off", owner);
  const auto pinned_cpu = view_number(body, "/pinned/cpu_cores");
  const auto pinned_memory = view_number(body, "/pinned/memory_bytes");
  if (pinned_cpu || pinned_memory)
    line("pinned", (pinned_cpu ? cores_text(pinned_cpu) + " cores" : "") +
                       (pinned_cpu && pinned_memory ? ", " : "") +
                       (pinned_memory ? bytes_text(pinned_memory) + " of memory" : ""));
  line("phase", phase_text(body) + " (" + or_dash(view_text(body, "/phase/state")) + "), for " +
                    duration_text(view_number(body, "/seconds_in_phase")));
  line("next", next_text(body));
  line("phases seen", phases_seen_text(body));
  line("cpu", cores_text(view_number(body, "/usage/cpu_cores")) + " cores, limit " +
                  cpu_limit(body));
  line("memory", bytes_text(view_number(body, "/usage/memory_need_bytes")) + " needed, " +
                     bytes_text(view_number(body, "/usage/memory_current_bytes")) +
                     " charged, limit " + memory_limit(body));
  if (!view_array(body, "/gpu/ids").empty())
    line("gpu", cores_text(view_number(body, "/gpu/utilisation_ratio")) + " busy, " +
                    bytes_text(view_number(body, "/gpu/memory_bytes")) + ", on " +
                    gpus_text(body, std::string::npos));
  for (const auto& [title, text] : {std::pair("run queue", run_queue_text(body)),
                                    std::pair("network", network_text(body)),
                                    std::pair("block", block_text(body))})
    if (!text.empty()) line(title, text);
  line("proposal", proposal_text(body));
  line("saved", saving_text(body));
  line("holding", holding_text(body));
  line("throttled", usec_text(view_number(body, "/throttled_usec")));
  line("memory wait", usec_text(view_number(body, "/memory_delay_usec")));
  line("oom kills", count_text(view_number(body, "/oom_kills")));
  TextStyle bare = style;
  bare.legend = false;
  const std::string bursts = render_container_bursts(view(body, "/bursts"), style);
  return table.text(bare) + (bursts.empty() ? "" : '\n' + bursts);
}

}  // namespace cgphase
