// Compares the bytes of a known transfer with the counters.
#include <netinet/tcp.h>
#include <sys/resource.h>

#include <array>
#include <deque>
#include <vector>

#include "collectors/ebpf/counter_records.h"
#include "collectors/ebpf/hot_cgroups.h"
#include "collectors/ebpf/network_counter.h"
#include "collectors/ebpf/rare_event_counters.h"
#include "tests/collectors/bpf_fixture.h"
#include "tests/collectors/udp_exchange.h"

namespace cgphase {
namespace {

constexpr std::uint64_t kDatagrams = 1000;

constexpr std::uint32_t kSmallRoom = 64;

// A separate counter, read as the daemon reads it.
class SmallCounter {
 public:
  SmallCounter() : owners_(cgroup2_mount()) {
    auto started = start_network_counter(CgroupPaths(cgroup2_mount()), kSmallRoom);
    REQUIRE(started);
    counter_ = std::move(*started);
  }
  void follow(const HostCgroup& cgroup) {
    NodeSample tick;
    tick.appeared.push_back(container_in(cgroup));
    owners_.follow(tick);
  }
  void read(bool sweep = false) { REQUIRE(counter_->read(owners_, sweep)); }
  NetworkStat of(CgroupId container) const {
    Sample sample;
    sample.id = container;
    counter_->fill(sample);
    return sample.network;
  }
  std::uint64_t lost() const { return counter_->lost(); }

