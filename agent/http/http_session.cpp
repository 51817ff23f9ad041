#include "agent/http/http_session.h"

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>

namespace cgphase {
namespace {

using boost::system::error_code;
namespace http = boost::beast::http;

// What a client still sends after its head is read before the end, so that the end reaches it.
constexpr std::size_t kMostThrownAwayBytes = 64 * 1024;

constexpr const char* kTooLong = "the head of a request has at most 8 KiB";

// No word in them comes from the request. No CORS header: no other site's page may read.
constexpr const char* kSecurityHeaders =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Cache-Control: no-store\r\n"
    "Connection: close\r\n";

std::string head_of(const HttpReply& reply) {
  const auto reason = http::obsolete_reason(http::int_to_status(reply.status));
  std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}", reply.status,
      std::string_view(reason.data(), reason.size()), reply.type, reply.body->size(),
      kSecurityHeaders);
  if (reply.status == 405) head += "Allow: GET, HEAD\r\n";
  if (reply.status == 429 || reply.status == 503) head += "Retry-After: 1\r\n";
  return head + "\r\n";
}

std::string_view text_of(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

HttpReply http_error(unsigned status, Exit exit, std::string_view text) {
  return {.status = status,
          .body = std::make_shared<const std::string>(
              error_reply(exit, text).dump(-1, ' ', false,
                                           nlohmann::json::error_handler_t::replace) + "\n")};
}

HttpSession::HttpSession(Socket socket, std::shared_ptr<HttpSettings> settings)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      settings_(std::move(settings)) {
  parser_.header_limit(kHttpHeadLimitBytes);
  // None is read, one that is announced is refused later. Boost 1.74 takes "no limit" for zero.
  parser_.body_limit(std::numeric_limits<std::uint64_t>::max());
  ++settings_->clients;
}

HttpSession::~HttpSession() { --settings_->clients; }

void HttpSession::start() {
  arm(settings_->options.request_limit);
  http::async_read_header(socket_, buffer_, parser_,
                          [self = shared_from_this()](error_code error, std::size_t bytes) {
                            if (self->state_ != State::reading) return;
                            if (error) self->handle_error(error);
                            else self->handle_head(bytes);
                          });
}

void HttpSession::refuse(unsigned status, Exit exit, std::string_view text) {
  reply(http_error(status, exit, text));
}

void HttpSession::close() {
  state_ = State::ended;
  timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

// The deadline of the state that begins now; the one before it is cancelled.
void HttpSession::arm(std::chrono::milliseconds limit) {
  timer_.expires_after(limit);
  timer_.async_wait([self = shared_from_this()](error_code error) {
    // One that fired just before it was armed anew does not count.
    const bool due = self->timer_.expiry() <= std::chrono::steady_clock::now();
    if (!error && due) self->expire();
  });
}

void HttpSession::expire() {
  if (state_ == State::reading) {
    refuse(408, Exit::invalid, "the request did not arrive in time");
  } else if (state_ == State::answering) {
    refuse(503, Exit::failure, "the daemon is busy and did not answer in time; try again");
  } else {
    close();
  }
}

void HttpSession::handle_error(const error_code& error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return refuse(431, Exit::invalid, kTooLong);
  if (error.category() != make_error_code(http::error::bad_value).category() ||
      error == http::error::end_of_stream)
    return close();
  refuse(400, Exit::invalid, "malformed HTTP: " + error.message());
}

bool HttpSession::within_rate() {
  const auto now = std::chrono::steady_clock::now();
  if (now - settings_->second >= std::chrono::seconds(1)) {
    settings_->second = now;
    settings_->requests = 0;
  }
  return ++settings_->requests <= settings_->options.requests_per_second;
}

void HttpSession::handle_head(std::size_t bytes) {
  // The parser's own limit is for the first line and for all others, each.
  if (bytes > kHttpHeadLimitBytes) return refuse(431, Exit::invalid, kTooLong);
  const auto& request = parser_.get();
  HttpHead head{.method = text_of(request.method_string()), .target = text_of(request.target())};
  if (request.count(http::field::host) == 1) head.host = text_of(request[http::field::host]);
  head.fetch_site = text_of(request["Sec-Fetch-Site"]);
  head.has_body = parser_.chunked() || parser_.content_length().value_or(0) > 0;
  head_only_ = head.method == "HEAD";
  const auto route = route_of(head);
  if (!route)
    return refuse(route.error().status, route.error().status == 404 ? Exit::no_container
                                                                    : Exit::invalid,
                  route.error().text);
  if (!within_rate())
    return refuse(429, Exit::failure, "more questions in a second than are answered; try again");
  if (!settings_->serve) return close();
  state_ = State::answering;
  arm(settings_->options.answer_limit);
  // Weak: an answer that never comes must not keep the client's descriptor.
  const auto respond = [weak = weak_from_this(),
                        executor = socket_.get_executor()](HttpReply answer) {
    boost::asio::post(executor, [weak, answer = std::move(answer)] {
      const auto self = weak.lock();
      if (self && self->state_ == State::answering) self->reply(answer);
    });
  };
  try {
    settings_->serve(*route, respond);
  } catch (const std::exception& error) {
    refuse(500, Exit::failure, std::string("the daemon failed to answer: ") + error.what());
  }
}

void HttpSession::reply(HttpReply reply) {
  state_ = State::writing;
  head_ = head_of(reply);
  body_ = std::move(reply.body);
  arm(settings_->options.reply_limit);
  const std::array<boost::asio::const_buffer, 2> parts = {
      boost::asio::buffer(head_),
      head_only_ ? boost::asio::const_buffer() : boost::asio::buffer(*body_)};
  boost::asio::async_write(socket_, parts,
                           [self = shared_from_this()](error_code error, std::size_t) {
                             if (error) return self->close();
                             error_code ignored;
                             self->socket_.shutdown(Socket::shutdown_send, ignored);
                             self->linger();
                           });
}

// An end with bytes unread would take the reply along. The deadline of the reply goes on.
void HttpSession::linger() {
  socket_.async_read_some(boost::asio::buffer(thrown_away_),
                          [self = shared_from_this()](error_code error, std::size_t bytes) {
                            self->thrown_away_bytes_ += bytes;
                            if (error || self->thrown_away_bytes_ > kMostThrownAwayBytes)
                              return self->close();
                            self->linger();
                          });
}

}  // namespace cgphase
