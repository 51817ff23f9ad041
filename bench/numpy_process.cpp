#include "bench/numpy_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace cgphase {
namespace {

constexpr const char* kPython = "/usr/bin/python3";
constexpr int kNoNumpy = 3;  // the script's exit status

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "bench: %s: %s\n", CGPHASE_NUMPY_SCRIPT, why);
  std::exit(EXIT_FAILURE);
}

// False at the end of the file.
bool read_line(std::FILE* file, std::string& line) {
  line.clear();
  for (int c; (c = std::getc(file)) != EOF;) {
    if (c == '\n') return true;
    line += static_cast<char>(c);
  }
  return false;
}

pid_t spawn_python(const std::string& input_path, int child_stdin, int child_stdout) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, child_stdin, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, child_stdout, STDOUT_FILENO);
  std::string words[] = {kPython, "-B", CGPHASE_NUMPY_SCRIPT, input_path};
  char* arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  pid_t child = -1;
  const int error = posix_spawn(&child, kPython, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? child : -1;
}

}  // namespace

std::unique_ptr<NumpyProcess> NumpyProcess::start(const nlohmann::json& input) {
  if (::access(kPython, X_OK) != 0) return nullptr;
  char path[] = "/tmp/bench_model_XXXXXX";
  const int file = ::mkostemp(path, O_CLOEXEC);
  if (file < 0) give_up("cannot make a temporary file");
  ::close(file);
  std::ofstream(path) << input;
  int to[2], from[2];
  if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) give_up("no pipe");
  std::signal(SIGPIPE, SIG_IGN);
  ::setenv("OPENBLAS_NUM_THREADS", "1", 1);  // such small products gain nothing from threads
  std::unique_ptr<NumpyProcess> process(new NumpyProcess);
  process->child_ = spawn_python(path, to[0], from[1]);
  ::close(to[0]);
  ::close(from[1]);
  process->to_ = ::fdopen(to[1], "w");
  process->from_ = ::fdopen(from[0], "r");
  std::string line;
  const bool ready = process->child_ > 0 && read_line(process->from_, line);
  std::filesystem::remove(path);
  if (process->child_ < 0) give_up("cannot be started");
  if (ready) {
    process->version_ = nlohmann::json::parse(line).at("numpy");
    return process;
  }
  int status = 0;
  ::waitpid(process->child_, &status, 0);
  process->child_ = -1;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != kNoNumpy) give_up("failed");
  return nullptr;
}

NumpyProcess::~NumpyProcess() {
  if (to_ != nullptr) std::fclose(to_);  // the script ends at the end of its input
  if (from_ != nullptr) std::fclose(from_);
  if (child_ > 0) ::waitpid(child_, nullptr, 0);
}

nlohmann::json NumpyProcess::ask(const std::string& command) {
  std::fprintf(to_, "%s\n", command.c_str());
  std::fflush(to_);
  std::string line;
  if (!read_line(from_, line)) give_up("ended early");
  return nlohmann::json::parse(line);
}

}  // namespace cgphase
