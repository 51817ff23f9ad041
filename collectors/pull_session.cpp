#include "collectors/pull_session.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace cgphase {
namespace {

constexpr std::size_t kLeastRoom = 64;
// Interval at which the calibration is verified.
constexpr std::chrono::seconds kCalibrationPeriod{60};

}  // namespace

bool PullSession::make_room(std::size_t cgroups) {
  if (!open_ || cgroups <= room_) return false;
  room_ = std::bit_ceil(std::max(cgroups, kLeastRoom));
  pull_.reset();  // frees its kernel memory first
  auto opened = open_(room_);
  if (!opened) {
    refusal_ = opened.error().text;
    open_ = nullptr;  // a retry would fail again
    return false;
  }
  pull_ = std::move(*opened);
  pull_->choose(lines_.choice());
  return true;
}

std::optional<std::uint32_t> PullSession::add(std::uint64_t inode) {
  return pull_ ? pull_->add(inode) : std::nullopt;
}

void PullSession::remove(std::uint64_t inode, std::uint32_t place) {
  if (pull_) pull_->remove(inode, place);
  if (mismatch_ == inode) mismatch_ = 0;
}

bool PullSession::needs_calibration(MonotonicTime now) const {
  if (!pull_ || lines_.unsupported()) return false;
  return !lines_.usable() || mismatch_ != 0 || !last_calibration_ ||
         now - *last_calibration_ >= kCalibrationPeriod;
}

// The choice changes after the walk, whose records use the previous choice.
void PullSession::walk(MonotonicTime now, const CalibrationTarget& target) {
  if (!pull_) return;
  const auto before = target.read ? target.read() : std::nullopt;
  chosen_ = pull_->walk(target.inode);
  if (!chosen_ || !before) return;
  const auto after = target.read();
  if (!after) return;
  last_calibration_ = now;
  mismatch_ = 0;
  if (!lines_.record(*before, *after, pull_->raw())) return;
  pull_->choose(lines_.choice());
  chosen_ = false;
}

Pulled PullSession::record(std::uint64_t inode, std::uint32_t place) {
  Pulled pulled{.record = pull_ ? pull_->record(place) : nullptr};
  if (pulled.record == nullptr || !chosen_) return pulled;
  pulled.memory = lines_.decode(*pulled.record);
  if (lines_.usable() && (pulled.record->parts & PULL_MISMATCH) != 0) mismatch_ = inode;
  return pulled;
}

Source PullSession::source() const {
  if (pull_)
    return {"sampling", true,
            std::string(pull_->name()) +
                (lines_.unsupported() ? ", and memory.stat from files" : "")};
  if (refusal_.empty()) return {"sampling", true, "files"};
  return {"sampling", true,
          "files, because no BPF program can walk over cgroups here: " + refusal_};
}

}  // namespace cgphase
