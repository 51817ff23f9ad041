// The two Unix sockets of the daemon, on the agent's io_context: DIRECTORY/read.sock (0660, group)
// for reading verbs and DIRECTORY/admin.sock (0600) for all verbs. A connection carries one request
// and one reply (protocol/protocol.h). A slow, silent or hostile client costs one descriptor, and
// at most 64 KiB for at most `request_limit`. Its reply waits for that time, too.
// `unsent_limit_bytes` bounds the unsent replies of one socket. No client delays the loop.
//
// Permissions follow from SO_PEERCRED and SO_PEERGROUPS at accept (agent/server/peer.h), beside the
// file modes. Thread: that of the io_context, except for Respond.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "agent/server/instance_lock.h"
#include "agent/server/peer.h"
#include "base/result.h"
#include "protocol/protocol.h"
#include "protocol/requests.h"

namespace boost::asio {
class io_context;
}

namespace cgphase {

class SocketServer {
 public:
  struct Options {
    std::string group = "cgphase";                    // may read; need not exist
    std::chrono::milliseconds request_limit{2000};    // to send a request, and to take a reply
    std::chrono::milliseconds answer_limit{5000};     // for the agent to answer
    int client_limit = 32;                            // per socket, so readers cannot lock out root
    // Unsent replies per socket. A reply above 64 KiB without room becomes an error.
    std::size_t unsent_limit_bytes = 2 * kReplyLimitBytes;
  };

  // Sends the reply of one request, from any thread, while the io_context lives. Only the first
  // call counts, and none after answer_limit. If it is dropped, the client gets an error.
  using Respond = std::function<void(nlohmann::json)>;
  // Answers a request at once or later. Admin verbs arrive only from admin.sock, with
  // peer.admin set. An exception becomes an error reply.
  using Answer = std::function<void(const Request&, const Peer&, Respond)>;

  // Binds both sockets in the locked directory. Replaces sockets of a dead daemon, and refuses any
  // other file. The lock must outlive the server. It sets the umask of the process while it binds,
  // so call it before other threads create files. Errors: invalid, denied, io.
  static Result<SocketServer> listen(boost::asio::io_context& io, const InstanceLock& lock,
                                     const Options& options, const Answer& answer);
  SocketServer(SocketServer&&) noexcept;
  SocketServer& operator=(SocketServer&&) noexcept;
  // Ends every connection and removes both sockets.
  ~SocketServer();

  int client_count() const;

 private:
  class Impl;
  explicit SocketServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace cgphase
