// Scores how well recognised phases agree with the true ones. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

namespace cgphase::workloads {

// Counts of (recognised phase, true phase) over samples.
class PhaseScore {
 public:
  void add(int phase, const std::string& truth);

  std::size_t count() const { return count_; }
  // Share of samples whose true phase is the most frequent one of their recognised phase (Manning,
  // Raghavan, Schuetze, "Introduction to Information Retrieval", section 16.3). 0 without samples.
  double purity() const;
  // Mutual information over the mean of the two entropies (same section). 1 if the partitions are
  // the same; 0 if they are independent or both have one class.
  double nmi() const;
  // Adjusted Rand index (Hubert and Arabie, "Comparing partitions", Journal of Classification 2,
  // 1985). 1 if the partitions are the same, 0 on average for random ones of the same sizes. Also 0
  // if both are one class or only single samples, where nothing can be compared.
  double ari() const;
  // Sums over samples, in nats: mutual information, and the mean of the two entropies. nmi() is
  // their quotient. Sums of several scores give the combined value within each of them.
  double information() const;
  double mean_entropy() const;
  std::size_t phase_count() const { return phases_.size(); }
  std::size_t truth_count() const { return truths_.size(); }
  const std::map<std::pair<int, std::string>, std::size_t>& table() const { return table_; }

 private:
  std::size_t count_ = 0;
  std::map<std::pair<int, std::string>, std::size_t> table_;
  std::map<int, std::size_t> phases_;
  std::map<std::string, std::size_t> truths_;
};

}  // namespace cgphase::workloads
