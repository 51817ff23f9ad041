// `cgphase model check`: a model file read as the daemon would, and how far its integers can be
// trusted.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace cgphase {

struct ModelCheckOptions {
  std::string model;
  std::vector<std::string> traces;  // may be empty: the bounds alone
  bool as_json = false;
};

// The report, to be printed also where a violation makes the verb fail.
struct ModelCheckReport {
  std::string text;
  std::size_t violations = 0;
};

Result<ModelCheckReport> check_model_file(const ModelCheckOptions& options);

}  // namespace cgphase
