#include "agent/logging/event_log.h"

#include <sys/mman.h>

#include "tests/agent/logging/fake_journal.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

// Collects what this process writes to standard error while it lives.
class StandardError {
 public:
  StandardError() : before_(::dup(STDERR_FILENO)), text_(::memfd_create("stderr", MFD_CLOEXEC)) {
    ::dup2(text_.get(), STDERR_FILENO);
  }
  ~StandardError() { ::dup2(before_.get(), STDERR_FILENO); }
  std::string text() const {
    std::string text(1024, '\0');
    const ssize_t size = ::pread(text_.get(), text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return text;
  }

 private:
  Fd before_, text_;
};

const LogEntry kDamaged{Message::stored_damaged, "the holds are damaged"};
const LogEntry kLost{Message::companion_lost, "no companion", {{"CAUSE", "no\nmemory"}}};

}  // namespace

TEST_CASE("an entry goes to the journal with its id, its priority and its fields") {
  const StandardError standard_error;
  const FakeJournal journal;
  EventLog log(journal.open());
  log.tell(kLost);
  CHECK(journal.received() ==
        "MESSAGE=no companion\nMESSAGE_ID=6db72d5001584aff80942eeecc5c8cae\nPRIORITY=3\n"
        "SYSLOG_IDENTIFIER=cgphased\nCAUSE=no\\x0amemory\n");
  CHECK(standard_error.text().empty());
}

TEST_CASE("without a journal the same text is a line on standard error, escaped") {
  const StandardError standard_error;
  EventLog log(std::nullopt);
  log.tell(kDamaged);
  log.tell({Message::started, "cgphased started: \x1b[2J"});
  log.tell({Message::source_lost, "PSI is not there any more"});
  CHECK(standard_error.text() == "cgphased: error: the holds are damaged\n"
                                 "cgphased: info: cgphased started: \\x1b[2J\n"
                                 "cgphased: warning: PSI is not there any more\n");
}

TEST_CASE("while the journal is gone, messages are lines on standard error") {
  const StandardError standard_error;
  FakeJournal journal;
  EventLog log(journal.open());
  journal.close();
  log.tell(kDamaged);
  CHECK(standard_error.text() == "cgphased: error: the holds are damaged\n");
}

TEST_CASE("what a busy journal did not take is counted in the next entry") {
  const StandardError standard_error;
  const FakeJournal journal;
  auto filler = journal.open();
  const LogField full[] = {{"MESSAGE", std::string(kMaxFieldBytes, 'x')}};
  while (filler->send(full) == SystemdJournal::Sent::yes) {
  }
  EventLog log(journal.open());
  log.tell(kDamaged);
  log.tell(kDamaged);
  while (journal.received() != "(nothing)") {
  }
  log.tell(kDamaged);
  const std::string entry = journal.received();
  CHECK(entry.starts_with("MESSAGE=the holds are damaged (the journal was busy: 2 entries before "
                          "it are lost)\n"));
  CHECK(entry.ends_with("\nLOST_ENTRIES=2\n"));
  log.tell(kDamaged);
  CHECK(journal.received().starts_with("MESSAGE=the holds are damaged\n"));
  CHECK(standard_error.text().empty());
}
