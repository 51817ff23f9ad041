#include "cli/output/present.h"

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/text.h"
#include "cli/output/render.h"
#include "cli/output/table.h"
#include "cli/output/view.h"
#include "protocol/metrics.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr CsvColumn kContainerColumns[] = {
    {"name", "/name"},
    {"engine", "/engine"},
    {"engine_id", "/engine_id"},
    {"image", "/image"},
    {"path", "/path"},
    {"device", "/id/device"},
    {"inode", "/id/inode"},
    {"mode", "/mode"},
    {"hands_off", "/hands_off"},
    {"paused", "/paused"},
    {"phase_state", "/phase/state"},
    {"phase_index", "/phase/index"},
    {"phase_distance", "/phase/distance"},
    {"phase_margin", "/phase/margin"},
    {"phase_confidence", "/phase/confidence"},
    {"seconds_in_phase", "/seconds_in_phase"},
    {"usage_cpu_cores", "/usage/cpu_cores"},
    {"usage_memory_need_bytes", "/usage/memory_need_bytes"},
    {"usage_memory_current_bytes", "/usage/memory_current_bytes"},
    {"limit_cpu_cores", "/limits/cpu_cores"},
    {"limit_memory_bytes", "/limits/memory_bytes"},
    {"original_cpu_cores", "/original/cpu_cores"},
    {"original_memory_bytes", "/original/memory_bytes"},
    {"recommendation_cpu_cores", "/recommendation/cpu_cores"},
    {"recommendation_memory_bytes", "/recommendation/memory_bytes"},
    {"pinned_cpu_cores", "/pinned/cpu_cores"},
    {"pinned_memory_bytes", "/pinned/memory_bytes"},
    {"saving_cpu_cores", "/saving/cpu_cores"},
    {"saving_memory_bytes", "/saving/memory_bytes"},
    {"next_phase", "/next/0/phase"},
    {"next_probability", "/next/0/probability"},
    {"next_in_seconds", "/next/0/in_seconds"},
    {"blocked_by_cpu", "/blocked_by/cpu"},
    {"blocked_by_memory", "/blocked_by/memory"},
    {"throttled_usec", "/throttled_usec"},
    {"oom_kills", "/oom_kills"},
    {"run_queue_wait_usec", "/run_queue/wait_usec"},
    {"run_queue_waits", "/run_queue/waits"},
    {"network_receive_bytes", "/network/receive_bytes"},
    {"network_transmit_bytes", "/network/transmit_bytes"},
    {"tcp_retransmits", "/network/tcp_retransmits"},
    {"block_bytes", "/block/bytes"},
    {"gpu_utilisation_ratio", "/gpu/utilisation_ratio"},
    {"gpu_memory_utilisation_ratio", "/gpu/memory_utilisation_ratio"},
    {"gpu_memory_bytes", "/gpu/memory_bytes"},
    {"gpu_ids", "/gpu/ids"},
};

constexpr CsvColumn kHistoryColumns[] = {
    {"time", "/time"},
    {"phase_state", "/phase/state"},
    {"phase_index", "/phase/index"},
    {"phase_margin", "/phase/margin"},
    {"cpu_cores", "/cpu_cores"},
    {"memory_need_bytes", "/memory_need_bytes"},
    {"memory_current_bytes", "/memory_current_bytes"},
    {"limit_cpu_cores", "/limits/cpu_cores"},
    {"limit_memory_bytes", "/limits/memory_bytes"},
};

constexpr CsvColumn kEventColumns[] = {
    {"time", "/time"},
    {"name", "/name"},
    {"event", "/event"},
    {"decision_id", "/decision/decision_id"},
    {"resource", "/decision/resource"},
    {"direction", "/decision/direction"},
    {"reason", "/decision/reason"},
    {"verdict", "/decision/verdict"},
    {"old_cpu_cores", "/decision/old_limits/cpu_cores"},
    {"old_memory_bytes", "/decision/old_limits/memory_bytes"},
    {"new_cpu_cores", "/decision/new_limits/cpu_cores"},
    {"new_memory_bytes", "/decision/new_limits/memory_bytes"},
    {"outcome_of", "/outcome/decision_id"},
    {"outcome", "/outcome/kind"},
    {"sentence", "/sentence"},
};

