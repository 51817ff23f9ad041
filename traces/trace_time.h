// Which unit the timestamps of a trace are in. Private to model/.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace cgphase {

inline constexpr double kFirstDate = 1e9, kLastDate = 9e9;  // seconds since 1970, of any trace

enum class TimeForm : std::uint8_t { seconds, milliseconds, microseconds, nanoseconds, iso };

// As people read it; how many are one second.
std::string_view time_form_name(TimeForm form);
double per_second(TimeForm form);

// What the first rows of a file show.
struct TimeSeen {
  std::vector<double> values;  // of the column timestamp
  std::vector<double> steps;   // between rows of one execution, above zero
  std::vector<double> rates;   // of those steps: timestamp units per second, by another column
};

double median_of(std::vector<double> values);  // 0 of none

// By the date that the values then mean (2001 to 2255), else by the rates, else seconds where rows
// are then at most a day apart. Absent where no unit is certain.
std::optional<TimeForm> time_form_of(const TimeSeen& seen);

}  // namespace cgphase
