#include "traces/trace_shape.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/iso_time.h"
#include "base/parse.h"
#include "base/text.h"
#include "traces/trace.h"

namespace cgphase {
namespace {

constexpr std::string_view kFormatPage = "docs/internals/trace-format.md";
constexpr std::string_view kSeparators = ",;\t";
constexpr double kLeastCores = 0.01;  // smaller values are too rounded to compute an interval
constexpr std::size_t kShownNames = 8, kShownNameBytes = 40;
// From this step on, a note says that a time since a start was taken as seconds.
constexpr double kSlowStep = 100;
constexpr std::size_t kSlowSteps = 10;

using Fields = std::vector<std::string>;

std::string number_text(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

bool is_value(std::string_view cell) { return parse_double(cell) || parse_iso_time(cell); }

class Recogniser {
 public:
  explicit Recogniser(TextLines& lines) : lines_(lines) {}

  Result<TraceShape> run() {
    if (Status status = read_header(); !status) return std::unexpected(status.error());
    if (Status status = read_rows(); !status) return std::unexpected(status.error());
    fix_fields();
    for (const Fields& row : rows_) learn_numbers(row);
    if (Status status = fix_time(); !status) return std::unexpected(status.error());
    return std::move(shape_);
  }

 private:
  std::unexpected<Error> bad(std::uint64_t line, const std::string& what) const {
    return failure(ErrorKind::invalid,
                   lines_.path() + ": line " + std::to_string(line) + ": " + what);
  }

  bool split(std::string_view line, Fields& fields) const {
    if (!split_csv(line, fields, shape_.separator)) return false;
    for (std::string& field : fields) field = trim(field);
    return true;
  }

  // Finds the separator with which the line has a column `timestamp`, else the one with most
  // fields.
  bool names_timestamp(std::string_view line) {
    std::size_t most = 0;
    char best = kSeparators.front();
    for (const char separator : kSeparators) {
      if (!separator_given_) shape_.separator = separator;
      if (!split(line, shape_.names)) continue;
      if (shape_.find("timestamp")) return true;
      if (shape_.names.size() > most) best = shape_.separator;
      most = std::max(most, shape_.names.size());
    }
    if (!separator_given_) shape_.separator = best;
    return false;
  }

  // Spreadsheets may write "sep=;" in the first line.
  bool is_separator_line(std::string_view line) {
    if (line.starts_with('"') && line.ends_with('"') && line.size() > 1)
      line = line.substr(1, line.size() - 2);
    if (line.size() != 5 || lower_case(line.substr(0, 4)) != "sep=") return false;
    shape_.separator = line[4];
    separator_given_ = true;
    return true;
  }

  void set_header(std::string_view line, std::uint64_t line_number) {
    shape_.header = line;
    shape_.header_line = line_number;
  }

  // The header follows blank lines, a separator line and comments. The last comment may be the
  // header itself.
  Status read_header() {
    std::string comment;
    std::uint64_t comment_line = 0;
    std::string_view line;
    for (;;) {
      const Result<bool> more = lines_.next(line);
      if (!more) return std::unexpected(more.error());
      if (!*more) break;
      if (trim(line).empty()) continue;
      if (lines_.line_number() == 1 && is_separator_line(trim(line))) continue;
      if (!line.starts_with('#')) {
        set_header(line, lines_.line_number());
        break;
      }
      comment = line.substr(line.find_first_not_of("# \t") == line.npos
                                ? line.size()
                                : line.find_first_not_of("# \t"));
      comment_line = lines_.line_number();
    }
    if (shape_.header_line > 0 && names_timestamp(shape_.header)) return check_names();
    const std::string first = shape_.header;
    const std::uint64_t first_line = shape_.header_line;
    if (comment_line > 0 && names_timestamp(comment)) {
      set_header(comment, comment_line);
      if (first_line > 0) keep_row(first);
      return check_names();
    }
    if (first_line == 0)
      return bad(1, lines_.line_number() == 0 ? "the file is empty" : "the file has no header");
    return no_timestamp(first, first_line);
  }

  Status no_timestamp(const std::string& line, std::uint64_t line_number) {
    if (!split(line, shape_.names))
      return bad(line_number, "column (header): a quote does not end");
    if (std::ranges::any_of(shape_.names, is_value))
      return bad(line_number, "there is no header line: the names of the columns come first (" +
                                  std::string(kFormatPage) + ")");
    return bad(line_number, "column timestamp: is missing: this is not a trace (" +
                                std::string(kFormatPage) + "); found " + first_names(shape_.names));
  }

  Status check_names() {
    Fields& names = shape_.names;
    if (names.size() > kMaxTraceColumns)
      return bad(shape_.header_line,
                 "column (header): more than " + std::to_string(kMaxTraceColumns) + " columns");
    std::map<std::string, std::string_view> known;
    for (const std::string& name : names) {
      if (name.empty()) continue;
      const std::string lower = lower_case(name);
      const auto [place, fresh] = known.emplace(lower, name);
      // If two names differ only in case, the one in lower case is used.
      if (!fresh && (name == place->second || (name != lower && place->second != lower)))
        return bad(shape_.header_line, "column " + escape_name(name) + ": appears twice");
    }
    Fields raw;
    split_csv(shape_.header, raw, shape_.separator);
    shape_.blanks = raw != names;
    return {};
  }

  void keep_row(std::string_view line) {
    Fields fields;
    if (line == shape_.header || trim(line).empty() || !split(line, fields)) return;
    rows_.push_back(std::move(fields));
  }

  Status read_rows() {
    std::string_view line;
    while (rows_.size() < kShapeRows) {
      const Result<bool> more = lines_.next(line);
      // An error here is ignored. The reader returns the rows before it and then meets it again.
      if (!more || !*more) return {};
      keep_row(line);
    }
    return {};
  }

  // Finds fields that the header lacks: an index before the others, an empty one after them.
  void fix_fields() {
    if (rows_.empty() || rows_.front().size() <= shape_.names.size()) return;
    const std::size_t more = rows_.front().size() - shape_.names.size();
    const bool empty_last = std::ranges::all_of(rows_, [&](const Fields& row) {
      return row.size() != rows_.front().size() || row.back().empty();
    });
    if (more == 1 && empty_last && !has_index()) shape_.trailing = 1;
    else if (more == 1) shape_.leading = 1;
    else if (more == 2 && empty_last) shape_.leading = shape_.trailing = 1;
  }

  // True if a date is one field after the timestamp's column, and no date is in it.
  bool has_index() const {
    const std::size_t place = *shape_.find("timestamp");
    const auto is_date = [&](std::size_t at) {
      const std::string& cell = rows_.front()[at];
      return parse_iso_time(cell) || parse_double(cell).value_or(0) >= kFirstDate;
    };
    return !is_date(place) && is_date(place + 1);
  }

  // The cell of a row; empty if the column is missing.
  std::string_view cell(const Fields& row, std::string_view name) const {
    const auto place = shape_.find(name);
    if (!place || *place + shape_.leading >= row.size()) return {};
    return row[*place + shape_.leading];
  }

  void learn_numbers(const Fields& row) {
    for (std::size_t i = shape_.leading; i < row.size(); ++i) {
      const std::size_t place = i - shape_.leading;
      const std::string name = place < shape_.names.size() ? lower_case(shape_.names[place]) : "";
      if (name == "service" || name == "pod.id" || name.starts_with("label")) continue;
      shape_.numbers.learn(row[i]);
    }
  }

  // The seconds since the previous row, from the other columns of this row.
  std::optional<double> seconds_since_previous(const Fields& row) {
    const auto interval = shape_.numbers.read(cell(row, "interval"));
    if (interval && *interval > 0) return interval;
    const auto nanoseconds = shape_.numbers.read(cell(row, "cpu.usage"));
    const auto cores = shape_.numbers.read(cell(row, "cpu.usage.cores"));
    if (!nanoseconds || !cores || *cores < kLeastCores || *nanoseconds <= 0) return std::nullopt;
    return *nanoseconds / 1e9 / *cores;
  }

  Status fix_time() {
    const bool dates = !rows_.empty() && parse_iso_time(cell(rows_.front(), "timestamp"));
    bool zoned = true;
    TimeSeen seen;
    std::map<std::string, double, std::less<>> last;
    for (const Fields& row : rows_) {
      const std::string_view text = cell(row, "timestamp");
      std::optional<double> value;
      if (const auto iso = dates ? parse_iso_time(text) : std::nullopt) {
        zoned &= iso->zoned;
        value = iso->seconds;
      }
      if (!dates) value = shape_.numbers.read(text);
      if (!value) continue;
      seen.values.push_back(*value);
      const auto [place, fresh] = last.emplace(cell(row, "pod.id"), *value);
      const double step = *value - std::exchange(place->second, *value);
      if (fresh || !(step > 0)) continue;
      seen.steps.push_back(step);
      if (const auto seconds = seconds_since_previous(row)) seen.rates.push_back(step / *seconds);
    }
    const double step = median_of(seen.steps);
    if (dates) {
      shape_.time = TimeForm::iso;
      shape_.step_seconds = step;
      shape_.notes.push_back(std::string("timestamps taken as ISO 8601") +
                             (zoned ? "" : ", in UTC if they have no zone"));
      return {};
    }
    const std::optional<TimeForm> form = time_form_of(seen);
    if (!form)
      return bad(shape_.header_line + 1,
                 "column timestamp: the unit is unclear: " +
                     (step > 0 ? "rows are " + number_text(step) + " apart"
                               : number_text(seen.values.front()) + " is not a date in any unit") +
                     "; write seconds since 1970 or since the start, or ISO 8601 (" +
                     std::string(kFormatPage) + ")");
    shape_.time = *form;
    shape_.step_seconds = step / per_second(*form);
    note_unit(median_of(seen.values), seen.steps.size());
    return {};
  }

  void note_unit(double value, std::size_t steps) {
    const std::string taken = "timestamps taken as " + std::string(time_form_name(shape_.time));
    shape_.dated = value / per_second(shape_.time) >= kFirstDate;
    if (shape_.time != TimeForm::seconds) shape_.notes.push_back(taken);
    else if (!shape_.dated && steps >= kSlowSteps && shape_.step_seconds >= kSlowStep)
      shape_.notes.push_back(taken + ": one row every " + number_text(shape_.step_seconds) + " s");
  }

  TextLines& lines_;
  TraceShape shape_;
  bool separator_given_ = false;
  std::vector<Fields> rows_;
};

}  // namespace

std::string first_names(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShownNames); ++i)
    text += (i > 0 ? ", " : "") + escape_name(names[i].substr(0, kShownNameBytes));
  return text + (names.size() > kShownNames ? ", ..." : "");
}

std::optional<std::size_t> TraceShape::find(std::string_view name) const {
  if (const auto exact = std::ranges::find(names, name); exact != names.end())
    return static_cast<std::size_t>(exact - names.begin());
  const std::string lower = lower_case(name);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (lower_case(names[i]) == lower) return i;
  if (name == "timestamp") return find("time");
  return std::nullopt;
}

Result<TraceShape> recognise_trace(TextLines& lines) { return Recogniser(lines).run(); }

}  // namespace cgphase
