#include "model/phase_sequence_reader.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/parse.h"
#include "base/text.h"
#include "traces/text_lines.h"

namespace cgphase {
namespace {

constexpr std::string_view kRuns = "phase_runs", kLegendOfRuns = "(phase:length)";

class SequenceFile {
 public:
  SequenceFile(const std::string& path, PhaseSequences& sequences)
      : path_(path), sequences_(sequences) {}

  Status read_header(std::string_view line);
  Status read_row(std::string_view line, std::uint64_t line_number);

 private:
  std::string place() const { return path_ + ": line " + std::to_string(line_); }
  std::unexpected<Error> bad(std::string_view column, const std::string& reason) const {
    return failure(ErrorKind::invalid,
                   place() + ": column " + escape_name(column) + ": " + reason);
  }
  std::optional<std::size_t> find(std::string_view name) const;
  Result<PhaseRun> run_of(std::string_view word) const;
  Status check_count(const PhaseSequence& sequence) const;

  const std::string& path_;
  PhaseSequences& sequences_;
  std::uint64_t line_ = 1;
  std::vector<std::string> names_, fields_;
  std::optional<std::size_t> id_, count_;
  std::size_t runs_ = 0;
};

std::optional<std::size_t> SequenceFile::find(std::string_view name) const {
  const auto found = std::ranges::find(names_, name);
  if (found == names_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names_.begin());
}

Status SequenceFile::read_header(std::string_view line) {
  if (!split_csv(line, names_)) return bad("(header)", "a quote does not end");
  std::vector<std::string> sorted = names_;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) return bad(*twice, "appears twice");
  auto runs = find(kRuns);
  if (!runs) runs = find(std::string(kRuns) + std::string(kLegendOfRuns));
  if (!runs)
    return bad(kRuns,
               "is missing: these are not phase sequences; omit --sequences "
               "to read telemetry");
  runs_ = *runs;
  id_ = find("exec");
  count_ = find("n_samples");
  return {};
}

// Parses "3:12", or "?:12" for an unknown phase.
Result<PhaseRun> SequenceFile::run_of(std::string_view word) const {
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos)
    return bad(names_[runs_], "\"" + escape_name(word) + "\" is not PHASE:LENGTH");
  const std::string_view name = word.substr(0, colon);
  const std::optional<std::uint64_t> phase =
      name == "?" ? std::uint64_t{kUnknownPhase} : parse_u64(name);
  if (!phase || (name != "?" && *phase >= std::uint64_t{kMaxPhases}))
    return bad(names_[runs_], "\"" + escape_name(word) + "\": the phase must be 0.." +
                                  std::to_string(kMaxPhases - 1) + " or ?");
  const std::optional<std::uint64_t> length = parse_u64(word.substr(colon + 1));
  if (!length || *length < 1 || *length > kMaxRunLength)
    return bad(names_[runs_], "\"" + escape_name(word) + "\": the length must be 1.." +
                                  std::to_string(kMaxRunLength));
  return PhaseRun{static_cast<int>(*phase), *length};
}

Status SequenceFile::check_count(const PhaseSequence& sequence) const {
  if (!count_) return {};
  const std::string& cell = fields_[*count_];
  const std::optional<std::uint64_t> count = parse_u64(trim(cell));
  if (!count) return bad("n_samples", "\"" + escape_name(cell) + "\" is not a count");
  std::uint64_t sum = 0;
  for (const PhaseRun& run : sequence.runs) sum += run.length;
  if (sum == *count) return {};
  return bad("n_samples", "is " + std::to_string(*count) + ", but the runs add up to " +
                              std::to_string(sum));
}

Status SequenceFile::read_row(std::string_view line, std::uint64_t line_number) {
  line_ = line_number;
  if (trim(line).empty()) return {};
  if (!split_csv(line, fields_)) return bad("(row)", "a quote does not end");
  if (fields_.size() != names_.size())
    return failure(ErrorKind::invalid, place() + ": has " + std::to_string(fields_.size()) +
                                           " fields, not " + std::to_string(names_.size()));
  PhaseSequence sequence{id_ ? fields_[*id_] : std::to_string(line_), {}};
  std::string_view rest = fields_[runs_], word;
  while (next_word(rest, word)) {
    const Result<PhaseRun> run = run_of(word);
    if (!run) return std::unexpected(run.error());
    sequence.add(*run);
  }
  if (Status status = check_count(sequence); !status) return status;
  return sequences_.add(std::move(sequence), place());
}

}  // namespace

Status read_phase_sequences(const std::string& path, PhaseSequences& sequences) {
  Result<TextLines> lines = TextLines::open(path);
  if (!lines) return std::unexpected(lines.error());
  SequenceFile file(path, sequences);
  std::string_view line;
  for (bool header = true;; header = false) {
    const Result<bool> more = lines->next(line);
    if (!more) return std::unexpected(more.error());
    if (!*more && header)
      return failure(ErrorKind::invalid, path + ": line 1: the file is empty");
    if (!*more) return {};
    const Status status =
        header ? file.read_header(line) : file.read_row(line, lines->line_number());
    if (!status) return status;
  }
}

}  // namespace cgphase
