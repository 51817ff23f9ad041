#include "cli/daemon_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/text.h"
#include "protocol/replies.h"
#include "cli/output/print.h"

namespace cgphase {
namespace {

using Deadline = std::chrono::steady_clock::time_point;

std::unexpected<Complaint> no_daemon(const std::string& path, int error_number) {
  const std::string what =
      errno_failure("cannot reach the daemon at " + printable(path), error_number).error().text;
  if (error_number == EACCES || error_number == EPERM)
    return complaint(Exit::denied, what + "; run it with sudo" +
                                      (path.ends_with("admin.sock")
                                           ? "" : " or as a member of group cgphase"));
  return complaint(
      Exit::unreachable,
      what + "; start it with 'systemctl start cgphased', or name its socket with --socket");
}

std::unexpected<Complaint> silent(const std::string& path) {
  return complaint(Exit::unreachable, "the daemon at " + printable(path) +
                                         " does not answer; 'systemctl status cgphased' may say "
                                         "why");
}

// Returns false if the deadline passed first.
bool wait_for(const Fd& socket, short events, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd waiting{.fd = socket.get(), .events = events, .revents = 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::max(left.count(), 0L)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

std::expected<Fd, Complaint> connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return complaint(Exit::usage, "--socket " + printable(path) + " is longer than 107 bytes");
  std::memcpy(address.sun_path, path.data(), path.size());
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return no_daemon(path, errno);
  return socket;
}

// A daemon that refuses a request may close the socket before it has read everything. Its reply can
// still be read, so EPIPE is not a failure here.
bool send_all(const Fd& socket, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) bytes.remove_prefix(static_cast<std::size_t>(sent));
    else if (errno == EPIPE || errno == ECONNRESET) return true;
    else if (errno != EAGAIN && errno != EINTR) return false;
    else if (errno == EAGAIN && !wait_for(socket, POLLOUT, deadline)) return false;
  }
  return true;
}

// Returns the payload of one frame; empty if the daemon closed early or the deadline passed.
std::string receive_frame(const Fd& socket, Deadline deadline) {
  std::string bytes;
  std::size_t wanted = kFrameHeaderBytes;
  bool has_header = false;
  while (bytes.size() < wanted) {
    if (!wait_for(socket, POLLIN, deadline)) return "";
    char buffer[16 * 1024];
    const std::size_t room = std::min(sizeof buffer, wanted - bytes.size());
    const ssize_t got = ::recv(socket.get(), buffer, room, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return "";
    bytes.append(buffer, static_cast<std::size_t>(got));
    if (has_header || bytes.size() < kFrameHeaderBytes) continue;
    std::array<unsigned char, kFrameHeaderBytes> header;
    std::memcpy(header.data(), bytes.data(), header.size());
    if (frame_length(header) > kReplyLimitBytes) return "";
    wanted += frame_length(header);
    has_header = true;
  }
  return bytes.substr(kFrameHeaderBytes);
}

}  // namespace

std::expected<nlohmann::json, Complaint> ask_daemon(const std::string& socket_path,
                                                    const Request& request,
                                                    std::chrono::milliseconds limit) {
  const Deadline deadline = std::chrono::steady_clock::now() + limit;
  const auto socket = connect_to(socket_path);
  if (!socket) return std::unexpected(socket.error());
  if (!send_all(*socket, encode_frame(encode_request(request)), deadline))
    return silent(socket_path);
  const std::string payload = receive_frame(*socket, deadline);
  if (payload.empty()) return silent(socket_path);
  Result<Reply> reply = parse_reply(payload);
  if (!reply)
    return complaint(Exit::failure, "the daemon at " + printable(socket_path) +
                                        " sent an unknown reply: " + reply.error().text +
                                        "; are command and daemon of the same version?");
  if (reply->exit != Exit::ok) return complaint(reply->exit, reply->error);
  return std::move(reply->body);
}

template <class Reply>
std::expected<Reply, Complaint> ask_for(const std::string& socket_path, const Request& request) {
  const auto body = ask_daemon(socket_path, request);
  if (!body) return std::unexpected(body.error());
  Result<Reply> reply = read_reply<Reply>(*body);
  if (reply) return *std::move(reply);
  return complaint(Exit::failure,
                   "the daemon at " + printable(socket_path) + " sent an " + reply.error().text);
}

template std::expected<StatusReport, Complaint> ask_for(const std::string&, const Request&);
template std::expected<ListReply, Complaint> ask_for(const std::string&, const Request&);
template std::expected<ActionReport, Complaint> ask_for(const std::string&, const Request&);
template std::expected<HistoryReply, Complaint> ask_for(const std::string&, const Request&);
template std::expected<ConfigReply, Complaint> ask_for(const std::string&, const Request&);
template std::expected<LearnedReply, Complaint> ask_for(const std::string&, const Request&);

}  // namespace cgphase
