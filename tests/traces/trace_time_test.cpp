#include "traces/trace_time.h"

#include <doctest/doctest.h>

using namespace cgphase;

namespace {

constexpr double kNow = 1'700'000'000;  // seconds since 1970

std::optional<TimeForm> form_of(double value, double step, std::vector<double> rates = {}) {
  return time_form_of(
      {.values = {value, value + step}, .steps = {step}, .rates = std::move(rates)});
}

}  // namespace

TEST_CASE("present dates have a unit that their size shows") {
  CHECK(form_of(kNow, 1) == TimeForm::seconds);
  CHECK(form_of(kNow * 1e3, 1e3) == TimeForm::milliseconds);
  CHECK(form_of(kNow * 1e6, 1e6) == TimeForm::microseconds);
  CHECK(form_of(kNow * 1e9, 1e9) == TimeForm::nanoseconds);
  CHECK(form_of(kFirstDate, 300) == TimeForm::seconds);
  CHECK(form_of(kLastDate - 300, 300) == TimeForm::seconds);
}

TEST_CASE("time since a start has the unit that another column implies, else seconds") {
  CHECK(form_of(0, 1000, {1000}) == TimeForm::milliseconds);
  CHECK(form_of(0, 3e8, {1e6}) == TimeForm::microseconds);
  CHECK(form_of(5e12, 1e9, {1e9}) == TimeForm::nanoseconds);
  CHECK(form_of(0, 1000) == TimeForm::seconds);
  CHECK(form_of(0, 1000, {2.7}) == TimeForm::seconds);
  CHECK(time_form_of({}) == TimeForm::seconds);
}

TEST_CASE("rows more than a day apart, and numbers that are dates in no unit, are unclear") {
  CHECK(form_of(0, 86'400) == TimeForm::seconds);
  CHECK_FALSE(form_of(0, 86'401));
  CHECK_FALSE(form_of(0, 3e8, {1}) == TimeForm::microseconds);
  CHECK_FALSE(form_of(kLastDate + 1, 1));
  // Nanoseconds since the machine started look like a date in milliseconds.
  CHECK_FALSE(form_of(5e12, 1e9));
}
