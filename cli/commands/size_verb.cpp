// The verb size: shows what to request next time.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <expected>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/commands/size.h"
#include "cli/commands/trace_runs.h"
#include "cli/commands/verbs.h"
#include "cli/daemon_client.h"
#include "cli/offline.h"
#include "cli/options.h"
#include "cli/output/job_words.h"
#include "cli/output/print.h"
#include "policy/learned_json.h"
#include "protocol/replies.h"

namespace cgphase {
namespace {

using nlohmann::json;
using Sizes = std::expected<std::vector<Sized>, Complaint>;

struct SizeOptions {
  std::vector<std::string> what;
  std::string image, model = default_model_path(), risk_text;
  double risk = kSizeDefaultRisk;
};

// A state that another policy learned counts as nothing.
Sized sized(std::string name, const char* kind, const LearnedState& learned, double risk,
            const HostCapacity& host) {
  return size_of(std::move(name), kind, std::get_if<LearnedPhases>(&learned), risk, host);
}

// Returns the largest host of all runs that name one, because a service may move.
HostCapacity largest_host(const std::vector<WatchedRun>& runs) {
  HostCapacity host;
  for (const WatchedRun& run : runs) {
    if (run.host_cores_told) host.cpu_cores = std::max(host.cpu_cores, run.host.cpu_cores);
    if (run.host_memory_told) host.memory = std::max(host.memory, run.host.memory);
  }
  return host;
}

Sizes live(const SizeOptions& options, const CommonOptions& common) {
  const bool by_image = !options.image.empty();
  const std::string& name = by_image ? options.image : options.what.front();
  const std::string sent = printable(name) == name ? name : escape_name(name);
  LearnedRequest request;
  (by_image ? request.image : request.container) = sent;
  const auto reply = ask_for<LearnedReply>(common.socket, request);
  if (!reply && reply.error().exit == Exit::unreachable && !by_image)
    return complaint(
        Exit::unreachable,
        reply.error().text +
            fmt::format("; '{}' is not a file, so it was read as a container", escape_name(name)));
  if (!reply) return std::unexpected(reply.error());
  Sized one = sized(reply->name, by_image ? "image" : "container",
                    learned_from_json(reply->learned).value_or(LearnedState{}), options.risk,
                    reply->host);
  if (!one.overall.enough && reply->learned.is_null() && !reply->policy.starts_with("phase") &&
      !reply->policy.starts_with("proactive"))
    one.reason = fmt::format("the daemon's policy is {}, which learns no phases; record a trace of "
                             "it and size that (cgphase record -o F.csv)",
                             reply->policy);
  return std::vector{std::move(one)};
}

Sizes recorded(const SizeOptions& options) {
  const auto engine = engine_of(options.model);
  if (!engine) return complaint(engine.error());
  const auto runs = watch_traces(options.what, *engine, options.risk);
  if (!runs) return complaint(runs.error());
  const HostCapacity host = largest_host(*runs);
  std::vector<Sized> sizes;
  for (const auto& [service, learned] : learned_by_service(*runs))
    if (options.image.empty() || options.image == service)
      sizes.push_back(sized(unescape_name(service), "service", learned, options.risk, host));
  if (sizes.empty())
    return complaint(Exit::invalid,
                     "no service '" + escape_name(options.image) + "' in these traces");
  return sizes;
}

constexpr CsvColumn kSizeColumns[] = {
    {"name", "/name"}, {"kind", "/kind"}, {"enough_history", "/enough_history"},
    {"size", "/overall/size"}, {"cpu_millicores", "/overall/cpu_millicores"},
    {"memory_mib", "/overall/memory_mib"}, {"runs", "/overall/runs"},
    {"samples", "/overall/samples"}, {"hours", "/overall/hours"},
    {"risk_shown", "/overall/risk_shown"}};

int run(SizeOptions options, const CommonOptions& common) {
  if (const auto risk = parse_risk(options.risk_text, kSizeDefaultRisk); risk) options.risk = *risk;
  else return complain(Exit::usage, risk.error().text);
  const auto files = std::ranges::count_if(options.what, names_a_file);
  const auto words = static_cast<std::ptrdiff_t>(options.what.size());
  if (words == 0 && options.image.empty())
    return complain(Exit::usage, "size: name a container, --image NAME, or traces");
  if (files != words && (words != 1 || !options.image.empty()))
    return complain(Exit::usage, "size: one container, or --image NAME, or traces only");
  const Sizes sizes = words > 0 && files == words ? recorded(options) : live(options, common);
  if (!sizes) return complain(sizes.error());
  const Form form{.text = [&](const json&, const TextStyle& style) {
                    return render_sizes(*sizes, style);
                  },
                  .rows = "/sizes", .columns = kSizeColumns};
  return print(form, size_json(*sizes, options.risk), common);
}

}  // namespace

void add_size_verb(CLI::App& app, const CommonOptions& options, int& exit_code) {
  CLI::App* const verb =
      app.add_subcommand("size", "Show what to request next time, overall and per phase");
  const auto words = std::make_shared<SizeOptions>();
  verb->add_option("container", words->what,
                   "A container's name, id or path; or traces, CSV or CSV.gz")
      ->type_name("CONTAINER|TRACE");
  verb->add_option("--image", words->image, "All runs of an image; with traces, of a service")
      ->type_name("NAME");
  verb->add_option("--model", words->model,
                   "Model file, for traces [" + std::string(kInstalledModel) + "]")
      ->type_name("FILE");
  verb->add_option("--risk", words->risk_text,
                   "Share of samples that may want more CPU (0.1% or 0.001) [0.1%]")
      ->type_name("SHARE");
  verb->callback([words, &options, &exit_code] { exit_code = run(*words, options); });
}

}  // namespace cgphase
