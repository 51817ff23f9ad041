#include "agent/config/config_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "agent/config/http_address.h"
#include "base/parse.h"
#include "base/text.h"
#include "policy/policy.h"
#include "policy/terms_parser.h"

namespace cgphase {
namespace {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;

constexpr std::chrono::hours kDay{24};

std::string toml_string(std::string_view text) {
  // Basic strings of TOML; escape_name leaves no control character and doubles backslashes.
  std::string out = "\"";
  for (const char byte : escape_name(text)) {
    if (byte == '"') out += '\\';
    out += byte;
  }
  return out + '"';
}

// `Get` returns a reference to the field, of a const Config too.
template <class Get>
ConfigRow bool_row(std::string key, Get get, std::string meaning) {
  return {std::move(key), "true, false", std::move(meaning),
          [get](const RawValue& raw, Config& config) -> std::string {
            const bool* value = std::get_if<bool>(&raw);
            if (value == nullptr) return "not true or false";
            get(config) = *value;
            return {};
          },
          [get](const Config& config) { return get(config) ? "true" : "false"; }};
}

template <class Get>
ConfigRow duration_row(std::string key, Get get, nanoseconds least, nanoseconds most,
                       std::string meaning) {
  using Field = std::remove_cvref_t<decltype(get(std::declval<Config&>()))>;
  return {std::move(key), duration_text(least) + " to " + duration_text(most), std::move(meaning),
          [=](const RawValue& raw, Config& config) -> std::string {
            const auto* text = std::get_if<std::string>(&raw);
            const auto ns = text ? parse_duration_ns(*text) : std::nullopt;
            if (!ns) return "not a duration such as \"30s\" or \"5min\"";
            if (nanoseconds(*ns) < least || nanoseconds(*ns) > most) return "out of bounds";
            const auto value = std::chrono::duration_cast<Field>(nanoseconds(*ns));
            if (value != nanoseconds(*ns))
              return "not a whole multiple of " + duration_text(Field(1));
            get(config) = value;
            return {};
          },
          [get](const Config& config) { return toml_string(duration_text(get(config))); }};
}

template <class Get>
ConfigRow bytes_row(std::string key, Get get, std::uint64_t least, std::uint64_t most,
                    std::string meaning) {
  return {std::move(key), bytes_text(least) + " to " + bytes_text(most), std::move(meaning),
          [=](const RawValue& raw, Config& config) -> std::string {
            const auto* text = std::get_if<std::string>(&raw);
            const auto bytes = text ? parse_bytes(*text) : std::nullopt;
            if (!bytes) return "not a size such as \"256M\"";
            if (*bytes < least || *bytes > most) return "out of bounds";
            get(config) = *bytes;
            return {};
          },
          [get](const Config& config) { return toml_string(bytes_text(get(config))); }};
}

template <class Get>
ConfigRow number_row(std::string key, Get get, double least, double most, std::string meaning) {
  return {std::move(key), fmt::format("{} to {}", least, most), std::move(meaning),
          [=](const RawValue& raw, Config& config) -> std::string {
            double value = 0;
            if (const auto* real = std::get_if<double>(&raw))
              value = *real;
            else if (const auto* whole = std::get_if<std::int64_t>(&raw))
              value = static_cast<double>(*whole);
            else
              return "not a number";
            // Written so that "nan" is out of bounds too.
            if (!(value >= least && value <= most)) return "out of bounds";
            get(config) = value;
            return {};
          },
          [get](const Config& config) { return fmt::format("{}", get(config)); }};
}

template <class Get>
ConfigRow integer_row(std::string key, Get get, std::int64_t least, std::int64_t most,
                      std::string meaning) {
  using Field = std::remove_cvref_t<decltype(get(std::declval<Config&>()))>;
  return {std::move(key), fmt::format("{} to {}", least, most), std::move(meaning),
          [=](const RawValue& raw, Config& config) -> std::string {
            const auto* value = std::get_if<std::int64_t>(&raw);
            if (value == nullptr) return "not a whole number";
            if (*value < least || *value > most) return "out of bounds";
            get(config) = static_cast<Field>(*value);
            return {};
          },
          [get](const Config& config) { return fmt::format("{}", get(config)); }};
}

// A share of one, also in per cent: 0.001, "0.1 %". Never 0.
template <class Get>
ConfigRow share_row(std::string key, Get get, double least, double most, std::string meaning) {
  const auto percent = [](double share) { return fmt::format("{:.6g} %", 100 * share); };
  return {std::move(key), percent(least) + " to " + percent(most), std::move(meaning),
          [=](const RawValue& raw, Config& config) -> std::string {
            double value = 0;
            if (const auto* real = std::get_if<double>(&raw)) {
              value = *real;
            } else if (const auto* text = std::get_if<std::string>(&raw)) {
              const auto share = parse_share(*text);
              if (!share) return "not a share such as \"0.1 %\"";
              value = *share;
            } else {
              return "not a share such as \"0.1 %\"";
            }
            if (!(value >= least && value <= most)) return "out of bounds";
            get(config) = value;
            return {};
          },
          [=](const Config& config) { return toml_string(percent(get(config))); }};
}

// `wrong` says what is wrong with a text, nothing where it is good.
template <class Get>
ConfigRow text_row(std::string key, Get get, std::string allowed,
                   std::string (*wrong)(std::string_view), std::string meaning) {
  return {std::move(key), std::move(allowed), std::move(meaning),
          [=](const RawValue& raw, Config& config) -> std::string {
            const auto* text = std::get_if<std::string>(&raw);
            if (text == nullptr) return "not text in quotes";
            if (std::string why = wrong(*text); !why.empty()) return why;
            get(config) = *text;
            return {};
          },
          [get](const Config& config) { return toml_string(get(config)); }};
}

// One of several words; `parse` and to_string() translate them.
template <class Get, class Parse>
ConfigRow word_row(std::string key, Get get, std::string allowed, Parse parse,
                   std::string meaning) {
  return {std::move(key), std::move(allowed), std::move(meaning),
          [=](const RawValue& raw, Config& config) -> std::string {
            const auto* text = std::get_if<std::string>(&raw);
            const auto word = text != nullptr ? parse(*text) : decltype(parse("")){};
            if (!word) return "none of these words";
            get(config) = *word;
            return {};
          },
          [get](const Config& config) { return toml_string(to_string(get(config))); }};
}

template <class Get>
ConfigRow patterns_row(std::string key, Get get, std::string meaning) {
  return {std::move(key), fmt::format("up to {} shell patterns", kMaxPatterns), std::move(meaning),
          [get](const RawValue& raw, Config& config) -> std::string {
            const auto* patterns = std::get_if<std::vector<std::string>>(&raw);
            if (patterns == nullptr) return "not an array of texts such as [\"train-*\"]";
            if (patterns->size() > kMaxPatterns) return "too many patterns";
            for (const std::string& pattern : *patterns)
              if (pattern.empty() || pattern.size() > kMaxPatternBytes)
                return fmt::format("a pattern has 1 to {} bytes", kMaxPatternBytes);
            get(config) = *patterns;
            return {};
          },
          [get](const Config& config) {
            std::string text;
            for (const std::string& pattern : get(config))
              text += (text.empty() ? "" : ", ") + toml_string(pattern);
            return "[" + text + "]";
          }};
}

ConfigRow containers_row() {
  const auto field = [](auto& config) -> auto& { return config.containers; };
  ConfigRow row = patterns_row(
      "containers", field,
      "Class and bounds of containers (docs/concepts.md): a shell pattern for name, image or "
      "cgroup path, then the terms: `\"web-* class=critical cpu.min=0.5 memory.max=4G\"`. It "
      "counts more than their labels.");
  row.allowed = fmt::format("up to {} texts: PATTERN TERM=VALUE...", kMaxPatterns);
  row.read = [take = row.read](const RawValue& raw, Config& config) -> std::string {
    const std::vector<std::string> before = config.containers;
    if (std::string wrong = take(raw, config); !wrong.empty()) return wrong;
    for (const std::string& line : config.containers) {
      std::string_view rest = line, pattern;
      Terms terms;
      const bool named = next_word(rest, pattern) && !trim(rest).empty();
      const Status good = named ? set_terms(terms, rest)
                                : failure(ErrorKind::invalid, "not a pattern and its terms");
      if (good) continue;
      config.containers = before;
      return fmt::format("\"{}\": {}", escape_name(line), good.error().text);
    }
    return {};
  };
  return row;
}

ConfigRow mode_row() {
  return {"mode", "observe, advise, enforce",
          "The most that cgphase may do: observe; also decide and journal (advise); also change "
          "limits of the containers that `[enforce]` or their label names (enforce).",
          [](const RawValue& raw, Config& config) -> std::string {
            const auto* text = std::get_if<std::string>(&raw);
            const auto mode = text ? parse_mode(*text) : std::nullopt;
            if (!mode) return "not a mode";
            config.mode = *mode;
            return {};
          },
          [](const Config& config) { return toml_string(to_string(config.mode)); }};
}

std::string wrong_path_of(std::string_view path, std::size_t longest) {
  if (path.empty() || path.front() != '/') return "not an absolute path";
  if (path.size() > longest) return fmt::format("longer than {} bytes", longest);
  if (path.find('\0') != std::string_view::npos) return "holds a NUL byte";
  return {};
}

std::string wrong_path(std::string_view path) { return wrong_path_of(path, kMaxPathBytes); }

std::string wrong_runtime_dir(std::string_view path) {
  return wrong_path_of(path, kMaxRuntimeDirBytes);
}

std::string wrong_listen(std::string_view text) {
  if (text.empty()) return {};
  const auto address = parse_http_address(text);
  return address ? std::string() : address.error().text;
}

std::string wrong_textfile(std::string_view path) {
  if (path.empty()) return {};
  if (path.ends_with('/')) return "names a directory";
  return wrong_path(path);
}

std::string wrong_policy(std::string_view text) {
  const Status good = check_live_policy(text);
  return good ? std::string{} : good.error().text;
}

// A field of Config, const or not.
#define CGPHASE_FIELD(field) \
  [](auto& config) -> auto& { return config.field; }

std::vector<ConfigRow> general_rows() {
  constexpr const char* kPath = "an absolute path";
  std::vector<ConfigRow> rows;
  rows.push_back(mode_row());
  rows.push_back(duration_row("interval", CGPHASE_FIELD(interval), 100ms, 60s,
                              "Time between two samples of a container. A shorter one costs more "
                              "CPU and reacts sooner."));
  rows.push_back(text_row("policy", CGPHASE_FIELD(policy),
                          "the name of a policy, or NAME:KEY=NUMBER,...", wrong_policy,
                          "The policy that recommends limits. `cgphase replay` compares them."));
  rows.push_back(share_row("risk", CGPHASE_FIELD(risk), kLeastRisk, kMostRisk,
                           "Share of the samples that may need more than the recommended limit. "
                           "Raise it to save more, lower it to be safer."));
  rows.push_back(text_row("model", CGPHASE_FIELD(model), kPath, wrong_path,
                          "The model file. If it is not set, a model that `cgphase model install` "
                          "installed is used before the default."));
  rows.push_back(text_row("cgroup_root", CGPHASE_FIELD(cgroup_root), kPath, wrong_path,
                          "The mount point of cgroup v2."));
  rows.push_back(text_row("state_dir", CGPHASE_FIELD(state_dir), kPath, wrong_path,
                          "The directory of the history."));
  rows.push_back(text_row("runtime_dir", CGPHASE_FIELD(runtime_dir),
                          fmt::format("an absolute path of at most {} bytes", kMaxRuntimeDirBytes),
                          wrong_runtime_dir,
                          "The directory of leases and sockets, on a tmpfs. The systemd unit sets "
                          "it with RuntimeDirectory=."));
  rows.push_back(text_row("kill_switch", CGPHASE_FIELD(kill_switch), kPath, wrong_path,
                          "While this file exists, all limits are restored and nothing is "
                          "changed."));
  rows.push_back(patterns_row("include", CGPHASE_FIELD(include),
                              "Paths of cgroups below the root to watch although no engine runs "
                              "them: `\"/system.slice/nightly-*\"`."));
  rows.push_back(containers_row());
  rows.push_back(bool_row("manage_unlimited", CGPHASE_FIELD(manage_unlimited),
                          "Also manage containers without a limit. The host is their ceiling."));
  rows.push_back(bool_row("lower_gpu_quota", CGPHASE_FIELD(safety.lower_gpu_quota),
                          "Also lower the CPU quota of containers with a GPU."));
  return rows;
}

std::vector<ConfigRow> section_rows() {
  std::vector<ConfigRow> rows;
  rows.push_back(bytes_row("store.cap", CGPHASE_FIELD(store.cap.value), 8 * kMiB, 64 * kGiB,
                           "Maximum size of the history on disk. The oldest samples are deleted "
                           "first."));
  rows.push_back(patterns_row("enforce.names", CGPHASE_FIELD(enforce.names),
                              "Names of containers that mode enforce may change."));
  rows.push_back(patterns_row("enforce.images", CGPHASE_FIELD(enforce.images),
                              "Images of containers that mode enforce may change."));
  rows.push_back(patterns_row("enforce.cgroups", CGPHASE_FIELD(enforce.cgroups),
                              "Paths of cgroups below the root that mode enforce may change."));
  rows.push_back(word_row("enforce.cpu", CGPHASE_FIELD(enforce.cpu), "weight, quota, both",
                          parse_cpu_lever,
                          "What mode enforce changes of CPU: the weight of a class, which takes "
                          "nothing while there is enough; quotas, which can throttle; or both."));
  rows.push_back(share_row("budget.memory", CGPHASE_FIELD(budget.memory_ratio), 0.01, 1,
                           "Share of the host's memory that containers may have together, with "
                           "all that runs outside of them."));
  rows.push_back(share_row("budget.cpu", CGPHASE_FIELD(budget.cpu_ratio), 0.01, 1,
                           "The same of its cores."));
  rows.push_back(word_row("budget.unlimited", CGPHASE_FIELD(budget.unlimited),
                          "ignore, observe, guard", parse_unlimited_rule,
                          "What the budget does with containers without a limit: leave them out, "
                          "count what they need, or also give them a memory.max, so that none of "
                          "them takes the memory of the others (guard: only those that mode "
                          "enforce may change)."));
  rows.push_back(bool_row("bpf.enabled", CGPHASE_FIELD(bpf.enabled),
                          "Use BPF programs: they count what no file reports, and name the writer "
                          "of a limit."));
  rows.push_back(bool_row("gpu.enabled", CGPHASE_FIELD(gpu.enabled),
                          "Read the GPU use of containers (docs/operations.md)."));
  rows.push_back(text_row("http.listen", CGPHASE_FIELD(http.listen),
                          "nothing, an absolute path of at most 107 bytes, 127.0.0.1:PORT, "
                          "[::1]:PORT",
                          wrong_listen,
                          "Address of the page, the metrics and the reading verbs over HTTP. "
                          "Under systemd, use cgphased-http.socket instead."));
  rows.push_back(text_row("metrics.textfile", CGPHASE_FIELD(metrics.textfile),
                          "nothing, or an absolute path", wrong_textfile,
                          "File to write metrics into, for node_exporter (docs/metrics.md)."));
  return rows;
}

// Keys for tests, which cannot wait for hours (kTestKeys). Any value of the right kind is allowed.
template <class Get>
ConfigRow test_row(std::string key, Get get) {
  using Field = std::remove_cvref_t<decltype(get(std::declval<Config&>()))>;
  const auto row = [&] {
    if constexpr (std::is_same_v<Field, bool>) return bool_row(key, get, "");
    else if constexpr (std::is_same_v<Field, std::string>)
      return text_row(key, get, "text", [](std::string_view) { return std::string(); }, "");
    else if constexpr (std::is_same_v<Field, double>) return number_row(key, get, 0, 1e12, "");
    else if constexpr (std::is_same_v<Field, int>) return integer_row(key, get, 0, 1'000'000, "");
    else if constexpr (std::is_same_v<Field, std::uint64_t>)
      return bytes_row(key, get, 0, 64 * kGiB, "");
    else
      return duration_row(key, get, 0s, 30 * kDay, "");
  };
  ConfigRow made = row();
  made.internal = true;
  return made;
}

std::vector<ConfigRow> test_rows() {
  // --proc-root sets it, too.
  ConfigRow proc_root = text_row("proc_root", CGPHASE_FIELD(proc_root), "an absolute path",
                                 wrong_path, "");
  proc_root.internal = true;
  std::vector<ConfigRow> rows = {
      std::move(proc_root),
      test_row("socket.group", CGPHASE_FIELD(socket.group)),
      test_row("store.enabled", CGPHASE_FIELD(store.enabled)),
      test_row("store.min_free", CGPHASE_FIELD(store.min_free.value)),
      test_row("bpf.budget", CGPHASE_FIELD(bpf.budget)),
      test_row("gpu.nvml", CGPHASE_FIELD(gpu.nvml)),
      test_row("metrics.interval", CGPHASE_FIELD(metrics.interval)),
  };
#define CGPHASE_RAIL(field) rows.push_back(test_row("rails." #field, CGPHASE_FIELD(safety.field)))
  CGPHASE_RAIL(enough_samples);
  CGPHASE_RAIL(enough_runs);
  CGPHASE_RAIL(quiet_memory_io_some_avg10);
  CGPHASE_RAIL(quiet_cpu_some_avg10);
  CGPHASE_RAIL(cool_down);
  CGPHASE_RAIL(quarantine);
  CGPHASE_RAIL(trial);
  CGPHASE_RAIL(trial_model_steps);
  CGPHASE_RAIL(trial_tolerance_ratio);
  CGPHASE_RAIL(host_lower_window);
  CGPHASE_RAIL(host_lowers_per_window);
  CGPHASE_RAIL(cpu_lower_window);
  CGPHASE_RAIL(cpu_raises_window);
  CGPHASE_RAIL(memory_lower_window);
  CGPHASE_RAIL(memory_headroom_bytes);
  CGPHASE_RAIL(memory_step_ratio);
  CGPHASE_RAIL(dwell);
  CGPHASE_RAIL(settle);
  CGPHASE_RAIL(start_up);
  CGPHASE_RAIL(stand_down);
  CGPHASE_RAIL(smallest_change_ratio);
  CGPHASE_RAIL(silent_revert);
  CGPHASE_RAIL(reapply_pause);
#undef CGPHASE_RAIL
  return rows;
}

#undef CGPHASE_FIELD

std::vector<ConfigRow> all_rows() {
  std::vector<ConfigRow> rows = general_rows();
  for (auto part : {section_rows, test_rows})
    for (ConfigRow& row : part()) rows.push_back(std::move(row));
  return rows;
}

// What keys of earlier versions are now. Those of [rails] and [guard] are constants.
struct FormerKey {
  std::string_view key, now;
};
constexpr FormerKey kFormerKeys[] = {
    {"proc_root", "give cgphased the option --proc-root"},
    {"socket.group", "it is always cgphase"},
    {"store.enabled", "the history is always kept"},
    {"store.min_free", "it is always 32M"},
    {"store.raw_for", "it is always 1d"},
    {"store.medium_step", "it is always 15s"},
    {"store.medium_for", "it is always 7d"},
    {"store.coarse_step", "it is always 1min"},
    {"store.coarse_for", "it is always 30d"},
    {"bpf.sampling", "bpf.enabled decides"},
    {"bpf.budget", "it is always 0.5 %"},
    {"gpu.nvml", "the library is found as the loader finds it"},
    {"metrics.interval", "it is always 15s"},
    {"rails.lower_gpu_quota", "write lower_gpu_quota at the top of the file"},
};
constexpr std::string_view kFormerSections[] = {"rails.", "guard."};

struct Unit {
  std::uint64_t size;
  const char* name;
};

// In the largest unit that leaves no rest.
std::string in_units(std::uint64_t value, std::span<const Unit> largest_first) {
  for (const Unit& unit : largest_first)
    if (value != 0 && value % unit.size == 0) return std::to_string(value / unit.size) + unit.name;
  return std::to_string(value) + largest_first.back().name;
}

}  // namespace

std::string duration_text(nanoseconds duration) {
  static constexpr std::array<Unit, 5> kUnits = {{{86'400'000'000'000, "d"},
                                                  {3'600'000'000'000, "h"},
                                                  {60'000'000'000, "min"},
                                                  {1'000'000'000, "s"},
                                                  {1'000'000, "ms"}}};
  if (duration == 0s) return "0s";
  return in_units(static_cast<std::uint64_t>(duration.count()), kUnits);
}

std::string bytes_text(std::uint64_t bytes) {
  static constexpr std::array<Unit, 5> kUnits = {
      {{1024 * kGiB, "T"}, {kGiB, "G"}, {kMiB, "M"}, {1024, "K"}, {1, ""}}};
  return in_units(bytes, kUnits);
}

std::span<const ConfigRow> config_table() {
  static const std::vector<ConfigRow> rows = all_rows();
  return rows;
}

const ConfigRow* find_row(std::string_view key) {
  const auto rows = config_table();
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const ConfigRow& row) { return row.key == key; });
  return found == rows.end() ? nullptr : &*found;
}

std::string former_key(std::string_view key) {
  for (const FormerKey& former : kFormerKeys)
    if (former.key == key) return fmt::format("{} is ignored: {}", key, former.now);
  for (const std::string_view section : kFormerSections)
    if (key.starts_with(section))
      return fmt::format("{} is ignored: it is a constant now (docs/safety.md)", escape_name(key));
  return {};
}

bool is_section(std::string_view name) {
  const std::string prefix = std::string(name) + '.';
  return std::ranges::find(kFormerSections, prefix) != std::end(kFormerSections) ||
         std::ranges::any_of(config_table(),
                             [&](const ConfigRow& row) { return row.key.starts_with(prefix); });
}

}  // namespace cgphase