 private:
  CgroupOwners owners_;
  std::unique_ptr<CgroupCounter> counter_;
};

// A server inside or outside; it is ready when this returns.
BornIn answerer(const HostCgroup& cgroup, const InnerNetwork* inside, const char* at) {
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const Fd reported(ready[0]);
  Fd tell(ready[1]);
  BornIn process(cgroup, [&] {
    return inside != nullptr && !inside->enter() ? 9 : answer(at, tell.get());
  });
  tell.reset();
  char byte;
  REQUIRE(::read(reported.get(), &byte, 1) == 1);
  return process;
}

int asked_from(const HostCgroup& cgroup, const InnerNetwork* inside, const char* whom,
               std::uint64_t times = kDatagrams) {
  return BornIn(cgroup, [&] {
           return inside != nullptr && !inside->enter() ? 9 : ask(whom, times);
         }).wait();
}

void check_asker(const NetworkStat& network, std::uint64_t times) {
  CHECK(network.transmit_packets == times);
  CHECK(network.transmit_bytes == times * (kAskedBytes + kDatagramHeaderBytes));
  CHECK(network.receive_packets == times);
  CHECK(network.receive_bytes == times * (kAnsweredBytes + kDatagramHeaderBytes));
}

void check_answerer(const NetworkStat& network, std::uint64_t times) {
  CHECK(network.receive_packets == times);
  CHECK(network.receive_bytes == times * (kAskedBytes + kDatagramHeaderBytes));
  CHECK(network.transmit_packets == times);
  CHECK(network.transmit_bytes == times * (kAnsweredBytes + kDatagramHeaderBytes));
}

}  // namespace

TEST_CASE("between network namespaces each byte is counted once at either end") {
  const HostCgroup asker, other;
  Counted counted({&asker, &other});
  REQUIRE(counted.source("network").present);
  CHECK(counted.source("network").detail == "cgroup_skb");
  CHECK(counted.of(asker).network.transmit_bytes == 0);
  const InnerNetwork network;
  REQUIRE(network.ready());
  const BornIn process = answerer(other, nullptr, kHostEnd);
  REQUIRE(asked_from(asker, &network, kHostEnd) == 0);
  counted.read();
  check_asker(counted.of(asker).network, kDatagrams);
  check_answerer(counted.of(other).network, kDatagrams);
}

TEST_CASE("traffic from the host's own network into a namespace is counted once") {
  const HostCgroup asker, other;
  Counted counted({&asker, &other});
  const InnerNetwork network;
  REQUIRE(network.ready());
  const BornIn process = answerer(other, &network, kInnerEnd);
  REQUIRE(asked_from(asker, nullptr, kInnerEnd) == 0);
  counted.read();
  check_asker(counted.of(asker).network, kDatagrams);
  check_answerer(counted.of(other).network, kDatagrams);
}

TEST_CASE("loopback traffic is separate in every network namespace") {
  const HostCgroup asker, other;
  Counted counted({&asker, &other});
  const InnerNetwork network;
  REQUIRE(network.ready());
  for (const InnerNetwork* inside : {static_cast<const InnerNetwork*>(nullptr), &network}) {
    const BornIn process = answerer(other, inside, "127.0.0.1");
    REQUIRE(asked_from(asker, inside, "127.0.0.1") == 0);
  }
  counted.read();
  for (const HostCgroup* cgroup : {&asker, &other}) {
    CHECK(counted.of(*cgroup).network.transmit_bytes == 0);
    CHECK(counted.of(*cgroup).network.receive_packets == 0);
  }
}

TEST_CASE("a cgroup below a container counts for it, also after its removal") {
  const HostCgroup container, other;
  Counted counted({&container, &other});
  const InnerNetwork network;
  REQUIRE(network.ready());
  const BornIn process = answerer(other, nullptr, kHostEnd);
  {
    const HostCgroup below(container.path());
    REQUIRE(asked_from(below, &network, kHostEnd) == 0);
    counted.read();
    check_asker(counted.of(container).network, kDatagrams);
    REQUIRE(asked_from(below, &network, kHostEnd) == 0);
  }
  counted.read();
  check_asker(counted.of(container).network, 2 * kDatagrams);
  REQUIRE(asked_from(container, &network, kHostEnd) == 0);
  counted.read();
  check_asker(counted.of(container).network, 3 * kDatagrams);
}

TEST_CASE("bytes are exact before a cgroup has a place, with one and without one") {
  constexpr std::uint64_t kFewDatagrams = 20;
  const std::vector<HostCgroup> askers(kSmallRoom - 8);  // for some, both places are taken
  const HostCgroup other;
  SmallCounter counted;
  for (const HostCgroup& asker : askers) counted.follow(asker);
  const InnerNetwork network;
  REQUIRE(network.ready());
  const BornIn process = answerer(other, nullptr, kHostEnd);
  for (std::uint64_t round = 1; round <= 3; ++round) {
    for (const HostCgroup& asker : askers)
      REQUIRE(asked_from(asker, &network, kHostEnd, kFewDatagrams) == 0);
    counted.read();
    for (const HostCgroup& asker : askers)
      check_asker(counted.of(asker.id()), round * kFewDatagrams);
  }
  CHECK(counted.lost() == 0);
}

TEST_CASE("the place of a removed cgroup goes to another one, which starts at zero") {
  const HostCgroup other;
  SmallCounter counted;
  const InnerNetwork network;
  REQUIRE(network.ready());
  const BornIn process = answerer(other, nullptr, kHostEnd);
  const auto asked_twice = [&](const HostCgroup& asker) {
    counted.follow(asker);
    for (int round = 0; round < 2; ++round) {
      REQUIRE(asked_from(asker, &network, kHostEnd) == 0);
      counted.read();
    }
    check_asker(counted.of(asker.id()), 2 * kDatagrams);
  };
  const auto first_place = [](std::uint64_t inode) {
    return inode * HOT_SPREAD >> hot_shift(hot_places(kSmallRoom, sizeof(network_counts)));
  };
  HostCgroup previous;
  const CgroupId id = previous.id();
  asked_twice(previous);
  previous.remove();
  counted.read(true);
  std::deque<HostCgroup> heirs(1);
  while (first_place(heirs.back().id().inode) != first_place(id.inode)) heirs.emplace_back();
  asked_twice(heirs.back());
  check_asker(counted.of(id), 2 * kDatagrams);
}

TEST_CASE("a cgroup of a former container belongs to the one above, if it exists") {
  const HostCgroup outer;
  HostCgroup inner(outer.path());
  CgroupOwners owners(cgroup2_mount());
  NodeSample tick;
  tick.appeared = {container_in(outer), container_in(inner)};
  owners.follow(tick);
  const CgroupId id = inner.id();
  CHECK(owners.owner(id.inode) == id);
  tick.appeared.clear();
  tick.vanished = {id};
  owners.follow(tick);
  CHECK(owners.owner(id.inode) == outer.id());
  CHECK_FALSE(owners.drop_if_gone(id.inode));
  inner.remove();
  CHECK(owners.drop_if_gone(id.inode));
  CHECK(owners.owner(id.inode) == outer.id());  // other counters have counted for it too
  owners.end_sweep();
  owners.end_sweep();
  CHECK(owners.unknown() == 0);
  CHECK_FALSE(owners.owner(id.inode));
  CHECK(owners.unknown() == 1);
}

TEST_CASE("a cgroup outside the watched root has no container, and is not unknown") {
  const HostCgroup root;
  HostCgroup outside;
  CgroupOwners owners(root.directory());
  CHECK_FALSE(owners.owner(outside.id().inode));
  CHECK(owners.unknown() == 0);
}

TEST_CASE("a removed cgroup that several counters counted is unknown to none") {
  const HostCgroup container, other;
  Counted counted({&container});
  const InnerNetwork network;
  REQUIRE(network.ready());
  const BornIn process = answerer(other, nullptr, kHostEnd);
  {
    const HostCgroup below(container.path());
    REQUIRE(asked_from(below, &network, kHostEnd) == 0);
    counted.read();
  }
  for (int sweep = 0; sweep < 4; ++sweep) {
    counted.tick().time += std::chrono::minutes(1);
    counted.read();
  }
  check_asker(counted.of(container).network, kDatagrams);
  CHECK_FALSE(counted.source("owners").present);
}

TEST_CASE("a counter without room for new cgroups continues with more, and never falls") {
  constexpr std::size_t kMostCgroups = 65536, kSpare = 256, kMore = 64;
  rlimit files{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &files) == 0);
  files.rlim_cur = files.rlim_max;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &files) == 0);
  const HostCgroup asker, late, other;
  Counted counted({&asker, &late});
  const std::size_t room = 2 * CgroupPaths(cgroup2_mount()).count(kMostCgroups) + kSpare;
  const InnerNetwork network;
  REQUIRE(network.ready());
  const BornIn process = answerer(other, nullptr, kHostEnd);
  REQUIRE(asked_from(asker, &network, kHostEnd) == 0);
  const std::vector<HostCgroup> crowd(room + kMore);
  for (const HostCgroup& one : crowd) REQUIRE(asked_from(one, &network, kHostEnd, 1) == 0);
  REQUIRE(asked_from(late, &network, kHostEnd) == 0);
  counted.read();
  CHECK(counted.source("network").detail.contains("for lack of room"));
  check_asker(counted.of(asker).network, kDatagrams);
  CHECK_FALSE(counted.of(late).network.transmit_bytes);
  counted.tick().time += std::chrono::minutes(1);
  counted.read();
  CHECK(counted.source("network").detail.contains("for lack of room"));
  check_asker(counted.of(asker).network, kDatagrams);
  CHECK_FALSE(counted.of(late).network.transmit_bytes);
  for (const HostCgroup* cgroup : {&asker, &late})
    REQUIRE(asked_from(*cgroup, &network, kHostEnd) == 0);
  counted.read();
  check_asker(counted.of(asker).network, 2 * kDatagrams);
  check_asker(counted.of(late).network, kDatagrams);
}

