#include "tests/workloads/demo_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <array>
#include <charconv>
#include <set>

#include "base/text.h"
#include "tests/workloads/allocation_meter.h"

namespace cgphase::workloads {

namespace {

using nlohmann::json;

constexpr double kSecondsPerHour = 3600;
constexpr double kBytesPerGiB = 1024.0 * 1024 * 1024;

double cpu_per_unit(const json& container) {
  const json& work = container.at("work");
  const double units = work.at("units").get<double>();
  return units > 0 ? work.at("cpu_seconds").get<double>() / units : 0;
}

double ratio(double managed, double twin) { return twin > 0 ? managed / twin : 0; }

// The part that must be equal between two runs of one seed: everything except times.
json result_of(const json& work) {
  json result = work;
  for (const char* key : {"cpu_seconds", "wall_seconds", "latency_ms"}) result.erase(key);
  return result;
}

int changed_knobs(const json& container, const char* when) {
  int changed = 0;
  for (const auto& [knob, original] : container.at("original").items())
    changed += container.at(when).at(knob) != original;
  return changed;
}

// "80000 100000" or "167772160" by its first number; "max" is the largest.
double first_number(const std::string& text) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  return parsed.ec == std::errc{} ? value : 1e300;
}

void count_changes(const json& managed, ContainerSummary& summary) {
  for (const json& change : managed.at("changes")) {
    const auto to = change.at("to").get<std::string>();
    const bool down = first_number(to) < first_number(change.at("from").get<std::string>());
    ++(down ? summary.lowered : summary.raised);
    if (change.at("knob") == "cpu.max")
      summary.least_cores = std::min(
          summary.least_cores, cores_of(to, summary.static_cores).value_or(summary.static_cores));
    else
      summary.least_bytes = std::min(summary.least_bytes, first_number(to));
  }
}

void add_allocation(const json& managed, ContainerSummary& summary) {
  const double seconds = managed.at("seconds").get<double>();
  const json& limits = managed.at("static");
  summary.static_core_seconds += limits.at("cpu_cores").get<double>() * seconds;
  summary.static_byte_seconds += limits.at("memory_bytes").get<double>() * seconds;
  summary.core_seconds += managed.at("core_seconds").get<double>();
  summary.byte_seconds += managed.at("byte_seconds").get<double>();
}

void add_kernel_counts(const json& managed, const json& twin, ContainerSummary& summary) {
  const auto count = [](const json& run, const char* key) {
    return run.at(key).get<std::uint64_t>();
  };
  summary.periods += count(managed, "periods");
  summary.throttled_periods += count(managed, "throttled_periods");
  summary.twin_periods += count(twin, "periods");
  summary.twin_throttled_periods += count(twin, "throttled_periods");
  summary.oom_kills += count(managed, "oom_kills");
  summary.twin_oom_kills += count(twin, "oom_kills");
}

void add_round(const json& managed, const json& twin, ContainerSummary& summary) {
  add_allocation(managed, summary);
  add_kernel_counts(managed, twin, summary);
  count_changes(managed, summary);
  summary.restored &= changed_knobs(managed, "after_stop") == 0;
  summary.knobs_changed_at_stop += changed_knobs(managed, "before_stop");
  summary.succeeded &= managed.at("exit_status") == 0 && twin.at("exit_status") == 0 &&
                       managed.at("work").is_object() && twin.at("work").is_object();
  summary.work_equal &= summary.succeeded;
  if (!summary.succeeded) return;
  summary.unit = managed["work"].at("unit").get<std::string>();
  summary.work_equal &= result_of(managed["work"]) == result_of(twin["work"]);
  summary.cpu_ratios.push_back(ratio(cpu_per_unit(managed), cpu_per_unit(twin)));
  summary.wall_ratios.push_back(ratio(managed["work"].at("wall_seconds").get<double>(),
                                      twin["work"].at("wall_seconds").get<double>()));
}

const json& container_of(const json& run, std::size_t index, const std::string& name) {
  const json& container = run.at("containers").at(index);
  if (container.at("name") != name) throw std::out_of_range("another mix");
  return container;
}

ContainerSummary summarise_container(const std::vector<Round>& rounds, std::size_t index) {
  ContainerSummary summary;
  const json& first = rounds.at(0).managed.at("containers").at(index);
  summary.name = first.at("name").get<std::string>();
  summary.kind = first.at("kind").get<std::string>();
  const json& limits = first.at("static");
  summary.least_cores = summary.static_cores = limits.at("cpu_cores").get<double>();
  summary.least_bytes = summary.static_bytes = limits.at("memory_bytes").get<double>();
  std::set<char> letters;
  for (const Round& round : rounds) {
    const json& managed = container_of(round.managed, index, summary.name);
    add_round(managed, container_of(round.twin, index, summary.name), summary);
    for (const char letter : managed.at("phases").get<std::string>())
      if (letter >= 'A' && letter <= 'Z') letters.insert(letter);
  }
  summary.phases_seen = static_cast<int>(letters.size());
  summary.cpu_ratio = median(summary.cpu_ratios);
  summary.wall_ratio = median(summary.wall_ratios);
  return summary;
}

// A whole number, so that a little below 0 is not "-0".
long percent_of(double ratio) { return std::lround(100 * ratio); }

double share(double allocated, double of) { return of > 0 ? 1 - allocated / of : 0; }

struct Allocation {
  double cores = 0, static_cores = 0, bytes = 0, static_bytes = 0;

