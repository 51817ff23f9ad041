#include "tests/simulator/descriptors.h"

#include "tests/simulator/system_calls.h"

namespace cgphase::simulator {

// Its allocations are not the tested code's: a death tried in one would find the mutex locked.
int Descriptors::add(const OpenFile& file) {
  const SimulatorScope ours;
  const std::lock_guard lock(mutex_);
  int index = static_cast<int>(files_.size());
  if (free_.empty()) {
    files_.emplace_back();
  } else {
    index = free_.back();
    free_.pop_back();
  }
  files_[static_cast<std::size_t>(index)] = file;
  files_[static_cast<std::size_t>(index)].open = true;
  return kFirstDescriptor + index;
}

std::optional<OpenFile> Descriptors::find(int fd) {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::size_t>(fd - kFirstDescriptor);
  if (index >= files_.size() || !files_[index].open) return std::nullopt;
  return files_[index];
}

void Descriptors::advance(int fd, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  files_[static_cast<std::size_t>(fd - kFirstDescriptor)].offset += bytes;
}

bool Descriptors::close(int fd) {
  const SimulatorScope ours;
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::size_t>(fd - kFirstDescriptor);
  if (index >= files_.size() || !files_[index].open) return false;
  files_[index].open = false;
  free_.push_back(static_cast<int>(index));
  return true;
}

std::size_t Descriptors::count() {
  const std::lock_guard lock(mutex_);
  return files_.size() - free_.size();
}

}  // namespace cgphase::simulator
