// Runs the built command as a user would. The daemon beside it is the real socket server with
// replies of the test. Both run on one io_context in the test's thread.
#pragma once

#include "agent/server/socket_server.h"

#include <utility>  // before Asio 1.74, which uses std::exchange without it

#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/agent/temporary_directory.h"
#include "tests/protocol/wire.h"

namespace cgphase::test {

inline const std::string kGolden = CGPHASE_SOURCE_DIR "/tests/golden/";

// Reads a file that must exist.
std::string content(const std::string& path);

struct Ran {
  int exit = -1;
  std::string out, err;
};

class CommandRun {
 public:
  CommandRun();
  // Starts the server; `answer` makes the replies.
  void serve(std::function<nlohmann::json(const Request&)> answer);
  // Runs cgphase WORDS --socket THIS_ONE, with these environment variables set, too.
  Ran run(std::vector<std::string> words, const std::map<std::string, std::string>& more = {});
  // Runs the command through this program from now on: through({"setpriv",
  // "--bounding-set=-fowner"}).
  void through(std::vector<std::string> program) { through_ = std::move(program); }

  const std::vector<Request>& requests() const { return requests_; }
  std::string read_socket() const { return directory_ / "run/read.sock"; }
  const TemporaryDirectory& directory() const { return directory_; }

 private:
  TemporaryDirectory directory_;
  boost::asio::io_context io_;
  std::optional<InstanceLock> lock_;
  std::optional<SocketServer> server_;
  std::vector<Request> requests_;
  std::vector<std::string> through_;
};

}  // namespace cgphase::test
