// What the tests of storage/ have in common: a scratch directory and made-up samples.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "storage/store.h"
#include "tests/storage/busy_point.h"

namespace cgphase::test {

inline constexpr CgroupId kOne{42, 1};

// A directory of its own, gone with everything in it at the end of the test.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  std::string path(const std::string& name) const { return directory_ + "/" + name; }

 private:
  std::string directory_;
};

// Every field present, every value different; `seed` moves all of them.
Sample full_sample(CgroupId id, std::uint64_t seed);
// Any field may be absent, any value may be anything.
Sample random_sample(CgroupId id, std::mt19937_64& random);
Phase random_phase(std::mt19937_64& random);

bool same(const Sample& a, const Sample& b);
bool same(const Phase& a, const Phase& b);
bool same(const HistoryPoint& a, const HistoryPoint& b);

JournalDecision decision_of(CgroupId id, std::uint64_t decision_id, WallTime time);
JournalOutcome outcome_of(CgroupId id, std::uint64_t decision_id, WallTime time);

// Of one container of this boot, or of all; newest first, not later than `until`, at most `limit`.
Result<std::vector<JournalDecision>> read_decisions(Store& store, std::optional<CgroupId> container,
                                                    WallTime until, int limit);
Result<std::vector<JournalOutcome>> read_outcomes(Store& store, std::optional<CgroupId> container,
                                                  WallTime until, int limit);

// Samples of kOne with a clock that was set back by half a minute: full blocks of the seconds 940
// to 999, 1000 to 1059 and 1030.5 to 1089.5, then samples to 1119.5. 210 points.
void fill_over_step_back(Store& store);

// The times in all pages of 120 points, asked for as cli/host_history.cpp does: each from the last
// time on that the one before had.
using PageFrom = std::function<Result<std::vector<HistoryPoint>>(WallTime from)>;
std::vector<WallTime> times_of_pages(const PageFrom& page);

// A store that the test expects to open.
Store open_store(const std::string& path, Bytes cap = Bytes{64 * kMiB});

}  // namespace cgphase::test
