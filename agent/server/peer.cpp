#include "agent/server/peer.h"

#include <grp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace cgphase {
namespace {

// NGROUPS_MAX of the kernel.
constexpr std::size_t kMostGroups = 65536;
constexpr std::size_t kGroupEntryBytes = 64 * 1024;

Result<std::vector<gid_t>> groups_of(int socket_fd) {
  std::vector<gid_t> groups(64);
  for (;;) {
    auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    if (::getsockopt(socket_fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes) == 0) {
      groups.resize(bytes / sizeof(gid_t));
      return groups;
    }
    if (errno != ERANGE || groups.size() >= kMostGroups)
      return errno_failure("groups of a client (SO_PEERGROUPS)", errno);
    groups.resize(kMostGroups);
  }
}

}  // namespace

bool may_read(const Peer& peer, const Access& access) {
  if (may_admin(peer, access)) return true;
  if (!access.read_group) return false;
  return peer.gid == *access.read_group ||
         std::ranges::find(peer.groups, *access.read_group) != peer.groups.end();
}

bool may_admin(const Peer& peer, const Access& access) {
  return peer.uid == 0 || peer.uid == access.own_uid;
}

Result<Peer> peer_of(int socket_fd) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (::getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) != 0)
    return errno_failure("who a client is (SO_PEERCRED)", errno);
  Result<std::vector<gid_t>> groups = groups_of(socket_fd);
  if (!groups) return std::unexpected(groups.error());
  return Peer{.uid = credentials.uid, .gid = credentials.gid, .groups = *std::move(groups)};
}

std::optional<gid_t> group_id(const std::string& name) {
  std::vector<char> buffer(kGroupEntryBytes);
  group entry{};
  group* found = nullptr;
  ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  return found != nullptr ? std::optional(found->gr_gid) : std::nullopt;
}

}  // namespace cgphase
