// What the daemon shows beside its own sockets, where that is asked for: HTTP, by `http.listen` or
// by sockets that the service manager passes, and the textfile of `metrics.textfile`. Where neither
// is, it costs nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/config/config.h"
#include "agent/http/http_pages.h"
#include "agent/http/http_server.h"
#include "agent/http/metrics_file.h"
#include "agent/server/event_loop.h"
#include "base/clock.h"
#include "collectors/node_sampler.h"

namespace cgphase {

// Used by the thread of the loop.
class Publisher {
 public:
  // Opens the sockets. Call before any fork and any other thread: it takes what the service manager
  // passed, and sets the umask.
  Publisher(EventLoop& loop, const Config& config, const Clock& clock);
  ~Publisher();

  // One for all of HTTP, where it was asked for: whether it is served, where, or why not.
  std::vector<Source> sources() const { return sources_; }
  // Why the textfile is not written, as one sentence; nothing where it is.
  std::optional<std::string> complaint() const;
  // Begins to serve and to write what `ask` answers.
  void start(const HttpPages::Ask& ask);

 private:
  void open_sockets(const Config& config);
  void write_textfile_in(std::chrono::nanoseconds delay);

  EventLoop& loop_;
  HttpServer::Options options_;
  std::vector<HttpSocket> sockets_;
  std::vector<Source> sources_;
  const Clock& clock_;
  std::string textfile_path_;
  std::chrono::milliseconds textfile_interval_;
  HttpPages::Ask ask_;
  std::optional<HttpPages> pages_;
  std::optional<HttpServer> server_;
  std::optional<MetricsFile> textfile_;
  EventLoop::Timer timer_;
};

}  // namespace cgphase
