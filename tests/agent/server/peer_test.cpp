#include "agent/server/peer.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

using namespace cgphase;

namespace {
constexpr Access kAccess{.own_uid = 0, .read_group = 120};
}

TEST_CASE("root may read and act") {
  const Peer peer{.uid = 0, .gid = 0, .groups = {}};
  CHECK(may_read(peer, kAccess));
  CHECK(may_admin(peer, kAccess));
}

// rule: SEC-01
TEST_CASE("a member of the group may read and not act") {
  for (const Peer& peer : {Peer{.uid = 1000, .gid = 120, .groups = {}},
                           Peer{.uid = 1000, .gid = 1000, .groups = {4, 120}}}) {
    CHECK(may_read(peer, kAccess));
    CHECK_FALSE(may_admin(peer, kAccess));
  }
}

// rule: SEC-01
TEST_CASE("others may neither read nor act") {
  const Peer peer{.uid = 1000, .gid = 1000, .groups = {4, 121}};
  CHECK_FALSE(may_read(peer, kAccess));
  CHECK_FALSE(may_admin(peer, kAccess));
}

TEST_CASE("without the group only root and the daemon's user read") {
  const Access access{.own_uid = 1000, .read_group = std::nullopt};
  CHECK(may_read({.uid = 1000, .gid = 5, .groups = {}}, access));
  CHECK(may_admin({.uid = 1000, .gid = 5, .groups = {}}, access));
  CHECK_FALSE(may_read({.uid = 1001, .gid = 0, .groups = {0}}, access));
}

// rule: SEC-01
TEST_CASE("the kernel says who a peer is") {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
  const Fd a(ends[0]), b(ends[1]);
  const auto peer = peer_of(a.get());
  REQUIRE(peer);
  CHECK(peer->uid == ::geteuid());
  CHECK(peer->gid == ::getegid());
  CHECK(static_cast<int>(peer->groups.size()) == ::getgroups(0, nullptr));
}

TEST_CASE("what is no socket has no peer") {
  CHECK_FALSE(peer_of(-1));
}

TEST_CASE("a group that does not exist is absent") {
  CHECK_FALSE(group_id("no-such-group-of-cgphase"));
  CHECK(group_id("root") == gid_t{0});
}
