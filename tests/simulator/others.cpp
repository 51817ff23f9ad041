// Actions of others: administrators, engines, systemd, other programs, and chance.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "tests/simulator/lanes.h"
#include "tests/simulator/world.h"

namespace cgphase::simulator {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kThawSilence = 5 * kSecondNs;  // after which the companion must have thawed

}  // namespace

World::Box* World::some_box() {
  Box& box = boxes_[random_.below(boxes_.size())];
  return box.inode == 0 ? nullptr : &box;
}

World::Box* World::box_of(std::uint64_t inode) {
  const auto found = std::find_if(boxes_.begin(), boxes_.end(),
                                  [&](const Box& one) { return one.inode == inode; });
  return found == boxes_.end() ? nullptr : &*found;
}

void World::something_happens() {
  Box* const box = some_box();
  switch (random_.below(14)) {
    case 0:
    case 1:
    case 2:
      if (box != nullptr) others_write(*box);
      return;
    case 3: return reload();
    case 4:
      if (box != nullptr) remove_box(*box);
      return;
    case 5:  // the processes end; new ones start later
      if (box != nullptr) kernel_.end(box->pid);
      return;
    case 6:
      // Nobody can see that somebody else freezes what is frozen already (docs/safety.md).
      if (box != nullptr && !laws_.leased(box->inode, Knob::cgroup_freeze))
        (void)write_as_other(*box, Knob::cgroup_freeze, random_.one_in(3) ? "1" : "0");
      return;
    case 7: return change_mode();
    case 8: return toggle_kill_switch();
    case 9:
      lost_ticks_ = static_cast<int>(random_.between(1, 8));
      return;
    case 10: return hang(static_cast<std::int64_t>(random_.between(1, 8)) * kSecondNs);
    case 11: return kill_and_restart();
    case 12: return stop_and_start();
    default:
      // Somebody sets the clock, or the machine was suspended.
      clock_.wall_offset += std::chrono::seconds(random_.below(7200)) - std::chrono::hours(1);
      if (random_.one_in(2))
        set_time_ns(time_ns() + static_cast<std::int64_t>(random_.below(120)) * kSecondNs);
  }
}

