// AI4DL's Python (bench/ai4dl_numpy.py) beside a benchmark, to be timed in turn with it.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace cgphase {

class NumpyProcess {
 public:
  // Gives `input` to the script through a temporary file. Null where /usr/bin/python3 is not there
  // or has no numpy; ends the program where the script fails otherwise.
  static std::unique_ptr<NumpyProcess> start(const nlohmann::json& input);
  ~NumpyProcess();

  // Sends a command of the script's and waits for the answer.
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
