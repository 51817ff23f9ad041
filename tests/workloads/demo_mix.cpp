// demo_mix --results D --work D [--cgroup-root D] [--seed N] [--seconds S]
// [--mode MODE --config F --state-dir D] ITEM...: one run of a mix in cgroups with static limits,
// with the daemon in a mode (--mode) or without it. Writes D/run.json. It runs inside a guest:
// scripts/demo starts it, and demo_report evaluates its output.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "tests/workloads/allocation_meter.h"
#include "tests/workloads/child.h"
#include "tests/workloads/container.h"
#include "tests/workloads/label_file.h"
#include "tests/workloads/pace.h"

namespace {

using namespace cgphase;
using namespace cgphase::workloads;
using nlohmann::ordered_json;

constexpr std::chrono::milliseconds kPoll{500};
constexpr std::chrono::seconds kDaemonStart{20}, kDaemonStop{20}, kCommand{20};
constexpr const char* kParent = "demo";
constexpr const char* kRuntimeDir = "/run/cgphase";
constexpr std::size_t kMaxReplyBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxFileBytes = std::size_t{4} << 20;

struct Settings {
  std::string results, work, cgroup_root = "/sys/fs/cgroup";
  std::string mode;  // of the daemon; empty: no daemon
  std::string config, state_dir;
  std::string programs;  // the folder of this program
  RunOptions run;
  std::vector<std::string> items;
};

bool take_text(std::string_view name, std::string_view value, Settings& settings) {
  const std::map<std::string_view, std::string*> texts = {
      {"--results", &settings.results},     {"--work", &settings.work},
      {"--config", &settings.config},       {"--mode", &settings.mode},
      {"--state-dir", &settings.state_dir}, {"--cgroup-root", &settings.cgroup_root}};
  const auto place = texts.find(name);
  if (place == texts.end()) return false;
  *place->second = value;
  return true;
}

bool take_option(std::string_view name, std::string_view value, Settings& settings) {
  if (take_text(name, value, settings)) return true;
  if (name == "--seed") {
    const auto seed = parse_u64(value);
    settings.run.seed = seed.value_or(0);
    return seed.has_value();
  }
  const auto seconds = parse_double(value);
  if (name != "--seconds" || !seconds) return false;
  settings.run.seconds = *seconds;
  return true;
}

Result<Settings> parse_settings(std::span<char*> words) {
  Settings settings;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (!word.starts_with("--")) {
      settings.items.emplace_back(word);
    } else if (i + 1 == words.size() || !take_option(word, words[++i], settings)) {
      return failure(ErrorKind::invalid, fmt::format("{}: unknown option or bad value", word));
    }
  }
  if (settings.items.empty() || settings.results.empty() || settings.work.empty())
    return failure(ErrorKind::invalid, "--results, --work and at least one workload are needed");
  settings.programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return settings;
}

