#include "policy/phase/phase_peaks.h"

#include <doctest/doctest.h>

#include "policy/phase/demand_bound.h"
#include "policy/phase/phase_record.h"

using namespace cgphase;

namespace {

constexpr double kSoonSeconds = 5;
constexpr int kAhead = DemandBound::kAheadSamples;

void feed(PhasePeakRecorder& recorder, int slot, double demand, int samples, bool first = false) {
  for (int i = 0; i < samples; ++i)
    recorder.add(slot, first && i == 0 ? 0 : 1, {demand, demand * 10});
}

// Phase 0 for 40 samples at 1, then phase 1 for 20 at 5, repeatedly.
PhasePeakRecorder cycled(int rounds) {
  PhasePeakRecorder recorder(kSoonSeconds, kAhead);
  for (int round = 0; round < rounds; ++round) {
    feed(recorder, 0, 1, 40, round == 0);
    feed(recorder, 1, 5, 20);
  }
  return recorder;
}

PhaseMoment any(int slot, int age) { return {slot, PhaseMoment::kAny, age}; }

}  // namespace

TEST_CASE("the age of a visit doubles from bin to bin") {
  CHECK(PhaseMoment::age_of(0) == 0);
  CHECK(PhaseMoment::age_of(3) == 0);
  CHECK(PhaseMoment::age_of(4) == 1);
  CHECK(PhaseMoment::age_of(7) == 1);
  CHECK(PhaseMoment::age_of(8) == 2);
  CHECK(PhaseMoment::age_of(16) == 3);
  CHECK(PhaseMoment::age_of(1'000'000) == 11);
}

TEST_CASE("a moment is recorded only after the samples that follow it") {
  PhasePeakRecorder recorder(kSoonSeconds, kAhead);
  feed(recorder, 0, 1, kAhead, true);
  CHECK(recorder.peaks().empty());
  feed(recorder, 0, 1, 1);
  CHECK(recorder.peaks().at(any(0, 0)).moments == 1);
}

TEST_CASE("at the end of a run the open moments are recorded") {
  PhasePeakRecorder recorder(kSoonSeconds, kAhead);
  feed(recorder, 0, 1, 3, true);
  CHECK(recorder.peaks().empty());
  CHECK(recorder.of_whole_run().at(any(0, 0)).moments == 2);
}

TEST_CASE("early in a phase only that phase follows, late in it the next one does") {
  const PhasePeakRecorder recorder = cycled(3);
  CHECK(recorder.peaks().at(any(0, 2)).cpu_cores == 1);  // 8 to 15 samples of 40
  CHECK(recorder.peaks().at(any(0, 4)).cpu_cores == 5);  // 32 and later
  CHECK(recorder.peaks().at(any(0, 4)).memory_bytes == 50);
}

TEST_CASE("moments with different previous phases are distinct") {
  PhasePeakRecorder recorder(kSoonSeconds, kAhead);
  for (int round = 0; round < 3; ++round) {
    feed(recorder, 2, 1, 20, round == 0);
    feed(recorder, 0, 1, 4);  // after 2: 5 follows
    feed(recorder, 1, 5, 20);
    feed(recorder, 0, 1, 4);  // after 1: 1 follows
  }
  feed(recorder, 2, 1, 20);
  CHECK(recorder.peaks().at({0, 2, 0}).cpu_cores == 5);
  CHECK(recorder.peaks().at({0, 1, 0}).cpu_cores == 1);
  CHECK(recorder.peaks().at(any(0, 0)).cpu_cores == 5);
}

TEST_CASE("a CPU jump soon after a moment is counted with its size") {
  const PhasePeakRecorder recorder = cycled(3);
  const PeakAhead& late = recorder.peaks().at(any(0, 4));  // samples 32 to 39 of 40
  CHECK(late.moments == 24);
  CHECK(late.visits == 3);
  CHECK(late.cpu_jumps == 15);  // of the last five samples, three times
  CHECK(late.cpu_jump_cores == 75);
  CHECK(recorder.peaks().at(any(0, 2)).cpu_jumps == 0);
}

TEST_CASE("if samples are far apart, the next one counts as soon") {
  PhasePeakRecorder recorder(kSoonSeconds, kAhead);
  recorder.add(0, 0, {1.0, 1.0});
  for (int i = 0; i < kAhead; ++i) recorder.add(0, 60, {i == 0 ? 9.0 : 1.0, 1.0});
  CHECK(recorder.peaks().at(any(0, 0)).cpu_jumps == 1);
}

TEST_CASE("nothing follows across a gap") {
  PhasePeakRecorder recorder(kSoonSeconds, kAhead);
  feed(recorder, 0, 1, 5, true);
  feed(recorder, 1, 9, 30, true);
  CHECK_FALSE(recorder.peaks().contains(any(0, 0)));
  CHECK(recorder.now().previous == kUnknownSlot);
}

TEST_CASE("peaks of runs are merged, and a peak that is not reached again decays") {
  PhasePeaks peaks = cycled(2).peaks();
  PhasePeaks low;
  low[any(0, 4)] = {10, 1, 1, 10, 0, 0};
  merge_peaks(peaks, low);
  CHECK(peaks.at(any(0, 4)).cpu_cores == doctest::Approx(1 + 0.8 * 4));
  for (int i = 0; i < 60; ++i) merge_peaks(peaks, low);
  CHECK(peaks.at(any(0, 4)).cpu_cores == doctest::Approx(1).epsilon(0.01));
}

TEST_CASE("memory jumps are counted") {
  const PhasePeakRecorder recorder = cycled(3);
  CHECK(recorder.peaks().at(any(0, 2)).memory_jumps == 0);
  // Within kAhead samples, from all eight of each visit.
  CHECK(recorder.peaks().at(any(0, 4)).memory_jumps == 24);
}

TEST_CASE("peaks out of bounds are refused") {
  const PeakAhead peak{10, 1, 1, 10, 0, 0, 0};
  const auto refused = [](const PhaseMoment& moment, const PeakAhead& of) {
    return !check_peaks({{moment, of}}).has_value();
  };
  CHECK_FALSE(refused({0, 0, 0}, peak));
  CHECK_FALSE(refused({kPhaseSlots - 1, PhaseMoment::kAny, 11}, peak));
  CHECK(refused({-1, 0, 0}, peak));
  CHECK(refused({kPhaseSlots, 0, 0}, peak));
  CHECK(refused({0, -2, 0}, peak));
  CHECK(refused({0, kPhaseSlots, 0}, peak));
  CHECK(refused({0, 0, -1}, peak));
  CHECK(refused({0, 0, 12}, peak));
  for (double PeakAhead::* number :
       {&PeakAhead::moments, &PeakAhead::visits, &PeakAhead::cpu_cores, &PeakAhead::memory_bytes,
        &PeakAhead::cpu_jumps, &PeakAhead::cpu_jump_cores, &PeakAhead::memory_jumps}) {
    for (const double value : {-1.0, 1e300}) {
      PeakAhead bad = peak;
      bad.*number = value;
      CHECK(refused({0, 0, 0}, bad));
    }
  }
}

TEST_CASE("a run with very many different moments stays small") {
  PhasePeakRecorder recorder(kSoonSeconds, kAhead);
  recorder.add(0, 0, {1.0, 1.0});
  for (int i = 1; i < 50'000; ++i) recorder.add((i * 7 + i / 31) % 33, 1, {1.0, 1.0});
  CHECK(recorder.peaks().size() <= 512 + 33 * 12);
  CHECK(check_peaks(recorder.peaks()).has_value());
}
