// `cgphase predict`: the phase of each row of a trace.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cli/commands/phase_spool.h"
#include "cli/commands/verbs.h"
#include "cli/offline.h"
#include "cli/options.h"
#include "cli/trace_input.h"
#include "model/ai4dl.h"
#include "model/feature_schema.h"
#include "model/trace_features.h"
#include "model/trace_phases.h"
#include "traces/text_lines.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr std::size_t kWriteBytes = 64 * 1024;

struct PredictOptions {
  std::string model = default_model_path(), trace, output;
  bool compat = false, as_json = false, legend = true;
};

Status check_compat(const Model& model, const std::string& path) {
  if (has_only_columns(model.schema)) return {};
  return failure(ErrorKind::invalid,
                 path + ": --compat needs a model imported from AI4DL (cgphase model import)");
}

std::string feature_list(const Model& model) {
  std::string list;
  for (const FeatureSchema::Entry& entry : model.schema.entries)
    list += (list.empty() ? "" : ", ") + escape_name(entry.name);
  return list;
}

// Returns the phase of each row of one execution.
using Follower = std::move_only_function<Phase(const ExecutionHeader&, const TraceRow&)>;

// What any execution had.
struct Seen {
  bool steps = false, measured = false;
};

Follower follower(const std::shared_ptr<const PhaseEngine>& engine, bool compat, Seen& seen) {
  if (compat)
    return [predictor = Ai4dlPredictor(engine->model())](const ExecutionHeader&,
                                                         const TraceRow& row) mutable {
      return predictor.add(row);
    };
  return [own = PhaseFollower(engine), &seen](const ExecutionHeader& execution,
                                              const TraceRow& row) mutable {
    const Phase phase = own.add(execution, row);
    seen.steps |= own.steps() > 0;
    seen.measured |= own.measured();
    return phase;
  };
}

Status follow(TraceReader& reader, const std::shared_ptr<const PhaseEngine>& engine, bool compat,
              PhaseSpool& spool) {
  Seen seen;
  std::vector<Follower> followers;
  const Status read = read_trace_input(reader, [&](const TraceRow& row) {
    if (reader.index() == followers.size()) followers.push_back(follower(engine, compat, seen));
    const Phase phase = followers[reader.index()](reader.execution(), row);
    return spool.add(reader.index(), {row.wall_time, phase});
  });
  if (!read || !seen.steps || seen.measured) return read;
  return failure(ErrorKind::invalid, reader.path() + ": no row has any feature of the model (" +
                                         feature_list(engine->model()) +
                                         "): record them, or use another model");
}

void append_csv(const std::string& id, const PhaseSpool::Row& row, std::string& out) {
  const std::chrono::duration<double> since_epoch = row.time.time_since_epoch();
  const Phase& phase = row.phase;
  const auto to = std::back_inserter(out);
  fmt::format_to(to, "{:.3f},{},", since_epoch.count(), id);
  if (phase.known()) fmt::format_to(to, "{}", phase.index);
  fmt::format_to(to, ",{},", to_string(phase.state));
  if (phase.state != PhaseState::not_enough_history)
    fmt::format_to(to, "{},{}", phase.distance, phase.margin);
  else
    out += ',';
  out += '\n';
}

Status write_csv(std::span<const ExecutionHeader> executions, const PhaseSpool& phases,
                 bool legend, TextOutput& output) {
  std::string text = legend ? "timestamp,pod.id,phase,state,distance,margin\n" : "";
  for (std::size_t i = 0; i < executions.size(); ++i) {
    const std::string id = csv_field(escape_name(executions[i].id));
    const Status status = phases.read(i, [&](std::span<const PhaseSpool::Row> rows) -> Status {
      for (const PhaseSpool::Row& row : rows) {
        append_csv(id, row, text);
        if (text.size() < kWriteBytes) continue;
        if (Status written = output.write(text); !written) return written;
        text.clear();
      }
      return {};
    });
    if (!status) return status;
  }
  return output.write(text);
}

