#include "tests/cli/command_run.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace cgphase::test {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment(std::map<std::string, std::string> variables) {
  variables.insert({{"PATH", "/usr/bin:/bin"}, {"LC_ALL", "C.UTF-8"}, {"TZ", "UTC"}});
  // A command that ends at once may leak, and looking for leaks takes a quarter of its time.
  variables.insert({"ASAN_OPTIONS", "detect_leaks=0"});
  std::vector<std::string> out;
  for (const auto& [name, value] : variables) out.push_back(name + "=" + value);
  return out;
}

// A pipe: one end for the io_context, the other for the child.
struct Pipe {
  explicit Pipe(boost::asio::io_context& io) : reading(io) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    reading.assign(ends[0]);
    writing = ends[1];
  }
  void collect(std::string& into, int& open) {
    ::close(writing);
    boost::asio::async_read(reading, boost::asio::dynamic_buffer(into),
                            [&open](boost::system::error_code, std::size_t) { --open; });
  }
  boost::asio::posix::stream_descriptor reading;
  int writing = -1;
};

}  // namespace

std::string content(const std::string& path) {
  const Result<std::string> text = read_file(path, 16U << 20);
  REQUIRE_MESSAGE(text, path);
  return *text;
}

CommandRun::CommandRun() {
  auto lock = InstanceLock::acquire(directory_ / "run");
  REQUIRE(lock);
  lock_.emplace(*std::move(lock));
}

void CommandRun::serve(std::function<nlohmann::json(const Request&)> answer) {
  auto server = SocketServer::listen(
      io_, *lock_, {},
      [this, answer](const Request& request, const Peer&, const SocketServer::Respond& respond) {
        requests_.push_back(request);
        respond(answer(request));
      });
  REQUIRE(server);
  server_.emplace(*std::move(server));
}

Ran CommandRun::run(std::vector<std::string> words,
                    const std::map<std::string, std::string>& more) {
  words.insert(words.begin(), CGPHASE_COMMAND);
  words.insert(words.begin(), through_.begin(), through_.end());
  words.insert(words.end(), {"--socket", read_socket()});
  std::vector<std::string> variables = environment(more);
  Pipe out(io_), err(io_);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, out.writing, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err.writing, STDERR_FILENO);
  pid_t child = -1;
  REQUIRE(::posix_spawnp(&child, words.front().c_str(), &actions, nullptr, pointers(words).data(),
                         pointers(variables).data()) == 0);
  ::posix_spawn_file_actions_destroy(&actions);
  Ran ran;
  int open = 2;
  out.collect(ran.out, open);
  err.collect(ran.err, open);
  io_.restart();
  while (open > 0) io_.run_one();
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  // as shells report it
  ran.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ran;
}

}  // namespace cgphase::test