constexpr CsvColumn kFindingColumns[] = {
    {"level", "/level"}, {"name", "/name"}, {"text", "/text"}, {"way_out", "/way_out"}};

std::string dumped(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string words_of(const json& array) {
  std::string words;
  for (const json& word : array) words += (words.empty() ? "" : " ") + view_text(word, "");
  return words;
}

std::string csv_field(const json& row, const char* path) {
  const json& value = view(row, path);
  if (value.is_string()) return view_text(row, path);
  if (value.is_array()) return words_of(value);
  return value.is_null() ? std::string() : value.dump();
}

std::vector<const json*> rows_of(const Form& form, const json& body) {
  std::vector<const json*> rows;
  if (*form.rows == '\0') return {&body};
  for (const json& row : view_array(body, form.rows)) rows.push_back(&row);
  return rows;
}

std::string as_jsonl(const Form& form, const json& body) {
  std::string text;
  for (const json* row : rows_of(form, body)) text += dumped(*row, -1);
  return text;
}

std::string as_csv(const Form& form, const json& body, bool legend) {
  std::vector<std::string> fields;
  for (const CsvColumn& column : form.columns) fields.emplace_back(column.title);
  std::string text = legend ? csv_record(fields) : "";
  for (const json* row : rows_of(form, body)) {
    fields.clear();
    for (const CsvColumn& column : form.columns) fields.push_back(csv_field(*row, column.path));
    text += csv_record(fields);
  }
  return text;
}

std::unexpected<Error> no_such(const std::string& output, const Form& form) {
  return failure(ErrorKind::unsupported,
                 "-o " + output + ": this verb has table, wide, json, jsonl" +
                     (form.columns.empty() ? "" : ", csv") +
                     (form.metrics ? ", openmetrics" : ""));
}

// Reads a reply into its struct, then renders it.
template <class Text, class Reply, class... More>
auto typed(Text (*render)(const Reply&, More...)) {
  return [render](const json& body, More... more) -> Result<std::string> {
    const Result<Reply> reply = read_reply<Reply>(body);
    if (!reply) return std::unexpected(reply.error());
    return render(*reply, more...);
  };
}

std::string list_metrics(const ListReply& reply) { return openmetrics(reply.containers); }
std::string show_metrics(const ContainerReport& report) {
  return openmetrics(std::span(&report, 1));
}

Result<std::string> show_text(const json& body, const TextStyle& style) {
  const Result<ContainerReport> report = read_reply<ContainerReport>(body);
  if (!report) return std::unexpected(report.error());
  return render_show(*report, view(body, "/bursts"), style);
}

}  // namespace

const Form kStatusForm{.text = typed(render_status),
                       .metrics = typed<std::string, StatusReport>(openmetrics)};
const Form kListForm{.text = typed(render_list), .rows = "/containers",
                     .columns = kContainerColumns, .metrics = typed(list_metrics)};
const Form kShowForm{
    .text = show_text, .columns = kContainerColumns, .metrics = typed(show_metrics)};
const Form kExplainForm{.text = typed(render_explain)};
const Form kHistoryForm{
    .text = typed(render_history), .rows = "/points", .columns = kHistoryColumns};
const Form kEventsForm{.text = typed(render_events), .rows = "/events", .columns = kEventColumns};
const Form kActionForm{.text = typed(render_action)};
const Form kDoctorForm{.text = render_doctor, .rows = "/findings", .columns = kFindingColumns};

Result<std::string> present(const Form& form, const json& body, Output output,
                            const TextStyle& style) {
  switch (output) {
    case Output::table:
    case Output::wide: return form.text(body, style);
    case Output::json: return dumped(body, 2);
    case Output::jsonl: return as_jsonl(form, body);
    case Output::csv:
      if (form.columns.empty()) return no_such("csv", form);
      return as_csv(form, body, style.legend);
    case Output::openmetrics:
      if (!form.metrics) return no_such("openmetrics", form);
      return form.metrics(body);
  }
  return no_such("", form);
}

}  // namespace cgphase
