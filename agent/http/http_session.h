// One client of HTTP: reads the head of one request, waits for its answer, writes one reply, ends.
// Kept alive by its own pending operations; every state has a deadline, so all of them end.
#pragma once

#include <utility>  // before Asio 1.74, which uses std::exchange without it

#include <array>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_static_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <memory>
#include <string>

#include "agent/http/http_server.h"

namespace cgphase {

// What all sessions share. Owned by the server and the sessions.
struct HttpSettings {
  HttpServer::Options options;
  HttpServer::Serve serve;  // emptied when the server stops
  int clients = 0;          // sessions alive
  std::chrono::steady_clock::time_point second;  // in which `requests` were counted
  int requests = 0;
};

class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;

  HttpSession(Socket socket, std::shared_ptr<HttpSettings> settings);
  ~HttpSession();
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  // Begins to read the request.
  void start();
  // Tells the client why it is not served, then ends.
  void refuse(unsigned status, Exit exit, std::string_view text);
  // Ends at once.
  void close();

 private:
  enum class State : std::uint8_t { reading, answering, writing, ended };

  void handle_head(std::size_t bytes);
  void handle_error(const boost::system::error_code& error);
  bool within_rate();
  void reply(HttpReply reply);
  void linger();
  void arm(std::chrono::milliseconds limit);
  void expire();

  Socket socket_;
  boost::asio::steady_timer timer_;
  std::shared_ptr<HttpSettings> settings_;
  State state_ = State::reading;
  bool head_only_ = false;
  boost::beast::flat_static_buffer<kHttpHeadLimitBytes> buffer_;
  // A body is refused unread; this kind takes no memory for the length that one announces.
  boost::beast::http::request_parser<boost::beast::http::buffer_body> parser_;
  std::string head_;
  std::shared_ptr<const std::string> body_;
  std::array<char, 512> thrown_away_{};
  std::size_t thrown_away_bytes_ = 0;
};

}  // namespace cgphase
