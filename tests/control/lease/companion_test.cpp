// Runs the companion as on a host: cgphase-restore beside this runner, real processes, real
// signals. Only the cgroup is a plain directory.
#include "control/lease/companion.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "tests/cgroupfs/fake_cgroup.h"

using namespace cgphase;

namespace {

constexpr int kPatienceMs = 30'000;
constexpr std::chrono::milliseconds kFreeze{3000};

// A daemon in its own process. It leases a change, makes it, starts a companion and then obeys the
// orders that it receives as single bytes.
class Daemon {
 public:
  // With `standard_error`, that descriptor becomes its standard error, which its companion
  // inherits.
  Daemon(const FakeCgroup& box, const std::string& root, const std::string& runtime,
         std::chrono::milliseconds silence, int standard_error = -1) {
    int orders[2], reports[2];
    REQUIRE(::pipe2(orders, O_CLOEXEC) == 0);
    REQUIRE(::pipe2(reports, O_CLOEXEC) == 0);
    pid_ = ::fork();
    if (pid_ == 0 && standard_error >= 0) ::dup2(standard_error, STDERR_FILENO);
    if (pid_ == 0) live(box, root, runtime, silence, orders[0], reports[1]);
    orders_ = Fd(orders[1]);
    reports_ = Fd(reports[0]);
    ::close(orders[0]);
    ::close(reports[1]);
    REQUIRE(::read(reports_.get(), &companion_, sizeof companion_) == sizeof companion_);
    REQUIRE(companion_ > 0);
    companion_fd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, companion_, 0)));
  }
  ~Daemon() {
    signal(SIGCONT);
    signal(SIGKILL);
    reap();
    companion_ended();
  }
  void signal(int number) const {
    if (pid_ > 0) ::kill(pid_, number);
  }
  void order(char what) const { REQUIRE(::write(orders_.get(), &what, 1) == 1); }
  void reap() {
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  pid_t companion() const { return companion_; }
  bool companion_ended() const {
    pollfd ended{companion_fd_.get(), POLLIN, 0};
    return ::poll(&ended, 1, kPatienceMs) == 1;
  }

 private:
  [[noreturn]] static void live(const FakeCgroup& box, const std::string& root,
                                const std::string& runtime, std::chrono::milliseconds silence,
                                int orders, int reports) {
    auto leases = LeaseTable::open({.runtime_dir = runtime, .records = 4});
    if (!leases) ::_exit(2);
    auto companion =
        Companion::start({.runtime_dir = runtime, .cgroup_root = root, .silence = silence});
    if (!companion) ::_exit(3);
    const SystemClock clock;
    (*leases)->beat(clock.monotonic_now());
    (void)(*leases)->record(box.id(), box.path(), Knob::cpu_max, text_of("200000 100000"),
                          text_of("50000 100000"), "test");
    box.put("cpu.max", "50000 100000\n");
    const pid_t pid = companion->pid();
    if (::write(reports, &pid, sizeof pid) != sizeof pid) ::_exit(4);
    pollfd order{orders, POLLIN, 0};
    char what = 'f';
    while (what == 'f') {
      while (::poll(&order, 1, 50) == 0) (*leases)->beat(clock.monotonic_now());
      if (::read(orders, &what, 1) != 1) ::_exit(0);
      if (what != 'f') break;
      (void)(*leases)->record(box.id(), box.path(), Knob::cgroup_freeze, text_of("0"),
                              text_of("1"), "test", clock.monotonic_now() + kFreeze);
      box.put("cgroup.freeze", "1\n");
    }
    if (what == 's') companion->stop();
    ::_exit(0);
  }

  pid_t pid_ = -1, companion_ = -1;
  Fd orders_, reports_, companion_fd_;
};

struct Host {
  TemporaryDirectory root, runtime;
  FakeCgroup box{root.path()};

  // Waits until the file contains `text`.
  bool becomes(const std::string& text, const char* file = "cpu.max") const {
    const Fd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    REQUIRE(::inotify_add_watch(inotify.get(), box.directory().c_str(),
                                IN_MODIFY | IN_CLOSE_WRITE) >= 0);
    while (box.get(file) != text) {
      pollfd changed{inotify.get(), POLLIN, 0};
      if (::poll(&changed, 1, kPatienceMs) != 1) return false;
      std::array<char, 4096> events;
      if (::read(inotify.get(), events.data(), events.size()) < 0) return false;
    }
    return true;
  }
};

