#include "cli/output/bursts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "cli/output/table.h"
#include "cli/output/view.h"
#include "cli/trace_input.h"
#include "model/burst_history.h"
#include "traces/trace.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr const char* kReceived = "net.rx.bytes";
constexpr const char* kSent = "net.tx.bytes";

// Sums bytes per interval up to counters like those of the kernel.
class IntervalSums {
 public:
  void put(const TraceRow& row, Sample& sample) {
    sample.network = {};
    sample.network.receive_bytes = add(row.columns[0], received_);
    sample.network.transmit_bytes = add(row.columns[1], sent_);
  }

 private:
  static Counter add(const std::optional<double>& bytes, std::uint64_t& sum) {
    constexpr double kMost = 1e15;
    if (!bytes || !(*bytes >= 0) || *bytes > kMost) return std::nullopt;
    return sum += static_cast<std::uint64_t>(std::llround(*bytes));
  }
  std::uint64_t received_ = 0, sent_ = 0;
};

struct Metered {
  BurstMeter meter;
  IntervalSums sums;
  WallTime begin;
};

Status read_runs_of(const std::string& path, bool network_per_interval,
                    std::vector<BurstRun>& runs) {
  TraceOptions options{.columns = {}, .max_rows = kAnyTraceRows};
  if (network_per_interval) options.columns = {kReceived, kSent};
  Result<TraceReader> reader = TraceReader::open(path, options);
  if (!reader) return std::unexpected(reader.error());
  std::vector<Metered> metered;
  const Status read = read_trace_input(*reader, [&](const TraceRow& row) -> Status {
    if (reader->index() == metered.size())
      metered.push_back({.meter = {}, .sums = {}, .begin = row.wall_time});
    Metered& one = metered[reader->index()];
    if (!network_per_interval) {
      one.meter.add(row.sample, row.time);
      return {};
    }
    Sample sample = row.sample;
    one.sums.put(row, sample);
    one.meter.add(sample, row.time);
    return {};
  });
  if (!read) return read;
  for (std::size_t i = 0; i < metered.size(); ++i) {
    const ExecutionHeader& header = reader->executions()[i];
    runs.push_back({.service = header.service.empty() ? header.id : header.service,
                    .execution = header.id, .begin = metered[i].begin,
                    .bursts = metered[i].meter.bursts()});
  }
  return {};
}

// One number of one execution: the measured value and the prediction.
json row_of(const BurstRun& run, std::size_t source, std::size_t number,
            const std::optional<BurstPrediction>& prediction) {
  const Moments& moments = run.bursts[source].numbers[number];
  json row = {{"service", escape_name(run.service)}, {"execution", escape_name(run.execution)},
              {"series", burst_source_name(source)}, {"number", burst_number_name(number)},
              {"count", moments.count}, {"mean", nullptr}, {"sd", nullptr},
              {"predicted", nullptr}, {"relative_error", nullptr}};
  if (moments.count > 0) row["mean"] = moments.mean;
  if (const auto deviation = moments.deviation()) row["sd"] = *deviation;
  if (!prediction) return row;
  row["predicted"] = prediction->value;
  if (moments.count > 0 && moments.mean > 0)
    row["relative_error"] = std::abs(prediction->value - moments.mean) / moments.mean;
  return row;
}

using Errors = std::array<std::array<std::vector<double>, kBurstNumbers>, kBurstSources>;

double median_of(std::vector<double>& values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

json errors_json(Errors& errors) {
  json out = json::array();
  for (std::size_t i = 0; i < kBurstSources; ++i)
    for (std::size_t k = 0; k < kBurstNumbers; ++k) {
      std::vector<double>& all = errors[i][k];
      json one = {{"series", burst_source_name(i)}, {"number", burst_number_name(k)},
                  {"predictions", all.size()}, {"mean_relative_error", nullptr},
                  {"median_relative_error", nullptr}};
      if (!all.empty()) {
        double sum = 0;
        for (const double error : all) sum += error;
        one["mean_relative_error"] = sum / static_cast<double>(all.size());
        one["median_relative_error"] = median_of(all);
      }
      out.push_back(std::move(one));
    }
  return out;
}

std::string number_text(const json& from, const char* path, const std::string& number) {
  const std::optional<double> value = view_number(from, path);
  if (!value) return "-";
  return number.ends_with("_seconds") ? duration_text(value) : fmt::format("{:.4g}", *value);
}

std::string service_text(const json& service, const TextStyle& style) {
  using enum Table::Align;
  Table table({{"SERIES", left}, {"NUMBER", left}, {"NEXT", right}, {"SPREAD", right},
               {"ERROR", right}, {"RUNS", right}, {"SEGMENTS", right}});
  bool any = false;
  const json& prediction = view(service, "/prediction");
  for (std::size_t i = 0; i < kBurstSources; ++i)
    for (std::size_t k = 0; k < kBurstNumbers; ++k) {
      const std::string series(burst_source_name(i)), number(burst_number_name(k));
      const json& one = view(prediction, ("/" + series + "/" + number).c_str());
      if (!one.is_object()) continue;
      any = true;
      table.add({{series}, {number}, {number_text(one, "/value", number)},
                 {number_text(one, "/deviation", number)},
                 {percent_text(view_number(one, "/relative_error"))},
                 {count_text(view_number(one, "/runs"))},
                 {count_text(view_number(one, "/segments"))}});
    }
  const double runs = view_number(service, "/executions").value_or(0);
  std::string text = fmt::format("{}: {:.0f} execution{}", view_text(service, "/service"), runs,
                                 runs == 1 ? "" : "s");
  if (!any) return text + ", no bursts of network or GPU\n";
  return text + '\n' + table.text(style);
}

}  // namespace

