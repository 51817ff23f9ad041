#include "agent/server/socket_session.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

namespace cgphase {

using boost::system::error_code;

namespace {

// A reply up to this size is always sent, so that the result of a command is never lost.
constexpr std::size_t kSmallReplyBytes = 64 * 1024;

// Any thread. Counts the frame before another one is made.
ReplyFrame counted_frame(const std::shared_ptr<SessionSettings>& settings,
                         const nlohmann::json& reply) {
  std::string frame = encode_reply_frame(reply);
  const std::size_t size = frame.size();
  if ((settings->unsent_bytes += size) > settings->options.unsent_limit_bytes &&
      size > kSmallReplyBytes) {
    settings->unsent_bytes -= size;
    return counted_frame(
        settings, error_reply(Exit::failure, "the daemon is busy: too many replies are unsent; "
                                             "try again"));
  }
  return {new const std::string(std::move(frame)), [settings](const std::string* sent) {
            settings->unsent_bytes -= sent->size();
            delete sent;
          }};
}

}  // namespace

SocketSession::SocketSession(Socket socket, Peer peer, std::shared_ptr<SessionSettings> settings)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      peer_(std::move(peer)),
      settings_(std::move(settings)) {
  ++settings_->clients;
}

SocketSession::~SocketSession() { --settings_->clients; }

void SocketSession::start() {
  arm(settings_->options.request_limit);
  read_header();
}

void SocketSession::refuse(Exit exit, std::string_view text) { reply(error_reply(exit, text)); }

void SocketSession::close() {
  state_ = State::ended;
  timer_.cancel();
  error_code ignored;
  socket_.close(ignored);
}

// Sets the deadline of the next state, and cancels the previous one.
void SocketSession::arm(std::chrono::milliseconds limit) {
  timer_.expires_after(limit);
  timer_.async_wait([self = shared_from_this()](error_code error) {
    // A timer that fired just before it was set again does not count.
    const bool due = self->timer_.expiry() <= std::chrono::steady_clock::now();
    if (!error && due) self->expire();
  });
}

void SocketSession::expire() {
  if (state_ == State::reading) {
    refuse(Exit::invalid, "the request did not arrive in time");
  } else if (state_ == State::answering) {
    refuse(Exit::failure, "the daemon is busy and did not answer in time; try again");
  } else {
    close();
  }
}

void SocketSession::read_header() {
  boost::asio::async_read(
      socket_, boost::asio::buffer(header_),
      [self = shared_from_this()](error_code error, std::size_t) {
        if (self->state_ != State::reading) return;
        if (error) return self->close();
        self->read_payload();
      });
}

void SocketSession::read_payload() {
  const std::size_t length = frame_length(header_);
  if (length > kRequestLimitBytes)
    return refuse(Exit::invalid, "request refused: longer than 64 KiB");
  payload_.resize(length);
  boost::asio::async_read(
      socket_, boost::asio::buffer(payload_),
      [self = shared_from_this()](error_code error, std::size_t) {
        if (self->state_ != State::reading) return;
        if (error) return self->close();
        self->handle_request();
      });
}

void SocketSession::handle_request() {
  const Result<Request> request = parse_request(payload_);
  if (!request) return reply(error_reply(request.error()));
  const Verb verb = verb_of(*request);
  if (is_admin(verb) && !peer_.admin)
    return refuse(Exit::denied, std::string(to_string(verb)) +
                                    " is taken on the admin socket only; run it with sudo");
  if (!settings_->answer) return close();
  state_ = State::answering;
  arm(settings_->options.answer_limit);
  // The pointer is weak: a missing answer must not keep the client's descriptor.
  const auto respond = [weak = weak_from_this(),
                        executor = socket_.get_executor(),
                        settings = settings_](nlohmann::json body) {
    // The frame is made in the thread of the answer: for the history, that is not the loop.
    boost::asio::post(executor, [weak, frame = counted_frame(settings, ok_reply(std::move(body)))] {
      const auto self = weak.lock();
      if (self && self->state_ == State::answering) self->send(frame);
    });
  };
  try {
    settings_->answer(*request, peer_, respond);
  } catch (const std::exception& error) {
    refuse(Exit::failure, std::string("the daemon failed to answer: ") + error.what());
  }
}

void SocketSession::reply(const nlohmann::json& body) { send(counted_frame(settings_, body)); }

void SocketSession::send(ReplyFrame frame) {
  state_ = State::writing;
  frame_ = std::move(frame);
  arm(settings_->options.request_limit);
  boost::asio::async_write(socket_, boost::asio::buffer(*frame_),
                           [self = shared_from_this()](error_code, std::size_t) { self->close(); });
}

}  // namespace cgphase