constexpr std::chrono::milliseconds kLong{60'000};

// A full pipe that nobody reads, so that a write to it blocks.
struct FullPipe {
  FullPipe() {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    reading = Fd(ends[0]);
    writing = Fd(ends[1]);
    const std::array<char, 4096> page{};
    while (::write(writing.get(), page.data(), page.size()) > 0) {
    }
    REQUIRE(errno == EAGAIN);
    REQUIRE(::fcntl(writing.get(), F_SETFL, 0) == 0);
  }
  Fd reading, writing;
};

int run_restore(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  std::vector<std::string> all = {"cgphase-restore"};
  all.insert(all.end(), words.begin(), words.end());
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path().string() + "/cgphase-restore";
  const pid_t child = ::fork();
  if (child == 0) {
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, 1);
    ::dup2(null, 2);
    ::execv(program.c_str(), arguments.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("after kill -9 of the daemon the companion restores the originals and ends") {
  Host host;
  Daemon daemon(host.box, host.root.path(), host.runtime.path(), kLong);
  REQUIRE(host.box.get("cpu.max") == "50000 100000");
  daemon.signal(SIGKILL);
  daemon.reap();
  CHECK(daemon.companion_ended());
  CHECK(host.box.get("cpu.max") == "200000 100000");
}

TEST_CASE("the companion survives SIGTERM and SIGINT and still restores") {
  Host host;
  Daemon daemon(host.box, host.root.path(), host.runtime.path(), kLong);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP})
    REQUIRE(::kill(daemon.companion(), signal) == 0);
  CHECK(::getsid(daemon.companion()) == daemon.companion());
  daemon.signal(SIGKILL);
  daemon.reap();
  CHECK(daemon.companion_ended());
  CHECK(host.box.get("cpu.max") == "200000 100000");
}

TEST_CASE("a clean shutdown ends the companion and changes nothing") {
  Host host;
  Daemon daemon(host.box, host.root.path(), host.runtime.path(), kLong);
  daemon.order('s');
  daemon.reap();
  CHECK(daemon.companion_ended());
  CHECK(host.box.get("cpu.max") == "50000 100000");
}

// rule: S-04
TEST_CASE("the companion restores for a stopped daemon, revokes its leases and keeps running") {
  Host host;
  Daemon daemon(host.box, host.root.path(), host.runtime.path(), std::chrono::milliseconds(600));
  daemon.signal(SIGSTOP);
  CHECK(host.becomes("200000 100000"));
  const auto leases = LeaseTable::open_existing({.runtime_dir = host.runtime.path()});
  REQUIRE(leases);
  CHECK((*leases)->revoked());
  CHECK((*leases)->leased_records().size() == 1);
  CHECK(::kill(daemon.companion(), 0) == 0);
  daemon.signal(SIGCONT);
  daemon.order('s');
  daemon.reap();
  CHECK(daemon.companion_ended());
}

// rule: BUDGET-08
TEST_CASE("the companion thaws at the deadline for a daemon that beats and forgets it") {
  const Host host;
  const Daemon daemon(host.box, host.root.path(), host.runtime.path(), kLong);
  daemon.order('f');
  REQUIRE(host.becomes("1", "cgroup.freeze"));
  const auto begun = std::chrono::steady_clock::now();
  REQUIRE(host.becomes("0", "cgroup.freeze"));
  CHECK(std::chrono::steady_clock::now() - begun > kFreeze - std::chrono::seconds(1));
  CHECK(host.box.get("cpu.max") == "50000 100000");
  daemon.order('s');
  CHECK(daemon.companion_ended());
}

TEST_CASE("a daemon that hangs on an unread standard error is restored, too") {
  Host host;
  const FullPipe standard_error;
  Daemon daemon(host.box, host.root.path(), host.runtime.path(), std::chrono::milliseconds(600),
                standard_error.writing.get());
  daemon.signal(SIGSTOP);
  CHECK(host.becomes("200000 100000"));
  daemon.signal(SIGKILL);
  daemon.reap();
  CHECK(daemon.companion_ended());
}

TEST_CASE("cgphase-restore restores the limits of a dead daemon") {
  Host host;
  {
    const auto leases =
        std::move(*LeaseTable::open({.runtime_dir = host.runtime.path(), .records = 4}));
    REQUIRE(leases->record(host.box.id(), host.box.path(), Knob::cpu_max, text_of("200000 100000"),
                         text_of("50000 100000"), "test"));
    host.box.put("cpu.max", "50000 100000\n");
  }
  const std::vector<std::string> words = {"--runtime-dir", host.runtime.path(), "--cgroup-root",
                                          host.root.path()};
  CHECK(run_restore(words) == 0);
  CHECK(host.box.get("cpu.max") == "200000 100000");
  CHECK(run_restore(words) == 0);
}

TEST_CASE("cgphase-restore beside a living daemon restores and revokes") {
  Host host;
  const auto leases =
      std::move(*LeaseTable::open({.runtime_dir = host.runtime.path(), .records = 4}));
  REQUIRE(leases->record(host.box.id(), host.box.path(), Knob::cpu_max, text_of("200000 100000"),
                       text_of("50000 100000"), "test"));
  host.box.put("cpu.max", "50000 100000\n");
  CHECK(run_restore({"--runtime-dir", host.runtime.path(), "--cgroup-root", host.root.path()}) ==
        0);
  CHECK(host.box.get("cpu.max") == "200000 100000");
  CHECK(leases->revoked());
  CHECK(leases->leased_records().size() == 1);
}

TEST_CASE("cgphase-restore succeeds without leases and fails with a damaged lease file") {
  Host host;
  const std::vector<std::string> words = {"--runtime-dir", host.runtime.path(), "--cgroup-root",
                                          host.root.path()};
  CHECK(run_restore(words) == 0);
  put_file(host.runtime.path() + "/leases", "damaged");
  CHECK(run_restore(words) == 1);
  CHECK(get_file(host.runtime.path() + "/leases") == "damaged");
}

TEST_CASE("cgphase-restore refuses unknown and incomplete options") {
  CHECK(run_restore({"--everything"}) == 2);
  CHECK(run_restore({"--watch"}) == 2);
  CHECK(run_restore({"--watch", "--pid", "x"}) == 2);
  CHECK(run_restore({"--silence", "soon"}) == 2);
  CHECK(run_restore({"--help"}) == 0);
}
