#include "cli/commands/restore_alone.h"

#include <sys/stat.h>

#include <fstream>

#include "tests/agent/temporary_directory.h"

using namespace cgphase;

namespace {

// A program in place of cgphase-restore.
std::string program(const TemporaryDirectory& tmp, const std::string& body) {
  const std::string path = tmp / "restore";
  std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
  REQUIRE(::chmod(path.c_str(), 0755) == 0);
  return path;
}

}  // namespace

TEST_CASE("cgphase-restore gets runtime directory and cgroup root, and its output is printed") {
  const TemporaryDirectory tmp;
  const auto body = restore_alone(program(tmp, "echo \"$@\""), "/run/x", "/cg");
  REQUIRE(body);
  CHECK(body->done ==
        "no daemon answers; cgphase-restore: --runtime-dir /run/x --cgroup-root /cg");
}

TEST_CASE("a cgphase-restore that fails is a failure") {
  const TemporaryDirectory tmp;
  const auto body = restore_alone(program(tmp, "echo '1 restored'; exit 1"), "/run/x", "/cg");
  REQUIRE_FALSE(body);
  CHECK(body.error().exit == Exit::failure);
  CHECK(body.error().text.find("1 restored") != std::string::npos);
}

TEST_CASE("a missing cgphase-restore is a failure that names it") {
  const auto body = restore_alone("/nonexistent/restore", "/run/x", "/cg");
  REQUIRE_FALSE(body);
  CHECK(body.error().text.find("/nonexistent/restore") != std::string::npos);
}

TEST_CASE("the output of cgphase-restore is bounded and escaped") {
  const TemporaryDirectory tmp;
  const auto body =
      restore_alone(program(tmp, "head -c 200000 /dev/zero; printf '\\033'"), "/r", "/c");
  REQUIRE(body);
  CHECK(body->done.size() < 300'000);
}
