// What HTTP serves: the page of web/, metrics, and replies of reading verbs as JSON.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "agent/http/http_server.h"
#include "base/clock.h"

namespace cgphase {

inline constexpr const char* kOpenMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

// Used by the agent's thread alone. What all ask for (metrics, status, list) is made at most once a
// second, however many ask.
class HttpPages {
 public:
  // Answers a verb, at once or later, as Answers::answer(); status and list at once.
  using Ask = std::function<void(const Request&, std::function<void(nlohmann::json)>)>;

  HttpPages(const Clock& clock, Ask ask) : clock_(clock), ask_(std::move(ask)) {}

  void serve(const HttpRoute& route, const HttpServer::Respond& respond);

 private:
  using Text = std::shared_ptr<const std::string>;
  struct Kept {
    MonotonicTime made;
    HttpReply reply;
  };
  enum class Often : std::uint8_t { metrics, status, list };

  const HttpReply& kept(Often which);
  HttpReply make(Often which) const;

  const Clock& clock_;
  Ask ask_;
  std::array<Kept, 3> kept_;
};

// Status 200, or that of an error reply: no such container is 404, and so on.
HttpReply http_reply_of(const nlohmann::json& body);
// All metrics, of what `ask` answers to status and list.
std::string metrics_text(const HttpPages::Ask& ask, bool openmetrics);

}  // namespace cgphase
