// The truth about a run: the phase of a workload and its start. One line per change, "SECONDS PHASE
// DETAIL" with CLOCK_MONOTONIC seconds; '#' begins a comment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace cgphase::workloads {

// Writes a label file. Without a path it writes nothing. One thread.
class LabelFile {
 public:
  LabelFile() = default;
  static Result<LabelFile> create(const std::string& path);

  // From now on the workload is in `phase`. It is written at once, so that a killed run keeps its
  // truth. `phase` has no white space.
  void enter(std::string_view phase, std::string_view detail = "");

 private:
  Fd file_;
};

struct Label {
  double seconds = 0;
  std::string phase, detail;
};

// Malformed lines and times that run backwards are invalid; the error has the line number.
Result<std::vector<Label>> parse_labels(std::string_view text, const std::string& name);

// The phase at that time; empty before the first label.
std::string_view phase_at(const std::vector<Label>& labels, double seconds);

}  // namespace cgphase::workloads
