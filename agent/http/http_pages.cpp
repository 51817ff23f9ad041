#include "agent/http/http_pages.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/http/web_files.h"
#include "base/text.h"
#include "protocol/metrics.h"
#include "protocol/protocol.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kFreshFor{1};

// Of an error reply's exit code.
unsigned status_of(int exit) {
  switch (static_cast<Exit>(exit)) {
    case Exit::no_container: return 404;
    case Exit::usage:
    case Exit::invalid: return 400;
    case Exit::denied: return 403;
    case Exit::unreachable: return 503;
    default: return 500;
  }
}

json answer_at_once(const HttpPages::Ask& ask, const Request& request) {
  json body;
  ask(request, [&](json reply) { body = std::move(reply); });
  return body;
}

HttpReply file_reply(const std::string& path) {
  const auto files = web_files();
  const auto file = std::ranges::find(files, path, &WebFile::path);
  if (file == files.end())
    return http_error(404, Exit::no_container,
                      "no '" + escape_name(path.substr(0, 64)) +
                          "'; there are /, /metrics, /api/v1/status, /api/v1/list, ...");
  return {.type = file->type, .body = std::make_shared<const std::string>(file->text)};
}

}  // namespace

HttpReply http_reply_of(const json& body) {
  auto text = std::make_shared<std::string>(
      body.dump(-1, ' ', false, json::error_handler_t::replace) + "\n");
  if (text->size() > kReplyLimitBytes)
    return http_error(500, Exit::failure, "answer longer than 16 MiB; ask for a shorter time");
  const json::json_pointer exit("/error/exit");
  return {.status = body.contains(exit) ? status_of(body.at(exit).get<int>()) : 200,
          .body = std::move(text)};
}

std::string metrics_text(const HttpPages::Ask& ask, bool openmetrics) {
  const auto status = read_reply<StatusReport>(answer_at_once(ask, StatusRequest{}));
  const ListReply list =
      read_reply<ListReply>(answer_at_once(ask, ListRequest{})).value_or(ListReply{});
  return metrics_page(status ? &*status : nullptr, list.containers,
                      openmetrics ? MetricsForm::openmetrics : MetricsForm::prometheus);
}

HttpReply HttpPages::make(Often which) const {
  if (which == Often::metrics)
    return {.type = kOpenMetricsType,
            .body = std::make_shared<const std::string>(metrics_text(ask_, true))};
  const Request request = which == Often::status ? Request(StatusRequest{}) : ListRequest{};
  return http_reply_of(answer_at_once(ask_, request));
}

const HttpReply& HttpPages::kept(Often which) {
  Kept& kept = kept_[static_cast<std::size_t>(which)];
  const MonotonicTime now = clock_.monotonic_now();
  if (kept.reply.body == nullptr || now - kept.made >= kFreshFor) kept = {now, make(which)};
  return kept.reply;
}

void HttpPages::serve(const HttpRoute& route, const HttpServer::Respond& respond) {
  if (route.kind == HttpRoute::Kind::file) return respond(file_reply(route.file));
  if (route.kind == HttpRoute::Kind::metrics) return respond(kept(Often::metrics));
  if (verb_of(route.request) == Verb::status) return respond(kept(Often::status));
  if (verb_of(route.request) == Verb::list) return respond(kept(Often::list));
  // Out of the history it comes in another thread, which makes the text as well.
  ask_(route.request, [respond](const json& body) { respond(http_reply_of(ok_reply(body))); });
}

}  // namespace cgphase
