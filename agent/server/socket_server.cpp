#include "agent/server/socket_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <utility>  // before Asio 1.74, which uses std::exchange without it

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "agent/server/socket_session.h"
#include "base/fd.h"

namespace cgphase {
namespace {

using boost::system::error_code;

constexpr int kBacklog = 64;
// Pause after running out of descriptors or memory, because accepting again at once would spin.
constexpr std::chrono::milliseconds kAcceptPause{100};

struct Door {
  const char* name;
  mode_t mode;
  bool admin;
};
constexpr std::array<Door, 2> kDoors = {{{"read.sock", 0660, false}, {"admin.sock", 0600, true}}};

class Umask {
 public:
  explicit Umask(mode_t mask) : old_(::umask(mask)) {}
  ~Umask() { ::umask(old_); }
  Umask(const Umask&) = delete;
  Umask& operator=(const Umask&) = delete;

 private:
  mode_t old_;
};

// The open directory of the sockets.
struct Place {
  std::string path;
  Fd directory;
};

// This daemon has the lock, so any socket here belongs to a dead daemon.
Status remove_leftover(const Place& place, const char* name) {
  const std::string path = place.path + "/" + name;
  struct stat status {};
  if (::fstatat(place.directory.get(), name, &status, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? Status() : errno_failure("stat " + path, errno);
  if (!S_ISSOCK(status.st_mode))
    return failure(ErrorKind::invalid, path + " is in the way and is no socket; remove it");
  if (::unlinkat(place.directory.get(), name, 0) != 0)
    return errno_failure("remove the old " + path, errno);
  return {};
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return failure(ErrorKind::invalid, "socket path " + path +
                                           " is longer than 107 bytes; use a shorter "
                                           "--runtime-dir");
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

Result<Fd> bind_door(const Place& place, const Door& door) {
  const std::string path = place.path + "/" + door.name;
  const Result<sockaddr_un> address = address_of(path);
  if (!address) return std::unexpected(address.error());
  if (Status removed = remove_leftover(place, door.name); !removed)
    return std::unexpected(removed.error());
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return errno_failure("make " + path, errno);
  const Umask mask(0777 & ~door.mode);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0)
    return errno_failure("bind " + path, errno);
  if (::listen(socket.get(), kBacklog) != 0) return errno_failure("listen on " + path, errno);
  return socket;
}

// Gives the read group access to the directory and to read.sock, by descriptor. A daemon without
// root can use only its own groups; the file modes exclude the other users then.
Status give_to_group(const Place& place, gid_t group) {
  const auto own = static_cast<uid_t>(-1);
  const int directory = place.directory.get();
  const bool given =
      ::fchown(directory, own, group) == 0 &&
      ::fchownat(directory, kDoors[0].name, own, group, AT_SYMLINK_NOFOLLOW) == 0;
  if (given || errno == EPERM) return {};
  return errno_failure("give " + place.path + "/" + kDoors[0].name + " to its group", errno);
}

}  // namespace

class SocketServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(boost::asio::io_context& io, const InstanceLock& lock, const Options& options,
       const Answer& answer)
      : io_(io),
        place_{lock.directory(), Fd(::fcntl(lock.directory_fd(), F_DUPFD_CLOEXEC, 0))} {
    access_ = {.own_uid = ::geteuid(), .read_group = group_id(options.group)};
    for (Listener& listener : listeners_)
      listener.settings = std::make_shared<SessionSettings>(options, answer);
  }

  Status open() {
    for (std::size_t i = 0; i < kDoors.size(); ++i) {
      Result<Fd> socket = bind_door(place_, kDoors[i]);
      if (!socket) return std::unexpected(socket.error());
      listeners_[i].door = kDoors[i];
      listeners_[i].socket.assign(socket->release());
    }
    if (access_.read_group && *access_.read_group != ::getegid())
      if (Status given = give_to_group(place_, *access_.read_group); !given) return given;
    for (Listener& listener : listeners_) wait(listener);
    return {};
  }

  void stop() {
    for (Listener& listener : listeners_) {
      if (listener.socket.is_open()) ::unlinkat(place_.directory.get(), listener.door.name, 0);
      error_code ignored;
      listener.socket.close(ignored);
      listener.pause.cancel();
      listener.settings->answer = nullptr;
      for (const auto& weak : listener.sessions)
        if (const auto session = weak.lock()) session->close();
      listener.sessions.clear();
    }
  }

  int client_count() const {
    int count = 0;
    for (const Listener& listener : listeners_) count += listener.settings->clients;
    return count;
  }

 private:
  struct Listener {
    explicit Listener(boost::asio::io_context& io) : socket(io), pause(io) {}
    Door door{};
    boost::asio::posix::stream_descriptor socket;
    boost::asio::steady_timer pause;
    std::shared_ptr<SessionSettings> settings;
    std::vector<std::weak_ptr<SocketSession>> sessions;
  };

  // Accepts one connection per turn of the loop, so that a flood of them cannot block it.
  void wait(Listener& listener) {
    listener.socket.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                               [self = shared_from_this(), &listener](error_code error) {
                                 if (!error) self->accept(listener);
                               });
  }

  void accept(Listener& listener) {
    Fd client(::accept4(listener.socket.native_handle(), nullptr, nullptr,
                        SOCK_CLOEXEC | SOCK_NONBLOCK));
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
      if (!error) self->wait(listener);
    });
  }

  void admit(Listener& listener, Fd client) {
    SessionSettings& settings = *listener.settings;
    if (settings.clients >= settings.options.client_limit) return turn_away(client);
    Result<Peer> peer = peer_of(client.get());
    if (!peer) return;  // the client closed already
    peer->admin = listener.door.admin;
    const bool allowed = peer->admin ? may_admin(*peer, access_) : may_read(*peer, access_);
    SocketSession::Socket socket(io_, boost::asio::local::stream_protocol(), client.release());
    const auto session =
        std::make_shared<SocketSession>(std::move(socket), *std::move(peer), listener.settings);
    std::erase_if(listener.sessions, [](const auto& weak) { return weak.expired(); });
    listener.sessions.push_back(session);
    if (allowed) session->start();
    else session->refuse(Exit::denied, "not permitted; run it with sudo" + group_hint(listener));
  }

  std::string group_hint(const Listener& listener) const {
    if (listener.door.admin) return "";
    return " or as a member of the group " + listener.settings->options.group;
  }

  // Best effort, never blocks: a client beyond the limit gets no session.
  static void turn_away(const Fd& client) {
    const std::string frame = encode_reply_frame(error_reply(
        Exit::unreachable, "the daemon has no room for another client now; try again"));
    static_cast<void>(
        ::send(client.get(), frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
  }

  boost::asio::io_context& io_;
  Place place_;
  Access access_;
  std::array<Listener, kDoors.size()> listeners_{Listener(io_), Listener(io_)};
};

SocketServer::SocketServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
SocketServer::SocketServer(SocketServer&&) noexcept = default;

SocketServer& SocketServer::operator=(SocketServer&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

SocketServer::~SocketServer() {
  if (impl_) impl_->stop();
}

Result<SocketServer> SocketServer::listen(boost::asio::io_context& io, const InstanceLock& lock,
                                          const Options& options, const Answer& answer) {
  SocketServer server(std::make_shared<Impl>(io, lock, options, answer));
  if (Status opened = server.impl_->open(); !opened) return std::unexpected(opened.error());
  return server;
}

int SocketServer::client_count() const { return impl_->client_count(); }

}  // namespace cgphase
