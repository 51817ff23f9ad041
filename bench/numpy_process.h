// AI4DL's Python (bench/ai4dl_numpy.py) as a child process, timed in turns with a benchmark.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace cgphase {

class NumpyProcess {
 public:
  // Passes `input` to the script through a temporary file. Null if /usr/bin/python3 does not exist
  // or has no numpy. Ends the program if the script fails otherwise.
  static std::unique_ptr<NumpyProcess> start(const nlohmann::json& input);
  ~NumpyProcess();

  // Sends a command to the script and waits for the answer.
  nlohmann::json ask(const std::string& command);
  const std::string& version() const { return version_; }

 private:
  NumpyProcess() = default;
  pid_t child_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  std::string version_;
};

}  // namespace cgphase