TEST_CASE("a container that is reported late has its earlier counts") {
  const HostCgroup early, late;
  Counted counted({&early});
  const InnerNetwork network;
  REQUIRE(network.ready());
  const BornIn process = answerer(early, nullptr, kHostEnd);
  REQUIRE(asked_from(late, &network, kHostEnd) == 0);
  counted.read();
  counted.tick().appeared.push_back(container_in(late));
  Sample& sample = counted.tick().containers.emplace_back();
  sample.id = late.id();
  counted.read();
  check_asker(counted.of(late).network, kDatagrams);
}

TEST_CASE("a TCP retransmit is counted for the cgroup of its socket, in each tier") {
  const InnerNetwork network;
  REQUIRE(network.ready());
  REQUIRE(network.mislead());
  const HostCgroup asker;
  CgroupOwners owners(cgroup2_mount());
  NodeSample tick;
  tick.appeared.push_back(container_in(asker));
  owners.follow(tick);
  const auto typed = start_tcp_counter(64, "tp_btf"), copied = start_tcp_counter(64, "raw_tp");
  REQUIRE(typed);
  REQUIRE(copied);
  // Nobody answers, so that the first segment is retransmitted. The exit status is the number of
  // retransmits.
  BornIn process(asker, [] {
    const Fd socket(::socket(AF_INET, SOCK_STREAM, 0));
    const timeval patience{.tv_sec = 1, .tv_usec = 500'000};
    const sockaddr_in peer = address_of(kInnerEnd);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    tcp_info reported{};
    socklen_t size = sizeof(reported);
    if (::connect(socket.get(), plain(peer), sizeof(peer)) == 0) return -1;
    if (::getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &reported, &size) != 0) return -1;
    return static_cast<int>(reported.tcpi_total_retrans);
  });
  const int retransmits = process.wait();
  REQUIRE(retransmits > 0);
  REQUIRE(retransmits < 100);
  for (const auto* counter : {&typed, &copied}) {
    REQUIRE((**counter)->read(owners, false));
    Sample sample;
    sample.id = asker.id();
    (**counter)->fill(sample);
    CHECK(sample.network.tcp_retransmits.value() == static_cast<std::uint64_t>(retransmits));
  }
}

TEST_CASE("a socket stays with the cgroup that opened it, even if its process moves") {
  const HostCgroup before, after, other;
  Counted counted({&before, &after, &other});
  const InnerNetwork network;
  REQUIRE(network.ready());
  const BornIn process = answerer(other, nullptr, kHostEnd);
  BornIn moves(before, [&] {
    if (!network.enter()) return 9;
    const Fd socket(::socket(AF_INET, SOCK_DGRAM, 0));
    const sockaddr_in peer = address_of(kHostEnd);
    if (::connect(socket.get(), plain(peer), sizeof(peer)) != 0) return 1;
    const Fd procs = open_path(after.directory() + "/cgroup.procs", O_WRONLY).value();
    if (!write_all(procs.get(), "0")) return 2;
    std::array<char, kAskedBytes> bytes{};
    return ::send(socket.get(), bytes.data(), bytes.size(), 0) == kAskedBytes &&
                   ::recv(socket.get(), bytes.data(), bytes.size(), 0) == kAnsweredBytes
               ? 0
               : 3;
  });
  REQUIRE(moves.wait() == 0);
  counted.read();
  check_asker(counted.of(before).network, 1);
  CHECK(counted.of(after).network.transmit_bytes == 0);
}

}  // namespace cgphase