// During a system call of the daemon, on the calling thread.
void World::something_happens_in_the_middle(const Call& call) {
  in_the_middle_ = true;
  ++nested_;
  Box* box = box_of(call.inode);
  // This is the last moment at which the writer can still notice it.
  if (box != nullptr && call.lane == Lane::lowering && call.kind == Call::Kind::read &&
      call.file == "memory.current") {
    jump(*box);
    in_the_middle_ = false;
    return;
  }
  if (box == nullptr || random_.one_in(4)) box = some_box();
  switch (random_.below(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      if (!in_fast_path_) poll_fast_path();
      break;
    case 6:
      if (box != nullptr && call.inode == box->inode) remove_box(*box);
      break;
    case 7:
      if (box != nullptr) kernel_.end(box->pid);
      break;
    case 8:
    case 9:
    case 10:
    case 11:
      if (box != nullptr) others_write(*box);
      break;
    case 12:
    case 13:  // so that the write must reclaim
      if (box != nullptr) fill_cache(*box);
      break;
    default:
      // Not between the last check and the write itself, which no check can exclude.
      if (scenario_.hangs && call.kind == Call::Kind::read && call.lane != Lane::companion)
        hang(static_cast<std::int64_t>(random_.between(1, 8)) * kSecondNs);
  }
  in_the_middle_ = false;
}

void World::others_write(Box& box) {
  switch (random_.below(4)) {
    case 0: return write_quota(box);
    case 1: return write_burst(box);
    case 2:
      (void)write_as_other(box, Knob::cpu_weight, std::to_string(random_.between(1, 10'000)));
      return;
    default: return write_memory(box);
  }
}

bool World::write_as_other(Box& box, Knob knob, const std::string& text) {
  if (kernel_.write(box.inode, file_name(knob), text) != 0) return false;
  laws_.others_wrote(box.inode, knob);
  leases_at_last_change_ = lease_bytes();
  mix(box.inode);
  if (scenario_.trace)
    std::fprintf(stderr, "%.2f others    #%llu %s '%s'\n", static_cast<double>(time_ns()) / 1e9,
                 static_cast<unsigned long long>(box.inode), file_name(knob), text.c_str());
  return true;
}

// Never below the memory in use, because then the owner itself would cause the kill.
void World::write_memory(Box& box) {
  const double need = static_cast<double>(kernel_.need_bytes(box.inode));
  const double least = std::max(need * 1.4, 64.0 * (1 << 20));
  const auto bytes = static_cast<std::uint64_t>(least * (1 + 3 * random_.share())) / 4096 * 4096;
  std::string text = std::to_string(bytes);
  const auto& intents = laws_.intents(box.inode, Knob::memory_max);
  if (random_.one_in(4)) text = std::string(intents.front().view());  // the same value again
  if (random_.one_in(12)) text = "max";
  const Knob knob = random_.one_in(4) ? Knob::memory_high : Knob::memory_max;
  (void)write_as_other(box, knob, text);
}

// The foreign burst must fit. A restore would cut it to the quota, and then it would be nobody's
// choice.
void World::write_quota(Box& box) {
  std::uint64_t least = 20'000;
  for (const KnobText& text : laws_.intents(box.inode, Knob::cpu_max_burst)) {
    Limits limits;
    if (parse_knob(Knob::cpu_max_burst, text.view(), limits))
      least = std::max(least, limits.cpu_max_burst->value);
  }
  const std::uint64_t quota = random_.between(least, 1'600'000);
  const std::string text = random_.one_in(12) ? "max" : std::to_string(quota);
  (void)write_as_other(box, Knob::cpu_max, text + " 100000");
}

void World::write_burst(Box& box) {
  std::uint64_t most = 1'600'000;
  for (const KnobText& text : laws_.intents(box.inode, Knob::cpu_max)) {
    Limits limits;
    if (parse_knob(Knob::cpu_max, text.view(), limits) && limits.cpu_max->quota)
      most = std::min(most, limits.cpu_max->quota->value);
  }
  (void)write_as_other(box, Knob::cpu_max_burst, std::to_string(random_.below(most + 1)));
}

// systemd reports that it reloaded the units, and writes their values into every scope.
void World::reload() {
  const std::string mark = surroundings_.engine_root + "/run/systemd/systemd-units-load";
  std::filesystem::create_directories(std::filesystem::path(mark).parent_path());
  std::ofstream(mark) << time_ns();
  std::filesystem::last_write_time(
      mark, std::filesystem::file_time_type(std::chrono::nanoseconds(time_ns())));
  for (Box& box : boxes_) {
    if (box.inode == 0) continue;
    std::vector<Knob> knobs = {Knob::memory_max, Knob::memory_high, Knob::cpu_max};
    if (box.weighed) knobs.push_back(Knob::cpu_weight);
    for (const Knob knob : knobs) {
      const auto& intents = laws_.intents(box.inode, knob);
      (void)write_as_other(box, knob, std::string(intents[random_.below(intents.size())].view()));
    }
  }
}

void World::remove_box(Box& box) {
  kernel_.end(box.pid);
  kernel_.end(box.inner_pid);
  if (box.inner != 0 && kernel_.remove(box.path + "/inner") == 0) box.inner = 0;
  if (kernel_.remove(box.path) != 0) return;
  laws_.vanished(box.inode);
  mix(box.inode);
  box.inode = 0;
  box.pid = 0;
  box.back_at_ns = time_ns() + static_cast<std::int64_t>(random_.below(10)) * kSecondNs;
  // Sometimes the name is reused at once.
  if (random_.one_in(3)) make_box(box);
}

void World::change_mode() {
  if (in_the_middle_ || !daemon_) return;
  Box* const box = some_box();
  const CgroupId id{kSimulatedDevice, box == nullptr ? 0 : box->inode};
  if (daemon_->agent().core().find(id) != nullptr && random_.one_in(2)) {
    const bool paused = !box->paused;
    if (!paused) box->paused = false;
    (void)daemon_->agent().set_paused(id, paused);
    box->paused = paused;
    return;
  }
  const Mode mode = random_.one_in(2) ? Mode::enforce
                    : random_.one_in(2) ? Mode::advise
                                        : Mode::observe;
  if (mode == Mode::enforce) mode_ = mode;
  (void)daemon_->agent().set_mode(mode);
  mode_ = mode;
}

void World::toggle_kill_switch() {
  const std::string path = surroundings_.config.kill_switch;
  kill_switch_ = !kill_switch_;
  if (kill_switch_)
    std::ofstream(path) << "";
  else
    ::unlink(path.c_str());
  if (!kill_switch_) kill_switch_seen_ = false;
}

// The daemon stops, as after SIGSTOP or on an overloaded host. Its companion does not.
void World::hang(std::int64_t ns) {
  ++hangs_;
  const bool before = std::exchange(in_the_middle_, true);
  pass(ns, Runs::workload_alone);
  laws_.time_passed_in(current_lane());
  for (const Box& box : boxes_)
    if (ns >= kThawSilence && box.inode != 0 && laws_.frozen(box.inode))
      laws_.violate("still frozen while the daemon hangs: " + box.path);
  in_the_middle_ = before;
}

void World::kill_and_restart() {
  if (!daemon_ || lanes().parked()) return;
  daemon_.reset();
  for (int attempt = 0; attempt < 50 && !companion_->after_death(); ++attempt)
    pass(kSecondNs / 20, Runs::workload_alone);
  laws_.judge_restored(kernel_, "after the daemon's death");
  companion_.reset();
  start_daemon();
}

void World::stop_and_start() {
  if (!daemon_) return;
  resume_parked(true);
  const auto report = daemon_->agent().stop();
  if (report.failures.empty()) laws_.judge_restored(kernel_, "after a clean stop");
  resume_parked(true);
  kill_and_restart();
}

}  // namespace cgphase::simulator
