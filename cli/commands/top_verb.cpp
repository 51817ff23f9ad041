// cgphase top: lists the containers again and again.
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "cli/commands/top.h"
#include "cli/commands/verbs.h"
#include "cli/daemon_client.h"
#include "cli/options.h"
#include "cli/output/print.h"

namespace cgphase {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr double kDelaySeconds = 2;
constexpr double kLeastSeconds = 0.1, kMostSeconds = 3600;
constexpr const char* kClear = "\x1b[2J";
// wrap lines again, and continue below the picture
constexpr std::string_view kLeave = "\x1b[?7h\n";

struct TopWords {
  double delay_seconds = kDelaySeconds;
  int iterations = 0;  // 0: until q or Ctrl-C; once if not on a terminal
  TopOrder order = TopOrder::cpu;
};

// Terminal settings before and during this program. Global, because signal handlers use them.
termios keys_before, keys_now;

void set_keys(const termios& keys) { ::tcsetattr(STDIN_FILENO, TCSANOW, &keys); }

void end_by(int signal) {
  set_keys(keys_before);
  const ssize_t ignored = ::write(STDOUT_FILENO, kLeave.data(), kLeave.size());
  static_cast<void>(ignored);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// Reads keys as they are pressed, not line by line, while it lives. A signal that ends this program
// restores the terminal, too. If standard input is not a terminal, there are no keys.
class Keyboard {
 public:
  Keyboard() : there_(::tcgetattr(STDIN_FILENO, &keys_before) == 0) {
    if (!there_) return;
    keys_now = keys_before;
    keys_now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    for (const int signal : {SIGINT, SIGQUIT, SIGTERM, SIGHUP}) handle(signal, end_by);
    handle(SIGCONT, [](int) { set_keys(keys_now); });  // the shell changed the settings meanwhile
    set_keys(keys_now);
  }
  ~Keyboard() {
    if (there_) set_keys(keys_before);
  }
  Keyboard(const Keyboard&) = delete;
  Keyboard& operator=(const Keyboard&) = delete;

  // Waits for this time. Returns true at once if q is pressed or the input is closed.
  bool ended_within(milliseconds time) const {
    const auto end = std::chrono::steady_clock::now() + time;
    for (;;) {
      const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      pollfd input{.fd = there_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
      if (::poll(&input, 1, static_cast<int>(left.count())) <= 0) continue;
      char keys[64];
      const ssize_t count = ::read(STDIN_FILENO, keys, sizeof keys);
      if (count <= 0) return count == 0 || errno != EINTR;
      if (std::string_view(keys, static_cast<std::size_t>(count)).contains('q')) return true;
    }
  }

 private:
  static void handle(int signal, void (*handler)(int)) {
    struct sigaction action{};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) return;
    action = {};
    action.sa_handler = handler;
    ::sigaction(signal, &action, nullptr);
  }

  bool there_;
};

std::size_t terminal_rows() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

// Draws over the last picture on a terminal.
int draw(const StatusReport& status, const ListReply& list, bool first,
         const CommonOptions& options) {
  const TextStyle style = text_style(options, terminal_environment());
  const std::string frame = (first ? kClear : "") +
                            top_frame(render_top(status, list, style), terminal_rows());
  if (std::fwrite(frame.data(), 1, frame.size(), stdout) == frame.size() &&
      std::fflush(stdout) == 0)
    return 0;
  return complain(Exit::failure, "cannot write standard output");
}

// Prints one list, in a format that another list can follow.
int print_once(const json& list, bool only, bool first, CommonOptions options) {
  if (!only && options.output == Output::json) {
    std::printf("%s\n", list.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
    return std::fflush(stdout) == 0 ? 0 : complain(Exit::failure, "cannot write standard output");
  }
  if (options.output == Output::csv) options.legend = options.legend && first;
  return print(kListForm, list, options);
}

int top(const TopWords& words, const CommonOptions& options) {
  const TerminalEnvironment terminal = terminal_environment();
  const bool text = options.output == Output::table || options.output == Output::wide;
  const bool drawn = text && terminal.is_tty && !terminal.term.empty() && terminal.term != "dumb";
  const int times = words.iterations > 0 || terminal.is_tty ? words.iterations : 1;
  // NaN passes every range check.
  if (!std::isfinite(words.delay_seconds))
    return complain(Exit::usage, "top: -d takes a number of seconds");
  if (options.output == Output::openmetrics && times != 1)
    return complain(Exit::usage, "top: -o openmetrics prints only one list: add -n 1");
  const milliseconds delay(static_cast<std::int64_t>(words.delay_seconds * 1000));
  std::optional<Keyboard> keyboard;
  if (drawn) keyboard.emplace();
  const auto leave = [&](bool below) {
    if (drawn && below) std::fwrite(kLeave.data(), 1, kLeave.size(), stdout);
    std::fflush(stdout);
    keyboard.reset();
  };
  for (int printed = 1;; ++printed) {
    auto list = ask_for<ListReply>(options.socket, ListRequest{});
    OrComplaint<StatusReport> status;
    if (drawn && list) status = ask_for<StatusReport>(options.socket, StatusRequest{});
    if (!list || !status) {
      leave(printed > 1);
      return complain(list ? status.error() : list.error());
    }
    sort_containers(*list, words.order);
    const int code = drawn ? draw(*status, *list, printed == 1, options)
                           : print_once(to_json(*list), times == 1, printed == 1, options);
    if (code != 0) return code;
    if (printed == times) break;
    if (!keyboard) std::this_thread::sleep_for(delay);
    else if (keyboard->ended_within(delay)) break;
  }
  leave(true);
  return 0;
}

const std::map<std::string, TopOrder> kOrders = {{"cpu", TopOrder::cpu},
                                                 {"memory", TopOrder::memory},
                                                 {"saved", TopOrder::saved},
                                                 {"name", TopOrder::name}};

}  // namespace

void add_top_verb(CLI::App& app, const CommonOptions& options, int& exit_code) {
  const auto words = std::make_shared<TopWords>();
  CLI::App* const verb =
      app.add_subcommand("top", "List containers again and again, most CPU first");
  verb->add_option("-d,--delay", words->delay_seconds, "Seconds between two lists [2]")
      ->check(CLI::Range(kLeastSeconds, kMostSeconds));
  verb->add_option("-n,--iterations", words->iterations,
                   "Stop after this many lists [until q or Ctrl-C; 1 if not on a terminal]")
      ->check(CLI::Range(1, 1'000'000'000));
  verb->add_option_function<std::string>(
          "--sort", [words](const std::string& word) { words->order = kOrders.at(word); },
          "Order; saved: by bytes [cpu]")
      ->check(CLI::IsMember({"cpu", "memory", "saved", "name"}));
  verb->callback([words, &options, &exit_code] { exit_code = top(*words, options); });
}

}  // namespace cgphase
