// The identity of a peer of a Unix socket, from the kernel, and its permissions.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace cgphase {

// Has no pid, because the pid may belong to another process when it is used.
struct Peer {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary
  bool admin = false;         // connected to the admin socket
};

struct Access {
  uid_t own_uid = 0;                 // of the daemon
  std::optional<gid_t> read_group;   // may read, too; absent if the group does not exist
};

// True for root, the daemon's own user and members of the read group. Pure.
bool may_read(const Peer& peer, const Access& access);
// True for root and the daemon's own user. That is root, unless a user runs the daemon for its own
// cgroups. Pure.
bool may_admin(const Peer& peer, const Access& access);

// Reads SO_PEERCRED and SO_PEERGROUPS: the identity of the peer when it connected.
Result<Peer> peer_of(int socket_fd);

// Absent if there is no such group.
std::optional<gid_t> group_id(const std::string& name);

}  // namespace cgphase
