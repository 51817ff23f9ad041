// Who is at the other end of a Unix socket, as the kernel says it, and what they may do.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace cgphase {

// Never a pid: it may be another process by the time it is looked up.
struct Peer {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // supplementary
  bool admin = false;         // came in by the admin socket
};

struct Access {
  uid_t own_uid = 0;                 // of the daemon
  std::optional<gid_t> read_group;   // who else may read; absent where the group does not exist
};

// Root, the daemon's own user, or a member of the read group. Pure.
bool may_read(const Peer& peer, const Access& access);
// Root or the daemon's own user (which is root, but for a daemon run for one's own cgroups). Pure.
bool may_admin(const Peer& peer, const Access& access);

// SO_PEERCRED and SO_PEERGROUPS of a connected socket: what the peer was when it connected.
Result<Peer> peer_of(int socket_fd);

// Absent where there is no such group.
std::optional<gid_t> group_id(const std::string& name);

}  // namespace cgphase
