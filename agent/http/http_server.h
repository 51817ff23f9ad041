// HTTP on the agent's io_context: one request and one reply per connection. What is asked is judged
// by its head alone (agent/http/http_route.h), what is answered comes from `Serve`. A slow, silent
// or hostile client costs one descriptor, 8 KiB and its reply for at most the three limits of time,
// and never delays the loop.
//
// Who may: on a Unix socket who may read read.sock (agent/server/peer.h), behind the file mode; on
// a port every user of this machine. Thread: that of the io_context, except for Respond.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/http/http_route.h"
#include "agent/http/http_sockets.h"
#include "agent/server/peer.h"
#include "protocol/protocol.h"

namespace boost::asio {
class io_context;
}

namespace cgphase {

inline constexpr std::size_t kHttpHeadLimitBytes = 8 * 1024;

struct HttpReply {
  unsigned status = 200;
  std::string type = "application/json";
  std::shared_ptr<const std::string> body;  // shared by those who ask for the same
};

class HttpServer {
 public:
  struct Options {
    Access access;
    std::string group = "cgphase";                    // of access, for what is said to others
    std::chrono::milliseconds request_limit{2000};    // for the head of a request
    std::chrono::milliseconds answer_limit{5000};     // for the agent to answer
    std::chrono::milliseconds reply_limit{5000};      // to take the reply
    int client_limit = 16;
    // Of all clients together: what is asked is answered by the thread that samples.
    int requests_per_second = 20;
  };
  // As SocketServer::Respond: from any thread, only the first call counts, may be dropped.
  using Respond = std::function<void(HttpReply)>;
  // An exception becomes an error reply.
  using Serve = std::function<void(const HttpRoute&, Respond)>;

  HttpServer(boost::asio::io_context& io, std::vector<HttpSocket> sockets, Options options,
             Serve serve);
  HttpServer(const HttpServer&) = delete;
  // Ends every connection, and the sockets that were bound here.
  ~HttpServer();

  int client_count() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

// {"schema":2,"error":{...}} as a reply.
HttpReply http_error(unsigned status, Exit exit, std::string_view text);

}  // namespace cgphase
