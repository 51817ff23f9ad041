#include "cli/output/style.h"

#include <doctest/doctest.h>

using namespace cgphase;

namespace {

bool colored(const char* choice, const TerminalEnvironment& environment) {
  CommonOptions options;
  options.color = choice;
  return text_style(options, environment).color;
}

const TerminalEnvironment kTty{.no_color = "", .force_color = "", .term = "xterm", .is_tty = true};

}  // namespace

TEST_CASE("colour is for terminals") {
  CHECK(colored("auto", kTty));
  CHECK_FALSE(colored("auto", {}));
}

TEST_CASE("NO_COLOR and TERM=dumb turn colour off") {
  TerminalEnvironment environment = kTty;
  environment.no_color = "1";
  CHECK_FALSE(colored("auto", environment));
  environment = kTty;
  environment.term = "dumb";
  CHECK_FALSE(colored("auto", environment));
}

TEST_CASE("FORCE_COLOR turns colour on in a pipe, but not against NO_COLOR") {
  CHECK(colored("auto", {.no_color = "", .force_color = "1", .term = "", .is_tty = false}));
  CHECK_FALSE(colored("auto", {.no_color = "1", .force_color = "1", .term = "", .is_tty = true}));
}

TEST_CASE("the option overrides the environment") {
  TerminalEnvironment environment = kTty;
  environment.no_color = "1";
  CHECK(colored("always", environment));
  CHECK_FALSE(colored("never", kTty));
}

TEST_CASE("names are cut on a terminal only, and not in wide") {
  CommonOptions options;
  CHECK(text_style(options, kTty).shorten);
  CHECK_FALSE(text_style(options, {}).shorten);
  options.output = Output::wide;
  CHECK_FALSE(text_style(options, kTty).shorten);
}

TEST_CASE("the admin socket is beside the read socket") {
  CommonOptions options;
  CHECK(options.admin_socket() == "/run/cgphase/admin.sock");
  options.socket = "read.sock";
  CHECK(options.admin_socket() == "./admin.sock");
}