json phase_json(const Phase& phase) { return phase.known() ? json(phase.index) : json(); }

json margin_json(const Phase& phase) {
  return phase.state == PhaseState::not_enough_history ? json() : json(phase.margin);
}

// Writes one value per row of one execution.
Status write_array(const PhaseSpool& phases, std::size_t execution, json (*value)(const Phase&),
                   TextOutput& output) {
  std::string_view before = "[";
  const Status status =
      phases.read(execution, [&](std::span<const PhaseSpool::Row> rows) -> Status {
        json piece = json::array();
        for (const PhaseSpool::Row& row : rows) piece.push_back(value(row.phase));
        std::string text = piece.dump();
        text.replace(0, 1, std::exchange(before, ","));
        text.pop_back();
        return output.write(text);
      });
  return status ? output.write("]") : status;
}

// The keys are in alphabetical order, as in all our JSON.
Status write_json(std::span<const ExecutionHeader> executions, const PhaseSpool& phases,
                  TextOutput& output) {
  std::string before = R"({"executions":[)";
  for (std::size_t i = 0; i < executions.size(); ++i) {
    const std::string id = json(escape_name(executions[i].id)).dump();
    Status status = output.write(before + R"({"id":)" + id + R"(,"margins":)");
    if (status) status = write_array(phases, i, margin_json, output);
    if (status) status = output.write(R"(,"phases":)");
    if (status) status = write_array(phases, i, phase_json, output);
    if (!status) return status;
    before = "},";
  }
  return output.write((executions.empty() ? before : "}") + R"(],"schema":1})" + "\n");
}

// Nothing is written before the whole trace was read, so that a bad row leaves no partial output.
Status predict(const PredictOptions& options) {
  Result<Model> model = load_model(options.model);
  if (!model) return std::unexpected(model.error());
  if (options.compat)
    if (Status status = check_compat(*model, options.model); !status) return status;
  const auto engine = PhaseEngine::create(std::move(*model));
  if (!engine) return std::unexpected(engine.error());
  const TraceOptions asked{.columns = schema_columns((*engine)->model().schema),
                           .max_rows = kAnyTraceRows};
  Result<TraceReader> reader = TraceReader::open(options.trace, asked);
  if (!reader) return std::unexpected(reader.error());
  PhaseSpool phases;
  if (Status status = follow(*reader, *engine, options.compat, phases); !status) return status;
  Result<TextOutput> output = TextOutput::open(options.output);
  if (!output) return std::unexpected(output.error());
  if (Status status = options.as_json
                          ? write_json(reader->executions(), phases, *output)
                          : write_csv(reader->executions(), phases, options.legend, *output);
      !status)
    return status;
  return output->finish();
}

}  // namespace

void add_predict_verb(CLI::App& app, const CommonOptions& common, int& exit_code) {
  CLI::App* verb =
      app.add_subcommand("predict", "Print the phase of each sample of a trace, as CSV or JSON");
  const auto options = std::make_shared<PredictOptions>();
  verb->add_option("--model", options->model, kModelHelp)->type_name("FILE");
  verb->add_option("trace", options->trace, "Trace, CSV or CSV.gz")->type_name("TRACE")->required();
  verb->add_option("--output", options->output, "File to write instead of standard output")
      ->type_name("FILE");
  verb->add_option_function<std::string>(
          "-o", [options](const std::string& form) { options->as_json = form == "json"; },
          "Output format [csv]")
      ->check(CLI::IsMember({"csv", "json"}));
  verb->add_flag("--json", options->as_json, "Print JSON instead of CSV");
  verb->add_flag("--compat", options->compat, "Reproduce AI4DL's Predict (imported models)");
  verb->callback([options, &common, &exit_code] {
    options->legend = common.legend;
    exit_code = finish(predict(*options));
  });
}

}  // namespace cgphase
