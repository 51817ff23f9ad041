#include "tests/workloads/label_file.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "tests/workloads/pace.h"

namespace cgphase::workloads {

Result<LabelFile> LabelFile::create(const std::string& path) {
  LabelFile labels;
  if (path.empty()) return labels;
  auto file = open_path(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (!file) return std::unexpected(file.error());
  labels.file_ = std::move(*file);
  return labels;
}

void LabelFile::enter(std::string_view phase, std::string_view detail) {
  if (!file_.valid()) return;
  // A lost label is visible as a wrong phase in the recording. The work itself must continue.
  (void)write_all(file_.get(), fmt::format("{:.6f} {} {}\n", monotonic_seconds(), phase, detail));
}

namespace {

Result<Label> parse_line(std::string_view line) {
  Label label;
  const char* end = line.data() + line.size();
  const auto number = std::from_chars(line.data(), end, label.seconds);
  if (number.ec != std::errc{} || number.ptr == end || *number.ptr != ' ')
    return failure(ErrorKind::invalid, "no time at the start");
  const std::string_view rest(number.ptr + 1, static_cast<std::size_t>(end - number.ptr - 1));
  const std::size_t space = std::min(rest.find(' '), rest.size());
  if (space == 0) return failure(ErrorKind::invalid, "no phase after the time");
  label.phase = rest.substr(0, space);
  label.detail = rest.substr(std::min(space + 1, rest.size()));
  return label;
}

}  // namespace

Result<std::vector<Label>> parse_labels(std::string_view text, const std::string& name) {
  std::vector<Label> labels;
  for (int line_number = 1; !text.empty(); ++line_number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    auto label = parse_line(line);
    if (label && !labels.empty() && label->seconds < labels.back().seconds)
      label = failure(ErrorKind::invalid, "time runs backwards");
    if (!label)
      return failure(ErrorKind::invalid,
                     fmt::format("{}:{}: {}", name, line_number, label.error().text));
    labels.push_back(std::move(*label));
  }
  return labels;
}

std::string_view phase_at(const std::vector<Label>& labels, double seconds) {
  const auto after =
      std::upper_bound(labels.begin(), labels.end(), seconds,
                       [](double time, const Label& label) { return time < label.seconds; });
  return after == labels.begin() ? std::string_view{} : std::prev(after)->phase;
}

}  // namespace cgphase::workloads