// Sends one request to the daemon's read socket: 4 bytes of length, then JSON.
Result<nlohmann::json> ask(const std::string& socket_path, std::string_view request) {
  const Fd socket_fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path)
    return failure(ErrorKind::invalid, socket_path + ": path too long for a socket");
  socket_path.copy(address.sun_path, socket_path.size());
  if (connect(socket_fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno_failure("connect " + socket_path, errno);
  const auto size = static_cast<std::uint32_t>(request.size());
  std::string frame = {static_cast<char>(size >> 24), static_cast<char>(size >> 16),
                       static_cast<char>(size >> 8), static_cast<char>(size)};
  frame += request;
  if (auto status = write_all(socket_fd.get(), frame); !status)
    return std::unexpected(status.error());
  std::string reply;
  std::array<char, 16384> part;
  ssize_t got = 0;
  while ((got = read(socket_fd.get(), part.data(), part.size())) > 0 &&
         reply.size() < kMaxReplyBytes)
    reply.append(part.data(), static_cast<std::size_t>(got));
  if (reply.size() < 4) return failure(ErrorKind::io, socket_path + ": no reply");
  auto json = nlohmann::json::parse(reply.begin() + 4, reply.end(), nullptr, false);
  if (json.is_discarded()) return failure(ErrorKind::invalid, socket_path + ": reply is not JSON");
  return json;
}

// One container with everything that is recorded about it.
struct Watched {
  Container container;
  KnobTexts original;
  AllocationMeter meter;
  double begin_seconds = 0;
  bool ended = false;
  WallTime ended_at = {};
  std::string phases;  // one letter per second
};

class Run {
 public:
  explicit Run(const Settings& settings) : settings_(settings) {}
  Status run();

 private:
  Status make_containers();
  Status start_daemon();
  Status start_workloads();
  void watch();
  void poll(Watched& watched, double now);
  void poll_phases();
  Status ask_commands();
  Status stop_daemon();
  ordered_json describe(Watched& watched);
  Status write_report();
  std::string read_socket() const { return std::string(kRuntimeDir) + "/read.sock"; }

  const Settings& settings_;
  std::vector<Watched> all_;
  Child daemon_;
  ordered_json daemon_report_;
  std::vector<KnobTexts> before_stop_;
};

KnobTexts read_knobs(const Container& container) {
  return {container.read_knob("cpu.max").value_or(""),
          container.read_knob("memory.max").value_or(""),
          container.read_knob("memory.high").value_or("")};
}

Status Run::make_containers() {
  const auto mix = parse_mix(settings_.items, settings_.run);
  if (!mix) return std::unexpected(mix.error());
  const std::string parent = settings_.cgroup_root + "/" + kParent;
  if (auto status = make_cgroup_parent(parent); !status) return status;
  for (const MixItem& item : *mix) {
    auto container = Container::create(
        item, {parent, settings_.programs + "/workload", settings_.results, settings_.work});
    if (!container) return std::unexpected(container.error());
    const KnobTexts original = read_knobs(*container);
    all_.push_back({.container = std::move(*container),
                    .original = original,
                    .meter = {},
                    .begin_seconds = 0,
                    .ended = false,
                    .ended_at = {},
                    .phases = {}});
  }
  return {};
}

Status Run::start_daemon() {
  if (settings_.mode.empty()) return {};
  const std::string log = settings_.results + "/cgphased.log";
  auto child =
      Child::start({settings_.programs + "/cgphased", "--config", settings_.config, "--cgroup-root",
                    settings_.cgroup_root, "--state-dir", settings_.state_dir, "--runtime-dir",
                    kRuntimeDir, "--mode", settings_.mode},
                   {.out = settings_.results + "/cgphased.out", .err = log, .cgroup = {}});
  if (!child) return std::unexpected(child.error());
  daemon_ = std::move(*child);
  const double until = monotonic_seconds() + std::chrono::duration<double>(kDaemonStart).count();
  while (daemon_.running() && monotonic_seconds() < until) {
    if (ask(read_socket(), R"({"verb":"status"})")) return {};
    std::this_thread::sleep_for(kPoll / 5);
  }
  return failure(
      ErrorKind::io,
      daemon_.exit_status()
          ? fmt::format("cgphased ended with status {}; see {}", *daemon_.exit_status(), log)
          : fmt::format("cgphased does not answer on {}; see {}", read_socket(), log));
}

Status Run::start_workloads() {
  for (Watched& watched : all_) {
    if (auto status = watched.container.start(); !status) return status;
    watched.begin_seconds = monotonic_seconds();
    poll(watched, watched.begin_seconds);
  }
  return {};
}

void Run::poll(Watched& watched, double now) {
  if (watched.ended) return;
  watched.meter.read(now, read_knobs(watched.container));
  watched.ended = now > watched.begin_seconds && !watched.container.process().running();
  if (watched.ended) watched.ended_at = SystemClock().wall_now();
}

// One letter for each second since the last reply. If the daemon does not answer within a second,
// the previous letter is repeated.
void Run::poll_phases() {
  const auto reply = ask(read_socket(), R"({"verb":"list"})");
  if (!reply || !reply->contains("containers")) return;
  for (Watched& watched : all_)
    for (const nlohmann::json& one : (*reply)["containers"]) {
      const std::string path = fmt::format("/{}/{}", kParent, watched.container.item().name);
      if (watched.ended || one.value("path", "") != path) continue;
      const nlohmann::json& phase = one.value("phase", nlohmann::json::object());
      const std::string letter = phase.value("letter", " ");
      const auto second = static_cast<std::size_t>(monotonic_seconds() - watched.begin_seconds) + 1;
      while (watched.phases.size() < second) watched.phases += letter.empty() ? ' ' : letter[0];
    }
}

void Run::watch() {
  Pace pace(kPoll, Pace::Late::catch_up);
  bool any = true;
  for (int turn = 0; any; ++turn) {
    pace.wait();
    const double now = monotonic_seconds();
    any = false;
    for (Watched& watched : all_) {
      poll(watched, now);
      any |= !watched.ended;
    }
    if (!settings_.mode.empty() && turn % 2 == 0) poll_phases();
  }
}

// Runs the commands that a user would run at the end, and stores their output beside the report.
Status Run::ask_commands() {
  if (settings_.mode.empty()) return {};
  std::vector<std::pair<std::string, std::vector<std::string>>> commands = {
      {"status.json", {"status", "--json"}},
      {"list.json", {"list", "--json"}},
      {"events.jsonl", {"events", "-o", "jsonl"}}};
  for (const Watched& watched : all_) {
    const std::string& name = watched.container.item().name;
    commands.push_back({fmt::format("history-{}.jsonl", name), {"history", name, "-o", "jsonl"}});
    commands.push_back({fmt::format("plot-{}.out", name),
                        {"plot", name, "-o", fmt::format("{}/{}.svg", settings_.results, name)}});
  }
  ordered_json& statuses = daemon_report_["commands"] = ordered_json::object();
  for (auto& [file, words] : commands) {
    std::vector<std::string> argv = {settings_.programs + "/cgphase", "--socket", read_socket()};
    argv.insert(argv.end(), words.begin(), words.end());
    const std::string path = settings_.results + "/" + file;
    auto child = Child::start(argv, {.out = path, .err = path + ".err", .cgroup = {}});
    if (!child) return std::unexpected(child.error());
    child->wait(kCommand);
    statuses[file] = child->exit_status().value_or(-1);
  }
  return {};
}

Status Run::stop_daemon() {
  for (const Watched& watched : all_) before_stop_.push_back(read_knobs(watched.container));
  if (settings_.mode.empty()) return {};
  daemon_report_["alive_at_end"] = daemon_.running();
  daemon_.send(SIGTERM);
  const bool ended = daemon_.wait(kDaemonStop);
  daemon_report_["exit_status"] = daemon_.exit_status().value_or(-1);
  daemon_report_["cpu_seconds"] = daemon_.cpu_seconds();
  if (ended) return {};
  return failure(ErrorKind::io, "cgphased did not end after SIGTERM");
}

// One letter per second: the first letter of the true phase, printed above the recognised ones.
std::string truth_line(const std::string& labels_path, double begin, double seconds) {
  const auto text = read_file(labels_path, kMaxFileBytes);
  const auto labels = text ? parse_labels(*text, labels_path) : std::unexpected(text.error());
  if (!labels) return {};
  std::string line;
  for (double at = 0.5; at < seconds; ++at) {
    const std::string_view phase = phase_at(*labels, begin + at);
    line += phase.empty() ? ' ' : phase[0];
  }
  return line;
}

ordered_json knobs_json(const KnobTexts& knobs) {
  return {{"cpu.max", knobs.cpu_max},
          {"memory.max", knobs.memory_max},
          {"memory.high", knobs.memory_high}};
}

ordered_json changes_json(const AllocationMeter& meter) {
  ordered_json changes = ordered_json::array();
  for (const AllocationMeter::Change& change : meter.changes())
    changes.push_back({{"seconds", change.seconds},
                       {"knob", change.knob},
                       {"from", change.from},
                       {"to", change.to}});
  return changes;
}

ordered_json or_zero(const std::optional<std::uint64_t>& value) { return value.value_or(0); }

ordered_json Run::describe(Watched& watched) {
  Container& container = watched.container;
  const MixItem& item = container.item();
  const auto text = read_file(container.result_path(), kMaxFileBytes);
  const AllocationMeter& meter = watched.meter;
  const std::size_t index = static_cast<std::size_t>(&watched - all_.data());
  return {{"name", item.name},
          {"kind", item.kind},
          {"static",
           {{"cpu_cores", item.limits.cpu_cores}, {"memory_bytes", item.limits.memory_bytes}}},
          {"seconds", meter.seconds()},
          {"ended_at",
           std::chrono::duration<double>(watched.ended_at.time_since_epoch()).count()},
          {"core_seconds", meter.core_seconds()},
          {"byte_seconds", meter.byte_seconds()},
          {"changes", changes_json(meter)},
          {"phases", watched.phases},
          {"truth", truth_line(container.labels_path(), watched.begin_seconds, meter.seconds())},
          {"periods", or_zero(container.read_keyed("cpu.stat", "nr_periods"))},
          {"throttled_periods", or_zero(container.read_keyed("cpu.stat", "nr_throttled"))},
          {"throttled_usec", or_zero(container.read_keyed("cpu.stat", "throttled_usec"))},
          {"memory_max_events", or_zero(container.read_keyed("memory.events", "max"))},
          {"oom_kills", or_zero(container.read_keyed("memory.events", "oom_kill"))},
          {"original", knobs_json(watched.original)},
          {"before_stop", knobs_json(before_stop_[index])},
          {"after_stop", knobs_json(read_knobs(container))},
          {"exit_status", container.process().exit_status().value_or(-1)},
          {"work", text ? ordered_json::parse(*text, nullptr, false) : ordered_json(nullptr)}};
}

Status Run::write_report() {
  ordered_json report = {{"schema", 1},
                         {"mode", settings_.mode},
                         {"seed", settings_.run.seed},
                         {"daemon", daemon_report_}};
  ordered_json& containers = report["containers"] = ordered_json::array();
  for (Watched& watched : all_) containers.push_back(describe(watched));
  return replace_file(settings_.results + "/run.json", report.dump(1) + "\n");
}

Status Run::run() {
  Status status = make_containers();
  if (status) status = start_daemon();
  if (status) status = start_workloads();
  if (!status) return status;
  watch();
  status = ask_commands();
  if (auto stopped = stop_daemon(); status) status = stopped;
  // Written even if the daemon failed, because the report shows the limits that it left.
  if (auto written = write_report(); status) status = written;
  for (Watched& watched : all_)
    if (auto removed = watched.container.remove(); status) status = removed;
  rmdir((settings_.cgroup_root + "/" + kParent).c_str());
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  const auto settings = parse_settings(std::span(argv + 1, static_cast<std::size_t>(argc - 1)));
  const Status status = settings ? Run(*settings).run() : std::unexpected(settings.error());
  if (status) return 0;
  std::fprintf(stderr, "demo_mix: %s\n", status.error().text.c_str());
  return settings ? 1 : 2;
}
