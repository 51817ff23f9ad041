#include "agent/http/http_server.h"

#include <sys/socket.h>

#include <utility>  // before Asio 1.74, which uses std::exchange without it

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <list>

#include "agent/http/http_session.h"

namespace cgphase {
namespace {

using boost::system::error_code;
using boost::asio::generic::stream_protocol;

// Out of descriptors or memory: accepting again at once would spin.
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr const char* kTooMany =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
    "Connection: close\r\n\r\n";

}  // namespace

class HttpServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& io, Options options, Serve serve)
      : io_(io),
        settings_(std::make_shared<HttpSettings>(
            HttpSettings{.options = std::move(options), .serve = std::move(serve)})) {}

  void listen(std::vector<HttpSocket> sockets) {
    for (HttpSocket& socket : sockets) {
      Listener& listener = listeners_.emplace_back(io_, std::move(socket));
      // The descriptor stays the socket's own: stop() takes it back.
      listener.ready.assign(listener.socket.fd());
      wait(listener);
    }
  }

  void stop() {
    settings_->serve = nullptr;
    for (Listener& listener : listeners_) {
      listener.ready.release();  // and what waits for it ends
      listener.pause.cancel();
      listener.socket.close();
    }
    for (const auto& weak : sessions_)
      if (const auto session = weak.lock()) session->close();
    sessions_.clear();
    stopped_ = true;
  }

  int client_count() const { return settings_->clients; }

 private:
  struct Listener {
    Listener(boost::asio::io_context& io, HttpSocket served)
        : socket(std::move(served)), ready(io), pause(io) {}
    HttpSocket socket;
    boost::asio::posix::stream_descriptor ready;
    boost::asio::steady_timer pause;
  };

  // One connection per turn of the loop, so that a flood of them cannot hold it.
  void wait(Listener& listener) {
    listener.ready.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                              [self = shared_from_this(), &listener](error_code error) {
                                if (!error && !self->stopped_) self->accept(listener);
                              });
  }

  void accept(Listener& listener) {
    Fd client(::accept4(listener.socket.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (client.valid()) {
      admit(listener, std::move(client));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return pause(listener);
    }
    wait(listener);
  }

  void pause(Listener& listener) {
    listener.pause.expires_after(kAcceptPause);
    listener.pause.async_wait([self = shared_from_this(), &listener](error_code error) {
      if (!error && !self->stopped_) self->wait(listener);
    });
  }

  void admit(const Listener& listener, Fd client) {
    const Options& options = settings_->options;
    if (settings_->clients >= options.client_limit) return turn_away(client);
    const bool is_unix = listener.socket.is_unix();
    const Result<Peer> peer = is_unix ? peer_of(client.get()) : Result<Peer>(Peer{});
    if (!peer) return;  // it is gone already
    const int family = is_unix ? AF_UNIX : listener.socket.address().ip6 ? AF_INET6 : AF_INET;
    HttpSession::Socket socket(io_, stream_protocol(family, 0), client.release());
    const auto session = std::make_shared<HttpSession>(std::move(socket), settings_);
    std::erase_if(sessions_, [](const auto& weak) { return weak.expired(); });
    sessions_.push_back(session);
    if (!is_unix || may_read(*peer, options.access)) return session->start();
    session->refuse(403, Exit::denied,
                    "not permitted; ask as root or as a member of the group " + options.group);
  }

  // Best effort and never blocking: a client beyond the limit gets no session.
  static void turn_away(const Fd& client) {
    const std::string_view text = kTooMany;
    static_cast<void>(::send(client.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
  }

  boost::asio::io_context& io_;
  std::shared_ptr<HttpSettings> settings_;
  std::list<Listener> listeners_;
  std::vector<std::weak_ptr<HttpSession>> sessions_;
  bool stopped_ = false;
};

HttpServer::HttpServer(boost::asio::io_context& io, std::vector<HttpSocket> sockets,
                       Options options, Serve serve)
    : impl_(std::make_shared<Impl>(io, std::move(options), std::move(serve))) {
  impl_->listen(std::move(sockets));
}

HttpServer::~HttpServer() { impl_->stop(); }

int HttpServer::client_count() const { return impl_->client_count(); }

}  // namespace cgphase