  void add(const ContainerSummary& one) {
    cores += one.core_seconds;
    static_cores += one.static_core_seconds;
    bytes += one.byte_seconds;
    static_bytes += one.static_byte_seconds;
  }
  double cpu_share() const { return share(cores, static_cores); }
  double memory_share() const { return share(bytes, static_bytes); }
};

void sum_shares(const std::vector<Round>& rounds, DemoSummary& summary) {
  Allocation all;
  for (const ContainerSummary& one : summary.containers) all.add(one);
  summary.cpu_share = all.cpu_share();
  summary.memory_share = all.memory_share();
  for (const Round& round : rounds) {
    Allocation allocation;
    for (const json& container : round.managed.at("containers")) {
      ContainerSummary one;
      add_allocation(container, one);
      allocation.add(one);
    }
    summary.round_cpu_shares.push_back(allocation.cpu_share());
    summary.round_memory_shares.push_back(allocation.memory_share());
  }
}

// The daemon ran to the end, stopped with status 0, and answered every request.
bool daemon_well(const std::vector<Round>& rounds) {
  return std::all_of(rounds.begin(), rounds.end(), [](const Round& round) {
    const json& daemon = round.managed.at("daemon");
    bool answered = true;
    for (const json& status : daemon.at("commands")) answered &= status == 0;
    return answered && daemon.at("alive_at_end") == true && daemon.at("exit_status") == 0;
  });
}

template <class Predicate>
bool all_of(const DemoSummary& summary, Predicate predicate) {
  return std::all_of(summary.containers.begin(), summary.containers.end(), predicate);
}

void judge(const std::vector<Round>& rounds, DemoSummary& summary) {
  using One = const ContainerSummary&;
  auto& list = summary.requirements;
  list.push_back({summary.containers.size() >= 3, "at least three containers at once",
                  "fewer than three containers ran"});
  list.push_back({all_of(summary, [](One one) { return one.succeeded; }), "every workload finished",
                  "a job did not finish"});
  list.push_back({daemon_well(rounds), "the daemon served, answered and stopped cleanly",
                  "the daemon did not answer or did not stop cleanly"});
  list.push_back({all_of(summary, [](One one) { return one.phases_seen > 0; }),
                  "phases were recognised in every container",
                  "cgphase recognised no phase of a job"});
  list.push_back({all_of(summary, [](One one) { return one.lowered > 0; }),
                  "limits of every container were lowered", "cgphase lowered no limit of a job"});
  list.push_back({all_of(summary, [](One one) { return one.oom_kills == 0; }), "OOM kills 0",
                  "the kernel killed a process of a job for lack of memory"});
  list.push_back({all_of(summary, [](One one) { return one.work_equal; }),
                  "the same work with the same results as the unmanaged twin",
                  "a job did other work than it does without cgphase"});
  list.push_back(
      {all_of(summary,
              [](One one) { return one.cpu_ratio > 0 && one.cpu_ratio <= kLargestCpuRatio; }),
       fmt::format("CPU seconds per unit at most {:.2f} of the twin's", kLargestCpuRatio),
       "a job needed much more CPU time than it does without cgphase"});
  list.push_back({all_of(summary, [](One one) { return one.restored; }), "all originals restored",
                  "an original limit was not restored"});
  list.push_back(
      {summary.memory_share >= kLeastMemoryShare,
       fmt::format("at least {:.0f} % of GiB-hours were given back", 100 * kLeastMemoryShare),
       "cgphase left too little memory to other jobs"});
  list.push_back({!summary.raises.empty(), "a limit rose before the phase that needed it",
                  "no limit rose before the phase that needed it"});
}

}  // namespace

