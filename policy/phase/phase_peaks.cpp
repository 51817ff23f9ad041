#include "policy/phase/phase_peaks.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/check.h"
#include "policy/phase/demand_bound.h"
#include "policy/phase/phase_record.h"

namespace cgphase {
namespace {

constexpr int kAges = 12;               // the last one: 4 x 2^10 samples and longer
constexpr std::size_t kMaxMoments = 512;  // above this, moments are recorded without the previous
                                          // phase
constexpr std::size_t kGrowMoments = 8;
constexpr std::size_t kCoarseMoments = std::size_t{kPhaseSlots} * kAges;
// A peak that no run reaches again moves halfway towards the newer peaks within three runs.
constexpr double kPeakDecay = 0.8;
constexpr double kUnevenTime = 1.05;  // tolerance for uneven sample times
constexpr int kMostSamples = 120;  // a moment waits for at most this many samples
constexpr double kJump = 1.5, kMemoryJump = 1.1;  // clearly more
constexpr double kMaxMoment = 1e12, kMaxNumber = 1e18;

std::unexpected<Error> refuse(const char* why) {
  return failure(ErrorKind::invalid, std::string("phase peaks: ") + why);
}

bool is_count(double value) { return value >= 0 && value <= kMaxMoment; }
bool is_amount(double value) { return value >= 0 && value <= kMaxNumber; }

}  // namespace

int PhaseMoment::age_of(int samples) {
  int age = 0;
  while (samples >= 4 && age < kAges - 1) {
    samples /= 2;
    age += 1;
  }
  return age;
}

RunMoments::Key RunMoments::key_of(const PhaseMoment& moment) {
  return static_cast<Key>(moment.slot) << 16 | static_cast<Key>(moment.previous + 1) << 8 |
         static_cast<Key>(moment.age);
}

PhaseMoment RunMoments::moment_of(Key key) {
  return {static_cast<int>(key >> 16), static_cast<int>(key >> 8 & 0xFF) - 1,
          static_cast<int>(key & 0xFF)};
}

PeakAhead RunMoments::peak_of(const Entry& entry) {
  return {static_cast<double>(entry.moments), static_cast<double>(entry.visits), entry.cpu_cores,
          entry.memory_bytes, static_cast<double>(entry.cpu_jumps), entry.cpu_jump_cores,
          static_cast<double>(entry.memory_jumps)};
}

std::vector<RunMoments::Entry>::const_iterator RunMoments::place_of(Key key) const {
  return std::ranges::lower_bound(entries_, key, {}, &Entry::key);
}

std::optional<PeakAhead> RunMoments::find(const PhaseMoment& moment) const {
  const Key key = key_of(moment);
  const auto place = place_of(key);
  if (place == entries_.end() || place->key != key) return std::nullopt;
  return peak_of(*place);
}

PeakAhead RunMoments::at(const PhaseMoment& moment) const {
  const auto found = find(moment);
  CHECK_INVARIANT(found);
  return *found;
}

RunMoments::operator PhasePeaks() const {
  PhasePeaks peaks;
  for (const Entry& entry : entries_)
    peaks.emplace_hint(peaks.end(), moment_of(entry.key), peak_of(entry));
  return peaks;
}

RunMoments::Entry* RunMoments::entry_of(const PhaseMoment& moment, std::size_t most) {
  const Key key = key_of(moment);
  const auto at = place_of(key) - entries_.cbegin();
  if (at < std::ssize(entries_) && entries_[static_cast<std::size_t>(at)].key == key)
    return &entries_[static_cast<std::size_t>(at)];
  if (entries_.size() >= most) return nullptr;
  if (entries_.size() == entries_.capacity()) entries_.reserve(entries_.size() + kGrowMoments);
  return &*entries_.insert(entries_.begin() + at, Entry{.key = key});
}

PhasePeakRecorder::Open::Open(const PhaseMoment& at, bool begins, const Demand& demand,
                              double interval)
    : interval_seconds(interval), cpu_cores(demand.cpu_cores.value_or(0)),
      memory_bytes(demand.memory_bytes.value_or(0)), slot(static_cast<std::int8_t>(at.slot)),
      previous(static_cast<std::int8_t>(at.previous)), age(static_cast<std::int8_t>(at.age)),
      first(begins), has_cores(demand.cpu_cores.has_value()),
      has_bytes(demand.memory_bytes.has_value()) {}

// The highest CPU demand soon after the first sample of open_.
double PhasePeakRecorder::soon_cores() const {
  const double soon = kUnevenTime * soon_seconds_;
  double highest = 0, seconds = 0;
  for (std::size_t i = 1; i < open_.size(); ++i) {
    seconds += open_[i].interval_seconds;
    if (i > 1 && seconds > soon) break;
    highest = std::max(highest, open_[i].cpu_cores);
  }
  return highest;
}

void PhasePeakRecorder::close_front() {
  const Open open = open_.front();
  peak_bytes_.drop_until(number_ - static_cast<double>(open_.size() - 1));
  const double cores = soon_cores(), bytes = peak_bytes_.value().value_or(0);
  const auto take_open = [&](RunMoments::Entry& peak) {
    peak.moments += 1;
    if (open.first) peak.visits += 1;
    peak.cpu_cores = std::max(peak.cpu_cores, cores);
    peak.memory_bytes = std::max(peak.memory_bytes, bytes);
    if (open.has_bytes && bytes > kMemoryJump * open.memory_bytes) peak.memory_jumps += 1;
    if (!open.has_cores || cores <= kJump * open.cpu_cores) return;
    peak.cpu_jumps += 1;
    peak.cpu_jump_cores += cores;
  };
  const PhaseMoment coarse{open.slot, PhaseMoment::kAny, open.age};
  take_open(*peaks_.entry_of(coarse, kMaxMoments + kCoarseMoments));
  if (auto* close = peaks_.entry_of(open.moment(), kMaxMoments)) take_open(*close);
  open_.pop_front();
  if (!open_.empty()) front_seconds_ += open_.front().interval_seconds;
}

bool PhasePeakRecorder::front_over() const {
  const auto followed = static_cast<int>(open_.size()) - 1;
  if (followed < DemandBound::kAheadSamples) return false;
  return seconds_ - front_seconds_ >= binding_seconds_ || followed >= kMostSamples;
}

void PhasePeakRecorder::forget_open() {
  open_.clear();
  peak_bytes_ = {};
  seconds_ = front_seconds_ = number_ = 0;
}

void PhasePeakRecorder::add(int slot, double interval_seconds, const Demand& demand) {
  const PhaseMoment before = now_;
  if (!(interval_seconds > 0)) {
    forget_open();
    now_ = {slot, kUnknownSlot, 0};
    visit_samples_ = 0;
  } else if (slot != now_.slot) {
    now_ = {slot, now_.slot, 0};
    visit_samples_ = 0;
  } else {
    visit_samples_ = std::min(visit_samples_ + 1, 1'000'000);
    now_.age = PhaseMoment::age_of(visit_samples_);
  }
  const bool first = visit_samples_ == 0 || now_ != before;
  if (!open_.empty()) seconds_ += interval_seconds;
  open_.emplace_back(now_, first, demand, interval_seconds);
  number_ += 1;
  peak_bytes_.add(number_, demand.memory_bytes.value_or(0));
  while (front_over()) close_front();
}

PhasePeaks PhasePeakRecorder::of_whole_run() const {
  PhasePeakRecorder ended = *this;
  while (ended.open_.size() > 1) ended.close_front();  // nothing followed the last one
  return ended.peaks_;
}

void add_peak(PeakAhead& to, const PeakAhead& other) {
  to.moments = std::min(to.moments + other.moments, kMaxMoment);
  to.visits = std::min(to.visits + other.visits, kMaxMoment);
  to.cpu_jumps = std::min(to.cpu_jumps + other.cpu_jumps, kMaxMoment);
  to.cpu_jump_cores = std::min(to.cpu_jump_cores + other.cpu_jump_cores, kMaxNumber);
  to.memory_jumps = std::min(to.memory_jumps + other.memory_jumps, kMaxMoment);
  to.cpu_cores = std::max(to.cpu_cores, other.cpu_cores);
  to.memory_bytes = std::max(to.memory_bytes, other.memory_bytes);
}

void merge_peaks(PhasePeaks& earlier, const PhasePeaks& run) {
  const auto merged = [](double before, double now) {
    return before <= now || now <= 0 ? std::max(before, now) : now + kPeakDecay * (before - now);
  };
  for (const auto& [moment, peak] : run) {
    const auto found = earlier.find(moment);
    if (found == earlier.end()) {
      if (earlier.size() < kMaxMoments || moment.previous == PhaseMoment::kAny)
        earlier.emplace(moment, peak);
      continue;
    }
    PeakAhead& to = found->second;
    const double cores = merged(to.cpu_cores, peak.cpu_cores);
    const double bytes = merged(to.memory_bytes, peak.memory_bytes);
    add_peak(to, peak);
    to.cpu_cores = cores;
    to.memory_bytes = bytes;
  }
}

Status check_peaks(const PhasePeaks& peaks) {
  if (peaks.size() > kMaxMoments + kCoarseMoments) return refuse("too many moments");
  for (const auto& [moment, peak] : peaks) {
    const auto& [slot, previous, age] = moment;
    if (slot < 0 || slot >= kPhaseSlots || previous < PhaseMoment::kAny ||
        previous >= kPhaseSlots || age < 0 || age >= kAges)
      return refuse("a moment is out of range");
    if (!is_count(peak.moments) || !is_count(peak.visits) || !is_count(peak.cpu_jumps) ||
        !is_count(peak.memory_jumps) || !is_amount(peak.cpu_cores) ||
        !is_amount(peak.memory_bytes) || !is_amount(peak.cpu_jump_cores))
      return refuse("a number is out of range");
  }
  return {};
}

}  // namespace cgphase
