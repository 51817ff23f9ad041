// `cgphase model check`: validates a model file as the daemon does, and checks its fixed-point
// arithmetic.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cgphase {

struct ModelCheckOptions {
  std::string model;
  std::vector<std::string> traces;  // empty: only the error bounds
  bool as_json = false;
};

// The report. It is printed even if a violation makes the verb fail.
struct ModelCheckReport {
  std::string text;
  std::size_t violations = 0;
};

Result<ModelCheckReport> check_model_file(const ModelCheckOptions& options);

}  // namespace cgphase