double ContainerSummary::cpu_share() const { return share(core_seconds, static_core_seconds); }
double ContainerSummary::memory_share() const { return share(byte_seconds, static_byte_seconds); }

bool all_held(const std::vector<Requirement>& requirements) {
  return std::all_of(requirements.begin(), requirements.end(),
                     [](const Requirement& requirement) { return requirement.held; });
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Result<DemoSummary> summarise(const std::vector<Round>& rounds) {
  if (rounds.empty()) return failure(ErrorKind::invalid, "no rounds");
  DemoSummary summary;
  summary.rounds = rounds.size();
  // The files are our own, so whatever is missing in them is reported as one error.
  try {
    summary.seed = rounds[0].managed.at("seed").get<std::uint64_t>();
    for (const Round& round : rounds)
      summary.daemon_cpu_seconds += round.managed.at("daemon").at("cpu_seconds").get<double>();
    for (std::size_t i = 0; i < rounds[0].managed.at("containers").size(); ++i)
      summary.containers.push_back(summarise_container(rounds, i));
    sum_shares(rounds, summary);
    summary.raises = rounds.back().raises;
    judge(rounds, summary);
  } catch (const std::exception& error) {
    return failure(ErrorKind::invalid, fmt::format("run.json: {}", error.what()));
  }
  return summary;
}

namespace {

std::string knob_text(const std::string& knob, const std::string& value) {
  const double number = first_number(value);
  if (number >= 1e300) return value;
  if (knob.starts_with("memory.")) return human_bytes(number);
  const std::size_t space = value.find(' ');
  return space == std::string::npos
             ? value
             : fmt::format("{:.2f} cores", number / first_number(value.substr(space + 1)));
}

void append_timeline(const json& container, std::string& text) {
  text += fmt::format("    truth   {}\n    phases  {}\n", container.at("truth").get<std::string>(),
                      container.at("phases").get<std::string>());
}

void append_changes(const json& container, std::string& text) {
  for (const json& change : container.at("changes")) {
    const auto knob = change.at("knob").get<std::string>();
    text += fmt::format("    {:6.1f} s  {:<11}  {} -> {}\n", change.at("seconds").get<double>(),
                        knob, knob_text(knob, change.at("from").get<std::string>()),
                        knob_text(knob, change.at("to").get<std::string>()));
  }
}

void append_round(const json& run, bool with_changes, std::string& text) {
  for (const json& container : run.at("containers")) {
    text += fmt::format("  {}, {} changes of limits\n", container.at("name").get<std::string>(),
                        container.at("changes").size());
    append_timeline(container, text);
    if (with_changes) append_changes(container, text);
  }
}

std::string given_back(double given, double of, const char* unit) {
  return fmt::format("{:.4f} of {:.4f} {} given back ({} %)", given, of, unit,
                     percent_of(of > 0 ? given / of : 0));
}

std::string ratio_list(const std::vector<double>& ratios) {
  std::string text;
  for (const double one : ratios) text += fmt::format("{}{:.3f}", text.empty() ? "" : " ", one);
  return text;
}

void append_container(const ContainerSummary& one, std::string& text) {
  const auto hours = [](double seconds) { return seconds / kSecondsPerHour; };
  text += fmt::format("  {}\n    {}\n    {}\n", one.name,
                      given_back(hours(one.static_core_seconds - one.core_seconds),
                                 hours(one.static_core_seconds), "core-hours"),
                      given_back(hours(one.static_byte_seconds - one.byte_seconds) / kBytesPerGiB,
                                 hours(one.static_byte_seconds) / kBytesPerGiB, "GiB-hours"));
  text += fmt::format("    throttled periods {} of {}, twin {} of {}; OOM kills {}, twin {}\n",
                      one.throttled_periods, one.periods, one.twin_throttled_periods,
                      one.twin_periods, one.oom_kills, one.twin_oom_kills);
  text += fmt::format(
      "    same {}: {}; CPU seconds per unit {:.3f} of the twin's, median of {}; wall time "
      "{:.3f}\n",
      one.unit, one.work_equal ? "yes" : "NO", one.cpu_ratio, ratio_list(one.cpu_ratios),
      one.wall_ratio);
  text += fmt::format(
      "    limits lowered {} times, raised {}; originals restored: {} ({} knobs "
      "differed at the stop)\n",
      one.lowered, one.raised, one.restored ? "yes" : "NO", one.knobs_changed_at_stop);
}

std::string table_row(const std::array<std::string, 8>& cells) {
  const auto& [job, phases, memory, cores, freed, throttled, kills, restored] = cells;
  return fmt::format("{:<8}  {:>6}  {:<24}  {:<16}  {:<34}  {:<22}  {:>9}  {}\n", job, phases,
                     memory, cores, freed, throttled, kills, restored);
}

double percent(std::uint64_t part, std::uint64_t all) {
  return all > 0 ? 100 * static_cast<double>(part) / static_cast<double>(all) : 0;
}

std::string table_row(const ContainerSummary& one) {
  return table_row(
      {one.name, std::to_string(one.phases_seen),
       human_bytes(one.static_bytes) + " -> " + human_bytes(one.least_bytes),
       fmt::format("{:.2f} -> {:.2f}", one.static_cores, one.least_cores),
       fmt::format("{} % ({:.3f} GiB-h), {} % ({:.3f} core-h)", percent_of(one.memory_share()),
                   (one.static_byte_seconds - one.byte_seconds) / kSecondsPerHour / kBytesPerGiB,
                   percent_of(one.cpu_share()),
                   (one.static_core_seconds - one.core_seconds) / kSecondsPerHour),
       fmt::format("{:.0f} %, {:.0f} %", percent(one.throttled_periods, one.periods),
                   percent(one.twin_throttled_periods, one.twin_periods)),
       std::to_string(one.oom_kills), one.restored ? "yes" : "NO"});
}

}  // namespace

std::string to_details(const DemoSummary& summary, const std::vector<Round>& rounds) {
  std::string text = fmt::format("seed {}, {} rounds of a managed run and its twin\n", summary.seed,
                                 summary.rounds);
  text +=
      "\none letter a second: true phase by its first letter; recognised phase A, B, ... "
      "(- not enough history, ? unknown)\n";
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    text +=
        fmt::format("\nround {}: {} % of core-hours and {} % of GiB-hours given back\n",
                    i + 1, percent_of(summary.round_cpu_shares[i]),
                    percent_of(summary.round_memory_shares[i]));
    append_round(rounds[i].managed, i + 1 == rounds.size(), text);
  }
  text += "\nall rounds, against the static limits\n";
  for (const ContainerSummary& one : summary.containers) append_container(one, text);
  text += fmt::format(
      "\ntogether: {} % of core-hours and {} % of GiB-hours given back; the "
      "daemon used {:.1f} CPU seconds of the guest\n",
      percent_of(summary.cpu_share), percent_of(summary.memory_share), summary.daemon_cpu_seconds);
  text += "\nraised before a phase, in the last round\n" + to_raises(summary);
  return text;
}

