#include "lab/replay/closed_loop.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace cgphase {
namespace {

constexpr double kCpuRaise = 1.2;

// Integral of a straight line from `from` to `to`.
double area(double length, double from, double to) { return length * (from + to) / 2; }

// Time until a backlog is worked off: the first x in (0, length] with backlog + surplus * x + slope
// * x^2 / 2 = 0. surplus = demand - limit is not above 0 and stays so. Returns `length` if the
// backlog lasts longer.
double worked_off(double backlog, double surplus, double slope, double length) {
  const double end = backlog + surplus * length + slope * length * length / 2;
  if (end > 0) return length;
  // The stable form of the quadratic's smaller root: 2c / (-b + sqrt(b^2 - 4ac)).
  const double root = std::sqrt(std::max(0.0, surplus * surplus - 2 * slope * backlog));
  return std::min(length, 2 * backlog / (-surplus + root));
}

}  // namespace

ResourceLoop::ResourceLoop(const ClosedLoop& loop, Resource resource, double ceiling)
    : loop_(loop), resource_(resource), ceiling_(ceiling), limit_(ceiling) {
  CHECK_INVARIANT(ceiling > 0 && loop.time_to_raise_seconds > 0);
}

void ResourceLoop::set(double wanted) { limit_ = std::min(wanted, ceiling_); }

void ResourceLoop::gap() {
  backlog_ = 0;
  raise_in_.reset();
}

void ResourceLoop::raise() {
  raise_in_.reset();
  limit_ = resource_ == Resource::cpu ? std::min(limit_ * kCpuRaise, ceiling_) : ceiling_;
}

double ResourceLoop::near(const Line& line) const {
  const double near = loop_.guard_threshold * limit_;
  if (resource_ == Resource::cpu || line.slope <= 0) return near;
  return std::min(near, limit_ - line.slope * loop_.growth_seconds);
}

LoopInterval ResourceLoop::run(double seconds, double from, double to) {
  CHECK_INVARIANT(seconds > 0);
  const Line line{from, (to - from) / seconds};
  LoopInterval interval;
  interval.demanded = area(seconds, from, to);
  interval.lowest_limit = limit_;
  const double waiting = backlog_;
  // the policy raised first
  if (from < near(line) || limit_ >= ceiling_) raise_in_.reset();
  double now = 0;
  while (now < seconds) {
    const bool watched = loop_.enabled && limit_ < ceiling_;
    double next = seconds;
    if (watched && !raise_in_) {
      const double crossed = near(line);
      if (line.at(now) >= crossed)
        raise_in_ = loop_.time_to_raise_seconds;
      else if (line.slope > 0)
        next = std::max(now, (crossed - from) / line.slope);
    }
    const bool crosses = watched && !raise_in_ && next < seconds;
    const double fires = raise_in_ ? now + *raise_in_ : seconds + 1;
    next = std::min({next, fires, seconds});
    stay(line, now, next, interval);
    if (raise_in_) *raise_in_ -= next - now;
    now = next;
    if (crosses) raise_in_ = loop_.time_to_raise_seconds;
    if (fires <= seconds) {
      raise();
      interval.raises += 1;
    }
  }
  interval.served = interval.demanded + waiting - backlog_;
  return interval;
}

// Advances under one limit, from `begin` to `end` of the interval. Splits where the demand crosses
// the limit.
void ResourceLoop::stay(const Line& line, double begin, double end, LoopInterval& interval) {
  const double length = end - begin;
  const double from = line.at(begin), to = line.at(end);
  interval.allocated += limit_ * length;
  interval.lowest_limit = std::min(interval.lowest_limit, limit_);
  interval.passed |= limit_ < ceiling_ && std::max(from, to) > limit_;
  const bool cut = (from > limit_) != (to > limit_) && line.slope != 0;
  const double first = cut ? std::clamp((limit_ - from) / line.slope, 0.0, length) : length;
  if (cut) {
    queue(first, from, limit_, interval);
    queue(length - first, limit_, to, interval);
  } else {
    queue(length, from, to, interval);
  }
}

// A piece in which the demand does not cross the limit.
void ResourceLoop::queue(double length, double from, double to, LoopInterval& interval) {
  if (!(length > 0)) return;
  const double above = area(length, from, to) - limit_ * length;
  if (from > limit_ || to > limit_) {
    interval.overrun += above;
  } else {
    interval.slack_seconds += -above / limit_;
  }
  if (!loop_.enabled || resource_ != Resource::cpu) return;
  interval.longest_delay_seconds = std::max(interval.longest_delay_seconds, backlog_ / limit_);
  double waits = length;
  if (above > 0) {
    interval.waited += above;
    backlog_ += above;
  } else if (backlog_ > 0) {
    waits = worked_off(backlog_, from - limit_, (to - from) / length, length);
    backlog_ = waits < length ? 0 : std::max(0.0, backlog_ + above);
  } else {
    return;
  }
  interval.throttled_seconds += waits;
  interval.longest_delay_seconds = std::max(interval.longest_delay_seconds, backlog_ / limit_);
}

}  // namespace cgphase