Result<std::vector<BurstRun>> read_burst_runs(std::span<const std::string> paths,
                                              bool network_per_interval) {
  std::vector<BurstRun> runs;
  for (const std::string& path : paths)
    if (Status read = read_runs_of(path, network_per_interval, runs); !read)
      return std::unexpected(read.error());
  std::ranges::stable_sort(runs, {}, &BurstRun::begin);
  return runs;
}

json bursts_report(std::span<const BurstRun> runs) {
  struct Known {
    BurstHistory history;
    int executions = 0;
  };
  std::map<std::string, Known> services;
  Errors errors;
  json rows = json::array(), list = json::array();
  for (const BurstRun& run : runs) {
    Known& known = services[run.service];
    for (std::size_t i = 0; i < kBurstSources; ++i)
      for (std::size_t k = 0; run.bursts[i].values > 0 && k < kBurstNumbers; ++k) {
        rows.push_back(row_of(run, i, k, known.history.predict(i, k)));
        const json& error = rows.back()["relative_error"];
        if (error.is_number()) errors[i][k].push_back(error.get<double>());
      }
    known.history.add(run.bursts);
    known.executions += 1;
  }
  for (const auto& [name, known] : services)
    list.push_back({{"service", escape_name(name)}, {"executions", known.executions},
                    {"prediction", predictions_to_json(known.history)}});
  return {{"schema", 1}, {"rows", std::move(rows)}, {"services", std::move(list)},
          {"errors", errors_json(errors)}};
}

std::string render_bursts(const json& body, const TextStyle& style) {
  using enum Table::Align;
  std::string text;
  for (const json& service : view_array(body, "/services")) text += service_text(service, style);
  Table table({{"SERIES", left}, {"NUMBER", left}, {"PREDICTIONS", right}, {"MEDIAN ERROR", right},
               {"MEAN ERROR", right}});
  bool any = false;
  for (const json& error : view_array(body, "/errors")) {
    if (view_number(error, "/predictions").value_or(0) < 1) continue;
    any = true;
    table.add({{view_text(error, "/series")}, {view_text(error, "/number")},
               {count_text(view_number(error, "/predictions"))},
               {percent_text(view_number(error, "/median_relative_error"))},
               {percent_text(view_number(error, "/mean_relative_error"))}});
  }
  if (!any) return text + "\nnothing was predicted: no service has bursts in two executions\n";
  return text + "\nEach execution, predicted from earlier executions of its service:\n" +
         table.text(style);
}

std::string render_container_bursts(const json& bursts, const TextStyle& style) {
  using enum Table::Align;
  Table table({{"BURSTS OF", left}, {"NUMBER", left}, {"NOW", right}, {"SPREAD", right},
               {"COUNT", right}, {"NEXT RUN", right}, {"SPREAD", right}, {"ERROR", right}});
  bool any = false;
  for (std::size_t i = 0; i < kBurstSources; ++i)
    for (std::size_t k = 0; k < kBurstNumbers; ++k) {
      const std::string series(burst_source_name(i)), number(burst_number_name(k));
      const std::string place = '/' + series + '/' + number;
      const json& now = view(bursts, ("/now" + place).c_str());
      const json& next = view(bursts, ("/next" + place).c_str());
      if (view_number(now, "/count").value_or(0) < 1 && !next.is_object()) continue;
      any = true;
      table.add({{series}, {number}, {number_text(now, "/mean", number)},
                 {number_text(now, "/sd", number)}, {count_text(view_number(now, "/count"))},
                 {number_text(next, "/value", number)}, {number_text(next, "/deviation", number)},
                 {percent_text(view_number(next, "/relative_error"))}});
    }
  return any ? table.text(style) : "";
}

}  // namespace cgphase
