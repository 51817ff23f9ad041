#include "agent/http/publisher.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/logging/log_entry.h"

namespace cgphase {
namespace {

constexpr std::size_t kMostPassedSockets = 4;

std::string joined(const std::string& text, const std::string& more) {
  return text.empty() ? more : text + "; " + more;
}

}  // namespace

Publisher::Publisher(EventLoop& loop, const Config& config, const Clock& clock)
    : loop_(loop), clock_(clock), textfile_path_(config.metrics.textfile),
      textfile_interval_(config.metrics.interval), timer_(loop) {
  options_.group = config.socket.group;
  options_.access = {.own_uid = ::geteuid(), .read_group = group_id(config.socket.group)};
  open_sockets(config);
}

Publisher::~Publisher() = default;

void Publisher::open_sockets(const Config& config) {
  std::vector<Result<HttpSocket>> found;
  std::vector<Fd> passed = take_passed_sockets();
  passed.resize(std::min(passed.size(), kMostPassedSockets));
  for (Fd& fd : passed) found.push_back(take_passed_socket(std::move(fd)));
  if (!config.http.listen.empty()) {
    const auto address = parse_http_address(config.http.listen);
    if (address) found.push_back(open_http_socket(*address, options_.access.read_group));
    else found.emplace_back(std::unexpected(address.error()));
  }
  if (found.empty()) return;
  std::string served, wrong;
  for (Result<HttpSocket>& socket : found) {
    if (!socket) {
      wrong = joined(wrong, socket.error().text);
      continue;
    }
    const bool named = !socket->is_unix() || !socket->address().path.empty();
    served = joined(served, named ? to_string(socket->address()) : "a socket without a name");
    sockets_.push_back(*std::move(socket));
  }
  if (!served.empty()) log_line(Priority::info, "HTTP is served at " + served);
  if (!wrong.empty()) log_line(Priority::error, "HTTP: " + wrong);
  sources_.push_back({"HTTP", wrong.empty(), wrong.empty() ? served : joined(served, wrong)});
}

std::optional<std::string> Publisher::complaint() const {
  const std::string failure = textfile_ ? textfile_->failure() : std::string();
  if (failure.empty()) return std::nullopt;
  return "metrics.textfile is not written: " + failure;
}

void Publisher::start(const HttpPages::Ask& ask) {
  ask_ = ask;
  if (!sockets_.empty()) {
    pages_.emplace(clock_, ask);
    server_.emplace(loop_.context(), std::move(sockets_), options_,
                    [this](const HttpRoute& route, const HttpServer::Respond& respond) {
                      pages_->serve(route, respond);
                    });
  }
  if (textfile_path_.empty()) return;
  textfile_.emplace(textfile_path_);
  write_textfile_in(std::chrono::seconds(0));  // when the loop runs, and there is something to tell
}

void Publisher::write_textfile_in(std::chrono::nanoseconds delay) {
  timer_.after(delay, [this] {
    write_textfile_in(textfile_interval_);
    textfile_->put(metrics_text(ask_, false));
  });
}

}  // namespace cgphase
