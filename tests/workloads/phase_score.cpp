#include "tests/workloads/phase_score.h"

#include <algorithm>
#include <cmath>

namespace cgphase::workloads {

namespace {

template <class Key>
double entropy(const std::map<Key, std::size_t>& counts, double total) {
  double sum = 0;
  for (const auto& [key, count] : counts) {
    const double share = static_cast<double>(count) / total;
    sum -= share * std::log(share);
  }
  return sum;
}

// Number of pairs of samples that are in the same class.
template <class Key>
double pairs(const std::map<Key, std::size_t>& counts) {
  double sum = 0;
  for (const auto& [key, count] : counts) {
    const auto size = static_cast<double>(count);
    sum += size * (size - 1) / 2;
  }
  return sum;
}

}  // namespace

void PhaseScore::add(int phase, const std::string& truth) {
  ++count_;
  ++table_[{phase, truth}];
  ++phases_[phase];
  ++truths_[truth];
}

double PhaseScore::purity() const {
  if (count_ == 0) return 0;
  std::map<int, std::size_t> commonest;
  for (const auto& [key, count] : table_)
    commonest[key.first] = std::max(commonest[key.first], count);
  std::size_t sum = 0;
  for (const auto& [phase, count] : commonest) sum += count;
  return static_cast<double>(sum) / static_cast<double>(count_);
}

double PhaseScore::information() const {
  const auto total = static_cast<double>(count_);
  double information = 0;
  for (const auto& [key, count] : table_) {
    const auto both = static_cast<double>(count);
    const auto alone =
        static_cast<double>(phases_.at(key.first)) * static_cast<double>(truths_.at(key.second));
    information += both * std::log(both * total / alone);
  }
  return information;
}

double PhaseScore::mean_entropy() const {
  const auto total = static_cast<double>(count_);
  return total * (entropy(phases_, total) + entropy(truths_, total)) / 2;
}

double PhaseScore::nmi() const {
  const double mean = mean_entropy();
  return mean > 0 ? information() / mean : 0;
}

double PhaseScore::ari() const {
  const double together = pairs(table_), in_phases = pairs(phases_), in_truths = pairs(truths_);
  const auto total = static_cast<double>(count_);
  const double all = total * (total - 1) / 2;
  if (all <= 0) return 0;
  const double expected = in_phases * in_truths / all;
  const double best = (in_phases + in_truths) / 2;
  return best > expected ? (together - expected) / (best - expected) : 0;
}

}  // namespace cgphase::workloads
