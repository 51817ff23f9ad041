// The verb fit: shows whether a job fits into what is free on this host.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <expected>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/parse.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/trace_runs.h"
#include "cli/commands/verbs.h"
#include "cli/daemon_client.h"
#include "cli/offline.h"
#include "cli/options.h"
#include "cli/output/job_words.h"
#include "cli/output/print.h"
#include "cli/output/table.h"
#include "cli/output/view.h"
#include "protocol/replies.h"

namespace cgphase {
namespace {

constexpr double kMostHostCpus = 65536;

using nlohmann::json;
using Body = std::expected<json, Complaint>;

struct FitOptions {
  double cpus = 0;
  std::string memory, duration, risk, model = default_model_path();
  std::vector<std::string> traces;
  double host_cpus = 0;
  std::string host_memory;
};

std::expected<double, Complaint> bytes_of(const char* option, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (bytes && *bytes > 0) return static_cast<double>(*bytes);
  return complaint(Exit::usage,
                   fmt::format("{} {} is not a size (512M, 1.5GiB)", option, escape_name(text)));
}

std::expected<FitQuestion, Complaint> question_of(const FitOptions& options) {
  FitQuestion question{.cpu_cores = options.cpus};
  if (!(options.cpus > 0 && options.cpus <= 1e6))
    return complaint(Exit::usage, "--cpus must be above 0 and at most 1000000");
  const auto memory = bytes_of("--memory", options.memory);
  if (!memory) return std::unexpected(memory.error());
  question.memory_bytes = *memory;
  const auto duration = parse_duration_ns(options.duration);
  if (duration) question.duration = std::chrono::ceil<std::chrono::seconds>(
                    std::chrono::nanoseconds(*duration));
  if (!duration || question.duration.count() <= 0 || question.duration > kLongestFit)
    return complaint(Exit::usage, "--for " + escape_name(options.duration) +
                                      " is not a duration up to 30 days (90s, 10m, 2h)");
  const auto risk = parse_risk(options.risk, question.risk);
  if (!risk) return complaint(Exit::usage, risk.error().text);
  question.risk = *risk;
  return question;
}

Body live(const FitQuestion& question, const CommonOptions& common) {
  return ask_daemon(common.socket,
                    FitRequest{.cpus = question.cpu_cores,
                               .memory_mib = question.memory_bytes / static_cast<double>(kMiB),
                               .seconds = question.duration.count(),
                               .risk = question.risk});
}

std::unexpected<Complaint> no_host(const std::string& trace, const HostCapacity& known) {
  const char* const why =
      known.cpu_cores > 0 ? "the host's memory (column host.memory): give --host-memory"
      : known.memory.value > 0
          ? "the host's number of cores (column cpu.num.cores): give --host-cpus"
          : "the size of the host (columns cpu.num.cores and host.memory): give --host-cpus and "
            "--host-memory";
  return complaint(Exit::invalid, trace + ": the traces do not contain " + why);
}

// Returns the host's size from the options, else the largest size that a trace contains. The
// largest use is no substitute, because then nothing would be free.
std::expected<HostCapacity, Complaint> host_of(const FitOptions& options,
                                               const std::vector<WatchedRun>& runs) {
  HostCapacity host;
  for (const WatchedRun& run : runs) {
    if (run.host_cores_told) host.cpu_cores = std::max(host.cpu_cores, run.host.cpu_cores);
    if (run.host_memory_told) host.memory = std::max(host.memory, run.host.memory);
  }
  if (options.host_cpus != 0) {
    if (!(options.host_cpus > 0 && options.host_cpus <= kMostHostCpus))
      return complaint(Exit::usage, "--host-cpus: must be above 0 and at most 65536");
    host.cpu_cores = options.host_cpus;
  }
  if (!options.host_memory.empty()) {
    const auto bytes = bytes_of("--host-memory", options.host_memory);
    if (!bytes) return std::unexpected(bytes.error());
    host.memory.value = static_cast<std::uint64_t>(*bytes);
  }
  if (host.cpu_cores > 0 && host.memory.value > 0) return host;
  return no_host(options.traces.front(), host);
}

// Assumes that all executions run at once, each at the end of its recording.
Body recorded(const FitQuestion& question, const FitOptions& options) {
  const auto engine = engine_of(options.model);
  if (!engine) return complaint(engine.error());
  const auto runs = watch_traces(options.traces, *engine, PolicyEnvironment{}.risk);
  if (!runs) return complaint(runs.error());
  const auto host = host_of(options, *runs);
  if (!host) return std::unexpected(host.error());
  const FitHost environment{.capacity = *host, .outside_cpu_cores = {},
                             .outside_memory_bytes = {}};
  const FitAnswer answer = answer_fit(question, environment, [&](std::chrono::seconds duration) {
    std::vector<KnownContainer> known;
    for (const WatchedRun& run : *runs)
      known.push_back({.name = unescape_name(run.id), .forecast = run.policy->forecast(duration),
                       .original = run.original, .ancestor_limits = {},
                       .highest_cpu_cores = run.highest_cpu_cores,
                       .highest_memory_bytes = run.highest_memory_bytes});
    return known;
  });
  json body = to_json(fit_reply(answer));
  body["schema"] = 1;  // not a reply of the daemon
  return body;
}

Result<std::string> render_fit(const json& body, const TextStyle& style) {
  const Result<FitReply> reply = read_reply<FitReply>(body);
  if (!reply) return std::unexpected(reply.error());
  std::string text = reply->sentence + "\n";
  if (style.legend) text += fmt::format("  {:32}{:>8}  {:>10}\n", "", "CPU", "MEMORY");
  const Amount host{reply->host.cpu_cores, static_cast<double>(reply->host.memory.value)};
  const std::pair<const char*, const Amount&> parts[] = {
      {"host", host},
      {"kept free", reply->reserve},
      {"used outside of containers", reply->outside},
      {"containers may need at once", reply->containers_need},
      {"free", reply->free},
      {"requested", reply->asked}};
  for (const auto& [title, amount] : parts)
    text += fmt::format("  {:32}{:>8}  {:>10}\n", title, cores_text(amount.cpu_cores),
                        bytes_text(amount.memory_bytes));
  using enum Table::Align;
  Table table({{"NAME", left}, {"CPU", right}, {"AT MOST", right}, {"BASIS", left},
               {"MEMORY", right}, {"AT MOST", right}, {"BASIS", left}});
  for (const FitReply::Container& one : reply->containers)
    table.add({{escape_name(one.name)},
               {cores_text(one.cpu_cores.peak)},
               {cores_text(one.cpu_cores.at_most)},
               {to_string(one.cpu_cores.basis)},
               {bytes_text(one.memory_bytes.peak)},
               {bytes_text(one.memory_bytes.at_most)},
               {to_string(one.memory_bytes.basis)}});
  return reply->containers.empty() ? text : text + table.text(style);
}

constexpr CsvColumn kColumns[] = {
    {"name", "/name"},
    {"cpu_cores_peak", "/cpu_cores/peak"},
    {"cpu_cores_at_most", "/cpu_cores/at_most"},
    {"cpu_basis", "/cpu_cores/basis"},
    {"memory_bytes_peak", "/memory_bytes/peak"},
    {"memory_bytes_at_most", "/memory_bytes/at_most"},
    {"memory_basis", "/memory_bytes/basis"}};
const Form kFitForm{.text = render_fit, .rows = "/containers", .columns = kColumns};

int run(const FitOptions& options, const CommonOptions& common) {
  const auto question = question_of(options);
  if (!question) return complain(question.error());
  const Body body = options.traces.empty() ? live(*question, common)
                                           : recorded(*question, options);
  if (!body) return complain(body.error());
  const auto reply = read_reply<FitReply>(*body);
  if (!reply) return complain(Exit::failure, reply.error().text);
  if (const int printed = print(kFitForm, *body, common); printed != 0) return printed;
  return reply->fits ? 0 : static_cast<int>(Exit::not_met);
}

}  // namespace

void add_fit_verb(CLI::App& app, const CommonOptions& common, int& exit_code) {
  CLI::App* const verb = app.add_subcommand(
      "fit", "Show whether a job fits into what is free, by forecast; exit 0 or 7");
  const auto options = std::make_shared<FitOptions>();
  verb->add_option("--cpus", options->cpus, "Cores that the job needs")->required();
  verb->add_option("--memory", options->memory, "Memory that the job needs (512M, 1.5GiB)")
      ->type_name("SIZE")
      ->required();
  verb->add_option("--for", options->duration, "How long the job runs (90s, 10m, 2h)")
      ->type_name("DURATION")
      ->required();
  verb->add_option("--risk", options->risk,
                   "Risk that a resource runs short meanwhile (0.1% or 0.001) [1%]")
      ->type_name("SHARE");
  verb->add_option("trace", options->traces,
                   "Traces to use instead of the daemon; all their executions run at once")
      ->type_name("TRACE");
  verb->add_option("--model", options->model,
                   "Model file, for traces [" + std::string(kInstalledModel) + "]")
      ->type_name("FILE");
  verb->add_option("--host-cpus", options->host_cpus, "Cores of the host, for traces");
  verb->add_option("--host-memory", options->host_memory, "Memory of the host, for traces")
      ->type_name("SIZE");
  verb->callback([options, &common, &exit_code] { exit_code = run(*options, common); });
}

}  // namespace cgphase