std::string to_table(const DemoSummary& summary) {
  std::string text =
      table_row({"job", "phases", "memory limit, lowest", "cores, lowest", "memory, CPU freed",
                 "throttled, without", "OOM kills", "restored"});
  for (const ContainerSummary& one : summary.containers) text += table_row(one);
  return text;
}

std::string to_raises(const DemoSummary& summary) {
  std::string text;
  for (const Raise& raise : summary.raises) text += fmt::format("  {}\n", to_text(raise));
  return text;
}

std::string to_numbers(const DemoSummary& summary) {
  double before = 0;
  for (const Raise& raise : summary.raises) before = std::max(before, raise.seconds_before);
  return fmt::format(
      "limits rose up to {:.0f} s before use; other jobs could have used {} % of the memory of "
      "those that ran",
      before, percent_of(summary.memory_share));
}

std::string to_sentence(const std::vector<Requirement>& requirements, const std::string& numbers) {
  std::string broken;
  for (const Requirement& one : requirements)
    if (!one.held) broken += (broken.empty() ? "" : ", and ") + one.failure;
  if (!broken.empty()) return fmt::format("The demo failed, because {}: {}.\n", broken, numbers);
  return fmt::format("The demo passed: {}.\n", numbers);
}

}  // namespace cgphase::workloads
