#include "cli/top_verb.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "cli/daemon_client.h"
#include "cli/print.h"
#include "cli/top.h"

namespace cgphase {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;

constexpr double kDelaySeconds = 2;
constexpr char kInterrupt = 'C' - '@', kQuit = '\\' - '@', kEndOfInput = 'D' - '@';
constexpr const char* kClear = "\x1b[2J";

struct TopWords {
  double delay_seconds = kDelaySeconds;
  int iterations = 0;  // 0: until it is ended; not on a terminal: once
  TopOrder order = TopOrder::cpu;
};

// Keys as they are pressed, while it lives. Ctrl-C is a key then, so that nothing ends this program
// before the terminal is as it was.
class Keyboard {
 public:
  Keyboard() {
    termios keys{};
    if (::tcgetattr(STDIN_FILENO, &keys) != 0) return;
    before_ = keys;
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  }
  ~Keyboard() {
    if (before_) ::tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
  }
  Keyboard(const Keyboard&) = delete;
  Keyboard& operator=(const Keyboard&) = delete;

  // Waits so long; true at once where a key says that it is enough. Another key ends the wait.
  bool ended_within(milliseconds time) {
    if (!before_) {
      std::this_thread::sleep_for(time);
      return false;
    }
    pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, static_cast<int>(time.count())) <= 0) return false;
    char key = kQuit;  // also where the terminal has gone
    if (::read(STDIN_FILENO, &key, 1) <= 0) return true;
    return key == 'q' || key == kInterrupt || key == kQuit || key == kEndOfInput;
  }

 private:
  std::optional<termios> before_;  // absent: standard input is no terminal
};

std::size_t terminal_rows() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

OrComplaint<json> ask(Verb verb, const CommonOptions& options) {
  return ask_daemon(options.socket, {.verb = verb, .args = json::object()});
}

// On a terminal, over the last picture.
int draw(const json& status, const json& list, bool first, const CommonOptions& options) {
  const TextStyle style = text_style(options, terminal_environment());
  const std::string frame = (first ? kClear : "") +
                            top_frame(render_top(status, list, style), terminal_rows());
  if (std::fwrite(frame.data(), 1, frame.size(), stdout) == frame.size() &&
      std::fflush(stdout) == 0)
    return 0;
  return complain(Exit::failure, "cannot write standard output");
}

int look(const TopWords& words, bool drawn, bool first, const CommonOptions& options) {
  auto list = ask(Verb::list, options);
  if (!list) return complain(list.error());
  sort_containers(*list, words.order);
  if (!drawn) return print(kListForm, *list, options);
  const auto status = ask(Verb::status, options);
  return status ? draw(*status, *list, first, options) : complain(status.error());
}

int top(const TopWords& words, const CommonOptions& options) {
  const TerminalEnvironment terminal = terminal_environment();
  const bool text = options.output == Output::table || options.output == Output::wide;
  const bool drawn = text && terminal.is_tty && !terminal.term.empty() && terminal.term != "dumb";
  const int times = words.iterations > 0 || terminal.is_tty ? words.iterations : 1;
  const milliseconds delay(static_cast<std::int64_t>(words.delay_seconds * 1000));
  std::optional<Keyboard> keyboard;
  if (terminal.is_tty) keyboard.emplace();
  for (int looks = 1;; ++looks) {
    if (const int code = look(words, drawn, looks == 1, options); code != 0) return code;
    if (looks == times) break;
    if (!keyboard) std::this_thread::sleep_for(delay);
    else if (keyboard->ended_within(delay)) break;
  }
  if (drawn) std::fputs("\n", stdout);
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
      app.add_subcommand("top", "Every container again and again, those that need most first");
  verb->add_option("-d,--delay", words->delay_seconds, "seconds between two looks (2)")
      ->check(CLI::Range(0.1, 3600.0));
  verb->add_option("-n,--iterations", words->iterations,
                   "end after so many looks (until q or Ctrl-C; not on a terminal: 1)")
      ->check(CLI::Range(1, 1'000'000'000));
  verb->add_option_function<std::string>(
          "--sort", [words](const std::string& word) { words->order = kOrders.at(word); },
          "cpu, memory, saved (bytes) or name (cpu)")
      ->check(CLI::IsMember({"cpu", "memory", "saved", "name"}));
  verb->callback([words, &options, &exit_code] { exit_code = top(*words, options); });
}

}  // namespace cgphase
