// One client of a socket of the daemon: reads one request, waits for its answer, writes one reply
// and ends. Its own pending operations keep it alive. Every state has a deadline.
#pragma once

#include <utility>  // before Asio 1.74, which uses std::exchange without it

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "agent/server/peer.h"
#include "agent/server/socket_server.h"
#include "protocol/protocol.h"

namespace cgphase {

// Shared by all sessions of one socket. Owned by the server and the sessions.
struct SessionSettings {
  SocketServer::Options options;
  SocketServer::Answer answer;  // emptied when the server stops
  int clients = 0;              // sessions alive
  std::atomic<std::size_t> unsent_bytes = 0;  // of ReplyFrames alive
};

// A reply as a frame. The settings of its socket count its bytes while it lives.
using ReplyFrame = std::shared_ptr<const std::string>;

class SocketSession : public std::enable_shared_from_this<SocketSession> {
 public:
  using Socket = boost::asio::local::stream_protocol::socket;

  SocketSession(Socket socket, Peer peer, std::shared_ptr<SessionSettings> settings);
  ~SocketSession();
  SocketSession(const SocketSession&) = delete;
  SocketSession& operator=(const SocketSession&) = delete;

  // Begins to read the request.
  void start();
  // Sends an error reply, then ends.
  void refuse(Exit exit, std::string_view text);
  // Ends at once.
  void close();

 private:
  enum class State : std::uint8_t { reading, answering, writing, ended };

  void read_header();
  void read_payload();
  void handle_request();
  void reply(const nlohmann::json& body);
  void send(ReplyFrame frame);
  void arm(std::chrono::milliseconds limit);
  void expire();

  Socket socket_;
  boost::asio::steady_timer timer_;
  Peer peer_;
  std::shared_ptr<SessionSettings> settings_;
  State state_ = State::reading;
  std::array<unsigned char, kFrameHeaderBytes> header_{};
  std::string payload_;
  ReplyFrame frame_;
};

}  // namespace cgphase
