#include "agent/logging/event_log.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include "tests/agent/logging/fake_journal.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

// What the daemon writes to standard error, while this lives.
class StandardError {
 public:
  StandardError() : before_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_st>(text_));
    logger->set_pattern("%l: %v");
    spdlog::set_default_logger(logger);
  }
  ~StandardError() { spdlog::set_default_logger(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
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
  CHECK(standard_error.text() == "error: the holds are damaged\n"
                                 "info: cgphased started: \\x1b[2J\n"
                                 "warning: PSI is not there any more\n");
}

TEST_CASE("while the journal is gone, messages are lines on standard error") {
  const StandardError standard_error;
  FakeJournal journal;
  EventLog log(journal.open());
  journal.close();
  log.tell(kDamaged);
  CHECK(standard_error.text() == "error: the holds are damaged\n");
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
