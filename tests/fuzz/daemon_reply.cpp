// Replies of a daemon that the command does not trust: pages of the history, the list of its
// containers, and learned statistics. A refusal is one printable line. An accepted reply is the
// same when it is written and read again, and makes a readable trace.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "policy/learned_json.h"
#include "protocol/history.h"
#include "protocol/protocol.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/refusal.h"
#include "traces/trace.h"

using namespace cgphase;
using nlohmann::json;

namespace {

template <class T>
void check_readable(const Result<T>& result) {
  if (result) return;
  CHECK_INVARIANT(result.error().kind == ErrorKind::invalid);
  CHECK_INVARIANT(printable(result.error().text) == result.error().text);
}

// Rows must be in the order of their times, as in the history; hostile times make no trace.
void check_trace(const std::vector<HistoryPoint>& points) {
  std::string text;
  write_trace_header(text);
  ContainerInfo container;
  container.name = "job";
  const HistoryPoint* before = nullptr;
  for (const HistoryPoint& point : points) {
    const TraceRecord row{.container = &container, .time = point.time, .host = point.host,
                          .original = point.original, .sample = &point.sample,
                          .previous = before != nullptr ? &before->sample : nullptr,
                          .interval_seconds = 1, .phase = point.phase.index, .label = {},
                          .label_detail = {}};
    write_trace_row(text, row);
    before = &point;
  }
  static const MemoryFile file;
  file.write(text);
  const Result<Trace> trace = read_trace(file.path());
  if (!trace) return check_refusal(trace.error(), file.path(), "");
  std::size_t rows = 0;
  for (const Execution& execution : trace->executions) rows += execution.rows.size();
  CHECK_INVARIANT(rows == points.size());
}

void check_page(const json& body) {
  const auto points = parse_history_page(body);
  check_readable(points);
  if (!points) return;
  check_trace(*points);
  const json written = history_page(*points);
  const auto again = parse_history_page(json::parse(written.dump()));
  CHECK_INVARIANT(again.has_value());
  CHECK_INVARIANT(again->size() <= points->size());
  CHECK_INVARIANT(history_page(*again) == written);
}

void check_records(const json& body) {
  const auto records = parse_records_page(body);
  check_readable(records);
  if (!records) return;
  const json written = records_page(*records);
  const auto again = parse_records_page(written);
  CHECK_INVARIANT(again.has_value() && records_page(*again) == written);
}

void check_learned(const json& body) {
  const auto learned = learned_from_json(body.value("learned", json()));
  check_readable(learned);
  if (!learned) return;
  const json written = learned_to_json(*learned);
  const auto again = learned_from_json(written);
  CHECK_INVARIANT(again.has_value() && learned_to_json(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const Result<Reply> reply = parse_reply({reinterpret_cast<const char*>(bytes), size});
  if (!reply || reply->exit != Exit::ok) return 0;
  check_page(reply->body);
  check_records(reply->body);
  check_learned(reply->body);
  return 0;
}
