#include "policy/phase/foreseen_limit.h"

#include <algorithm>

namespace cgphase {
namespace {

// The fast path raises at its threshold, so expected demand stays just below it.
constexpr double kJustBelow = 1.0004;
// With a threshold of 95 % and a reaction time of 0.1 s, the fast path has 5 % of the limit. A rise
// of half the limit per second is then too fast.
constexpr double kRiseSeconds = 2;
// A sample of an earlier run counts as three, because its run was seen to the end.
constexpr double kEarlierWeight = 3;
// Weight of earlier runs after this run has exceeded their bound.
constexpr double kDisproved = 0.5;
// With fewer moments or visits there is no statement: twice may be chance.
constexpr double kFewMoments = 10, kFewVisits = 3;

void lower_to(std::optional<DemandBound::Ahead>& ahead, double bound) {
  if (!ahead) ahead = {bound, bound};
  ahead->next = std::min(ahead->next, bound);
  ahead->coming = std::min(ahead->coming, bound);
}

}  // namespace

ForeseenLimit::ForeseenLimit(double risk, double guard_threshold, bool drifts,
                             const EarlierPeak& earlier, double write_risk)
    : risk_(risk), room_(kJustBelow / guard_threshold), drifts_(drifts), earlier_(earlier),
      earlier_weight_(kEarlierWeight), own_(drifts), held_(drifts, write_risk) {
  if (earlier_.runs > 0 && earlier_.peak > 0) promised_ = promise();
}

double ForeseenLimit::promise() const {
  const double samples = earlier_weight_ * earlier_.samples + static_cast<double>(own_.count());
  return widened(std::max(earlier_.peak, own_.peak()), samples, risk_.risk());
}

// Earlier runs include the demand that is still to come. This run is used alone after their length,
// or after a whole window of its own.
bool ForeseenLimit::own_speaks() const {
  if (!promised_) return true;
  const double window = std::min<double>(NestedWindows::kShortest,
                                         earlier_.samples / earlier_.runs);
  return static_cast<double>(own_.count()) >= window;
}

std::optional<DemandBound::Ahead> ForeseenLimit::bound(const MomentPeak& moment) {
  std::optional<DemandBound::Ahead> ahead;
  if (own_speaks()) ahead = own_.ahead(risk_.risk());
  if (promised_) {
    promised_ = promise();
    lower_to(ahead, *promised_);
  }
  const double moments = moment.own_moments + kEarlierWeight * moment.earlier_moments;
  const bool telling = moments >= kFewMoments && moment.visits >= kFewVisits && moment.peak > 0;
  if (ahead && !disproved_ && telling)
    lower_to(ahead, widened(std::max(moment.peak, own_.last()), moments, risk_.risk()));
  if (ahead && !disproved_) {
    ahead->next = std::max(ahead->next, moment.expected);
    ahead->coming = std::max(ahead->coming, moment.expected);
  }
  if (ahead && drifts_) {
    const double least =
        kRiseSeconds * std::max(earlier_.rise_per_second, own_.rise_per_second());
    ahead->next = std::max({ahead->next, least, moment.kept});
    ahead->coming = std::max({ahead->coming, least, moment.kept});
  }
  return ahead;
}

void ForeseenLimit::add(double demand, double interval_seconds, const MomentPeak& moment) {
  if (held_.level()) risk_.add(demand >= *held_.level());
  if (promised_ && demand > *promised_ * room_) {
    disproved_ = true;
    earlier_weight_ *= kDisproved;
  }
  own_.add(demand, interval_seconds);
  const auto ahead = bound(moment);
  if (!ahead) return;
  const double next = std::max(ahead->next, demand);
  coming_ = std::max(ahead->coming, next);
  held_.update(next * room_, *coming_ * room_);
}

}  // namespace cgphase
