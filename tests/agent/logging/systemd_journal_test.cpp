#include "agent/logging/systemd_journal.h"

#include "tests/agent/logging/fake_journal.h"

using namespace cgphase;
using namespace cgphase::test;

TEST_CASE("standard error is the journal's where JOURNAL_STREAM names it, and nowhere else") {
  const FakeJournal journal;
  CHECK(journal.open());
  const std::string path = journal.path();
  CHECK_FALSE(SystemdJournal::behind(journal.stream(), nullptr, path));
  CHECK_FALSE(SystemdJournal::behind(journal.stream(), "", path));
  CHECK_FALSE(SystemdJournal::behind(journal.stream(), "1:2", path));
  CHECK_FALSE(SystemdJournal::behind(-1, journal.stream_name().c_str(), path));
  const Fd other(::open("/dev/null", O_RDONLY | O_CLOEXEC));  // redirected after the start
  CHECK_FALSE(SystemdJournal::behind(other.get(), journal.stream_name().c_str(), path));
}

TEST_CASE("the name of a journal's socket may be as long as the kernel takes, and no longer") {
  const FakeJournal journal;
  const char* const stream = journal.stream_name().c_str();
  CHECK(SystemdJournal::behind(journal.stream(), stream, std::string(107, 'x')));
  CHECK_FALSE(SystemdJournal::behind(journal.stream(), stream, std::string(108, 'x')));
}

TEST_CASE("an entry is one datagram with a line for each field") {
  const FakeJournal journal;
  auto sender = journal.open();
  const LogField fields[] = {{"MESSAGE", "lowered"}, {"OLD", "max 100000"}, {"NEW", ""}};
  CHECK(sender->send(fields) == SystemdJournal::Sent::yes);
  CHECK(journal.received() == "MESSAGE=lowered\nOLD=max 100000\nNEW=\n");
  CHECK(journal.received() == "(nothing)");
}

TEST_CASE("a value cannot begin another field, and bytes that are no text are escaped") {
  const FakeJournal journal;
  auto sender = journal.open();
  const LogField fields[] = {{"CGROUP_PATH", "/a\nPRIORITY=0\x1b[2J\xff"}};
  REQUIRE(sender->send(fields) == SystemdJournal::Sent::yes);
  CHECK(journal.received() == "CGROUP_PATH=/a\\x0aPRIORITY=0\\x1b[2J\\xff\n");
}

TEST_CASE("a value is cut at its limit") {
  const FakeJournal journal;
  auto sender = journal.open();
  const LogField fits[] = {{"MESSAGE", std::string(kMaxFieldBytes, 'x')}};
  REQUIRE(sender->send(fits) == SystemdJournal::Sent::yes);
  CHECK(journal.received() == "MESSAGE=" + fits[0].value + "\n");
  const LogField longer[] = {{"MESSAGE", fits[0].value + "y"}};
  REQUIRE(sender->send(longer) == SystemdJournal::Sent::yes);
  CHECK(journal.received() == "MESSAGE=" + fits[0].value + "\n");
}

TEST_CASE("a journal that does not read is not waited for, a missing one is reported") {
  FakeJournal journal;
  auto sender = journal.open();
  const LogField fields[] = {{"MESSAGE", std::string(kMaxFieldBytes, 'x')}};
  constexpr int kMoreThanAnyQueueHolds = 100'000;
  int sent = 0;
  while (sent < kMoreThanAnyQueueHolds && sender->send(fields) == SystemdJournal::Sent::yes) ++sent;
  CHECK(sent < kMoreThanAnyQueueHolds);
  CHECK(sender->send(fields) == SystemdJournal::Sent::busy);
  CHECK(journal.received() == "MESSAGE=" + fields[0].value + "\n");
  CHECK(sender->send(fields) == SystemdJournal::Sent::yes);
  journal.close();
  CHECK(sender->send(fields) == SystemdJournal::Sent::no);
}
