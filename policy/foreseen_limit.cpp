#include "policy/foreseen_limit.h"

#include <algorithm>

namespace cgphase {
namespace {

// The guard raises at 95 % of the limit: expected demand stays just below that.
constexpr double kGuardRoom = 1.053;
// The guard takes 0.1 s for the last 5 % of a memory limit: a rise of half the limit in a second
// would be faster.
constexpr double kRiseSeconds = 2;
// A sample of an earlier run counts for three: what comes after it was seen too, to the end.
constexpr double kEarlierWeight = 3;
// When this run passes what they promised, earlier runs count for half.
constexpr double kDisproved = 0.5;
// Fewer moments like this one tell nothing.
constexpr double kFewMoments = 10;

void lower_to(std::optional<DemandBound::Ahead>& ahead, double bound) {
  if (!ahead) ahead = {bound, bound};
  ahead->next = std::min(ahead->next, bound);
  ahead->coming = std::min(ahead->coming, bound);
}

}  // namespace

ForeseenLimit::ForeseenLimit(double risk, bool drifts, const EarlierPeak& earlier)
    : risk_(risk), drifts_(drifts), earlier_(earlier), earlier_weight_(kEarlierWeight),
      own_(risk, drifts), held_(drifts) {}

// Earlier runs know what is still to come; once they are over, or a whole window of this one is
// there, this run speaks for itself.
bool ForeseenLimit::own_speaks() const {
  if (!(earlier_.runs > 0 && earlier_.peak > 0)) return true;
  const double window = std::min<double>(NestedWindows::kShortest,
                                         earlier_.samples / earlier_.runs);
  return static_cast<double>(own_.count()) >= window;
}

std::optional<DemandBound::Ahead> ForeseenLimit::bound(const MomentPeak& moment) {
  std::optional<DemandBound::Ahead> ahead;
  if (own_speaks()) ahead = own_.ahead();
  if (earlier_.runs > 0 && earlier_.peak > 0) {
    const double samples =
        earlier_weight_ * earlier_.samples + static_cast<double>(own_.count());
    promised_ = widened(std::max(earlier_.peak, own_.peak()), samples, risk_);
    lower_to(ahead, *promised_);
  }
  const double moments = moment.own_moments + kEarlierWeight * moment.earlier_moments;
  if (ahead && !disproved_ && moments >= kFewMoments && moment.peak > 0)
    lower_to(ahead, widened(std::max(moment.peak, own_.last()), moments, risk_));
  if (ahead && !disproved_) {
    ahead->next = std::max(ahead->next, moment.expected);
    ahead->coming = std::max(ahead->coming, moment.expected);
  }
  if (ahead && drifts_) {
    const double least =
        kRiseSeconds * std::max(earlier_.rise_per_second, own_.rise_per_second());
    ahead->next = std::max(ahead->next, least);
    ahead->coming = std::max(ahead->coming, least);
  }
  return ahead;
}

void ForeseenLimit::add(double demand, double interval_seconds, const MomentPeak& moment) {
  if (promised_ && demand > *promised_ * kGuardRoom) {
    disproved_ = true;
    earlier_weight_ *= kDisproved;
  }
  own_.add(demand, interval_seconds);
  const auto ahead = bound(moment);
  if (!ahead) return;
  const double next = std::max(ahead->next, demand);
  coming_ = std::max(ahead->coming, next);
  held_.update(next * kGuardRoom, *coming_ * kGuardRoom);
}

}  // namespace cgphase
