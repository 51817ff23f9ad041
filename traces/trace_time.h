// Finds the unit of the timestamps of a trace. Private to traces/.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cgphase {

// Seconds since 1970; range of all dates in traces.
inline constexpr double kFirstDate = 1e9, kLastDate = 9e9;

enum class TimeForm : std::uint8_t { seconds, milliseconds, microseconds, nanoseconds, iso };

// The name for messages, and the number of units per second.
std::string_view time_form_name(TimeForm form);
double per_second(TimeForm form);

// Observations from the first rows of a file.
struct TimeSeen {
  std::vector<double> values;  // values of the column timestamp
  std::vector<double> steps;   // positive differences between rows of one execution
  std::vector<double> rates;   // timestamp units per second of those steps, from another column
};

double median_of(std::vector<double> values);  // 0 if empty

// The unit in which the values are dates (2001 to 2255). Otherwise the unit that the rates imply.
// Otherwise seconds, if rows are then at most a day apart. Absent if no unit is certain.
std::optional<TimeForm> time_form_of(const TimeSeen& seen);

}  // namespace cgphase
