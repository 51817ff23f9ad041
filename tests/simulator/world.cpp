#include "tests/simulator/world.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/check.h"
#include "tests/simulator/lanes.h"

namespace cgphase::simulator {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kSecond = 1000 * kMillisecond;
constexpr std::int64_t kSlice = 50 * kMillisecond;
constexpr std::int64_t kBeat = 500 * kMillisecond;
constexpr int kCores = 16;
// Maximum number of ticks, at one per second, until an opened GPU is reported and the quota is
// restored.
constexpr int kGpuTicks = 62, kGpuRestoreTicks = 8;
constexpr const char* kSlicePath = "/system.slice";
constexpr const char* kPodPath = "/kubepods.slice";
constexpr std::string_view kPlainPath = "/docker";  // no units of systemd: Docker's cgroupfs driver

// Shorter waits, so that more happens. The laws are the same.
SafetyConfig quick_safety() {
  using std::chrono::seconds;
  SafetyConfig config;
  config.enough_samples = 8;
  config.cool_down = seconds(20);
  config.quarantine = seconds(120);
  config.trial = seconds(4);
  config.cpu_lower_window = config.memory_lower_window = seconds(5);
  config.host_lower_window = seconds(5);
  config.start_up = seconds(2);
  config.settle = seconds(2);
  config.dwell = seconds(4);
  config.stand_down = std::chrono::minutes(0);
  config.reapply_pause = seconds(3);
  config.reapplies_per_hour = 100;
  config.rival_window = config.rival_pause = seconds(60);
  return config;
}

std::string container_path(std::string_view parent, int number) {
  std::string id(64, '0');
  id.front() = static_cast<char>('a' + number);  // also in the short name
  if (parent == kPlainPath) return std::string(parent) + "/" + id;
  return std::string(parent) + "/docker-" + id + ".scope";
}

std::string make_directory() {
  // In memory if possible, as the leases themselves.
  std::string name = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm/cgphase-simulator-XXXXXX"
                                                      : "/tmp/cgphase-simulator-XXXXXX";
  CHECK_INVARIANT(::mkdtemp(name.data()) != nullptr);
  return name;
}

}  // namespace

World::World(const Scenario& scenario)
    : scenario_(scenario),
      random_(scenario.seed),
      disk_random_(scenario.seed + 2),
      directory_(make_directory()),
      kernel_({.cores = kCores, .pressure = !random_.one_in(4)}),
      laws_(kernel_, [this](std::uint64_t inode) { return facts_of(inode); }),
      faults_(scenario.faults, scenario.seed + 1) {
  set_time_ns(1000 * kSecond);
  set_up_machine();
  install(&kernel_, this);
  if (scenario_.allocation_one_in != 0) on_allocation([this] { allocated(); });
  start_daemon();
}

World::~World() {
  quiet_ = true;
  on_allocation(nullptr);
  if (daemon_) resume_parked(true);
  daemon_.reset();
  Disk::of_process().set(Disk::State::works);
  uninstall();
  std::filesystem::remove_all(directory_);
}

void World::set_up_machine() {
  Config& config = surroundings_.config;
  config.mode = Mode::enforce;
  config.policy = random_.one_in(3) ? "phase" : "hold";
  config.cgroup_root = kSimulatedRoot;
  config.proc_root = directory_ + "/proc";
  config.runtime_dir = directory_ + "/run";
  config.kill_switch = directory_ + "/disabled";
  config.manage_unlimited = random_.one_in(2);
  config.enforce.cpu = CpuLever::both;
  config.safety = quick_safety();
  // Half of it is used outside of containers.
  if (scenario_.freezes) config.budget.memory_ratio = 0.53;
  surroundings_.engine_root = directory_ + "/engines";
  if (scenario_.history || scenario_.disk_one_in != 0)
    surroundings_.history = directory_ + "/history.db";
  surroundings_.random = &random_;
  surroundings_.late_results_one_in = scenario_.late_results_one_in;
  std::filesystem::create_directories(config.proc_root);
  std::filesystem::create_directories(directory_ + "/death");
  if (scenario_.gpus) {
    const std::string devices = config.proc_root + "/1/root/dev";
    std::filesystem::create_directories(devices);
    std::ofstream(config.proc_root + "/1/comm") << "init\n";
    CHECK_INVARIANT(::mknod((devices + "/nvidia0").c_str(), S_IFCHR | 0600, 0) == 0);
  }
  std::ofstream stat(config.proc_root + "/stat");
  for (int cpu = 0; cpu < kCores; ++cpu) stat << "cpu" << cpu << " 0 0 0 0\n";
  std::ofstream(config.proc_root + "/meminfo")
      << "MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\nSwapTotal: 0 kB\n";
  CHECK_INVARIANT(kernel_.make(kSlicePath) == 0 && kernel_.make(kPodPath) == 0 &&
                  kernel_.make(std::string(kPlainPath)) == 0);
  const int count = static_cast<int>(random_.between(2, 5));
  for (int i = 0; i < count; ++i) {
    Box box;
    // One belongs to a kubelet, one is not named.
    box.hands_off = i == 3;
    box.named = i != 2 && !box.hands_off;
    box.consents = scenario_.consents && i < 2;
    if (scenario_.freezes && i < 2) box.freeze_longest = std::chrono::seconds(6 + 6 * i);
    box.path = container_path(box.hands_off  ? kPodPath
                              : box.consents ? kPlainPath
                                             : kSlicePath,
                              i);
    if (box.named || box.hands_off) config.enforce.cgroups.push_back(box.path);
    box.weighed = (scenario_.classes || scenario_.freezes) && i < 2;
    if (scenario_.freezes && i < 2)
      config.containers.push_back(box.path + " class=batch freeze=" +
                                  std::to_string(box.freeze_longest.count()) + "s");
    else if (box.weighed)
      config.containers.push_back(box.path + (i == 0 ? " class=critical" : " class=batch"));
    if (box.consents)
      config.containers.push_back(box.path + " cpu.max=" + std::to_string(kMostCores) +
                                  " memory.max=" + std::to_string(kMostBytes));
    boxes_.push_back(box);
  }
  for (Box& box : boxes_) make_box(box);
}

void World::make_box(Box& box) {
  if (kernel_.make(box.path) != 0) return;
  box.inode = *kernel_.find(box.path);
  const std::uint64_t quota = random_.between(1, 16) * 100'000;
  const auto put = [&](const char* file, const std::string& text) {
    CHECK_INVARIANT(kernel_.write(box.inode, file, text) == 0);
  };
  if (!random_.one_in(6)) {
    put("cpu.max", std::to_string(quota) + " 100000");
    if (random_.one_in(2)) put("cpu.max.burst", std::to_string(random_.below(quota)));
  }
  if (!random_.one_in(6))
    put("memory.max", std::to_string(random_.between(32, 2048) * 4 * kMiB));
  if (random_.one_in(8))
    put("memory.high", std::to_string(random_.between(32, 2048) * 4 * kMiB));
  if (random_.one_in(6)) put("memory.low", std::to_string(random_.below(64) * kMiB));
  start_process(box);
  box.target = 0.05 + 0.4 * random_.share();
  box.paused = box.paused && daemon_ != nullptr;
  box.events = box.events_at_lowering = 0;
  if (scenario_.inner_limits) make_inner(box);
  laws_.appeared(box.inode);
}

void World::start_process(Box& box) {
  box.pid = kernel_.spawn(box.inode);
  box.gpu = false;
  box.gpu_ticks = 0;
  if (!scenario_.gpus) return;
  const std::string process = surroundings_.config.proc_root + "/" + std::to_string(box.pid);
  std::filesystem::create_directories(process + "/fd");
  std::filesystem::create_symlink("../1/root", process + "/root");
  std::ofstream(process + "/comm") << "work\n";
}

void World::open_gpu(Box& box) {
  std::filesystem::create_symlink("/dev/nvidia0", surroundings_.config.proc_root + "/" +
                                                      std::to_string(box.pid) + "/fd/3");
  box.gpu = true;
}

// A limit of the child cgroup that its processes reach at times. It is not the agent's concern.
void World::make_inner(Box& box) {
  const std::string path = box.path + "/inner";
  CHECK_INVARIANT(kernel_.make(path) == 0);
  box.inner = *kernel_.find(path);
  CHECK_INVARIANT(kernel_.write(box.inner, "memory.max", std::to_string(4 * kMiB)) == 0);
  box.inner_pid = kernel_.spawn(box.inner);
}

void World::start_daemon() {
  const int attempts = 200;
  for (int attempt = 0; attempt < attempts && !daemon_; ++attempt) {
    auto started = Daemon::start(surroundings_, clock_);
    if (started) daemon_ = std::move(*started);
  }
  CHECK_INVARIANT(daemon_ != nullptr);
  if (scenario_.faults.at_call != 0 && scenario_.faults.calls == 1)
    daemon_->settling().on_result([this](const LimitChange& change, const LimitResult& result) {
      if (laws_.violation().empty()) laws_.judge_refused(change, result);
    });
  for (Box& box : boxes_) box.paused = false;  // pauses of this run exist only in memory
  mode_ = Mode::enforce;
  kill_switch_seen_ = false;
  judged_decision_ = 0;
  laws_.forget_rests();
  auto seen = LeaseTable::open_existing(
      {.runtime_dir = surroundings_.config.runtime_dir, .boot_id = kSimulatedBoot});
  CHECK_INVARIANT(seen.has_value());
  laws_.watch_leases(std::move(*seen));
  companion_ = std::make_unique<SimulatedCompanion>(surroundings_.config.runtime_dir, clock_);
  next_tick_ns_ = next_beat_ns_ = next_fast_path_ns_ = next_check_ns_ = time_ns();
}

std::optional<Laws::Facts> World::facts_of(std::uint64_t inode) const {
  const auto box = std::find_if(boxes_.begin(), boxes_.end(),
                                [&](const Box& one) { return one.inode == inode; });
  if (box == boxes_.end()) return std::nullopt;
  return Laws::Facts{.may_write = box->named && !box->hands_off && !box->paused &&
                                  mode_ == Mode::enforce && !kill_switch_seen_,
                     .may_lower_quota = box->gpu_ticks <= kGpuTicks,
                     .may_weigh = box->weighed,
                     .most_cores = box->consents ? kMostCores : 0,
                     .most_bytes = box->consents ? static_cast<double>(kMostBytes) : 0,
                     .freeze_longest = box->freeze_longest};
}

RunReport World::run() {
  for (int i = 0; i < scenario_.seconds && second(); ++i) {
  }
  if (laws_.violation().empty()) finish();
  RunReport made;
  report(made);
  return made;
}

bool World::second() {
  if (disk_random_.one_in(scenario_.disk_one_in)) change_disk();
  if (random_.one_in(scenario_.events_one_in)) something_happens();
  settle_history();
  pass(kSecond, Runs::all);
  return laws_.violation().empty();
}

void World::pass(std::int64_t ns, Runs runs) {
  for (std::int64_t passed = 0; passed < ns && laws_.violation().empty(); passed += kSlice)
    slice(runs);
}

void World::slice(Runs runs) {
  ++steps_;
  for (Box& box : boxes_) {
    if (box.inode == 0 && box.back_at_ns <= time_ns()) make_box(box);
    work(box);
    if (box.inner != 0) work_inside(box);
  }
  kernel_.advance(static_cast<std::uint64_t>(kSlice / 1000));
  const auto kills = kernel_.take_kills();
  laws_.judge_kills(kills);
  mix(kills.size());
  set_time_ns(time_ns() + kSlice);
  for (const Box& box : boxes_)
    if (box.inode != 0) laws_.judge_freeze(box.inode, std::chrono::nanoseconds(kSlice));
  const bool held = runs == Runs::workload_alone;
  if (!held && current_lane() == Lane::agent) resume_parked(false);
  if (!held && !in_fast_path_ && time_ns() >= next_fast_path_ns_) poll_fast_path();
  if (companion_ && time_ns() >= next_check_ns_) {
    next_check_ns_ = time_ns() + companion_->check().count();
  }
  if (runs != Runs::all) return;
  if (lanes().parked() && random_.one_in(scenario_.blocked_events_one_in)) something_happens();
  drive_agent();
}

void World::poll_fast_path() {
  if (!daemon_) return;
  in_fast_path_ = true;
  const LaneScope as(Lane::fast_path);
  const TestedScope tested;
  next_fast_path_ns_ =
      time_ns() + std::chrono::nanoseconds(daemon_->fast_path().poll_once()).count();
  in_fast_path_ = false;
}

void World::drive_agent() {
  if (!daemon_) return;
  const TestedScope tested;
  Agent& agent = daemon_->agent();
  if (time_ns() >= next_beat_ns_) {
    agent.beat();
    if (kill_switch_) kill_switch_seen_ = true;
    next_beat_ns_ = time_ns() + kBeat;
  }
  agent.drain_events();
  if (time_ns() < next_tick_ns_) return;
  next_tick_ns_ = time_ns() + kSecond;
  if (lost_ticks_ > 0) {
    --lost_ticks_;
    return;
  }
  for (Box& box : boxes_) box.events = own_events(box);
  slow_tick_ = random_.one_in(scenario_.slow_ticks_one_in);
  agent.tick();
  slow_tick_ = false;
  settle_history();
  for (const Box& box : boxes_)
    if (daemon_->agent().core().find({kSimulatedDevice, box.inode}) == nullptr)
      laws_.forget_rest(box.inode);
  judge_memory_events();
  judge_gpus();
  judge_unknown();
  judge_blame();
  // Stores are sequential, so those before this one are complete.
  leases_at_last_change_ = lease_bytes();
  if (!lanes().parked()) laws_.judge_recoverable("after a tick");
}

void World::judge_gpus() {
  for (Box& box : boxes_) {
    if (box.inode == 0 || !box.gpu || ++box.gpu_ticks <= kGpuTicks + kGpuRestoreTicks) continue;
    if (!laws_.as_intended(box.inode, Knob::cpu_max))
      laws_.violate("the quota is still lowered beside a GPU: " + box.path);
  }
}

// The agent must answer an event only if the container's own limit was reached.
void World::judge_memory_events() {
  // A value that cannot be read counts as such an event.
  if (scenario_.faults.one_in != 0 || scenario_.faults.at_call != 0) return;
  const auto& recent = daemon_->agent().journal().recent_decisions();
  const std::uint64_t judged = judged_decision_;
  for (auto entry = recent.rbegin(); entry != recent.rend(); ++entry) {
    const Decision& decision = entry->decision;
    if (decision.decision_id <= judged) return;
    judged_decision_ = std::max(judged_decision_, decision.decision_id);
    Box* const box = box_of(decision.container.inode);
    if (box == nullptr || decision.verdict != Verdict::allowed) continue;
    const bool lowers =
        decision.resource == Resource::memory && decision.direction == Direction::lower;
    if (lowers) box->events_at_lowering = box->events;
    if (decision.reason == Reason::memory_event && own_events(*box) == box->events_at_lowering)
      laws_.violate("an event was answered that was not at the limit of " + box->path);
  }
}

// A container that is no longer tracked must have no limit of ours. After two faults the second may
// be in the restore.
void World::judge_unknown() {
  if (scenario_.faults.at_call == 0 || scenario_.faults.calls != 1 || lanes().parked()) return;
  for (const Box& box : boxes_) {
    const CgroupId id{kSimulatedDevice, box.inode};
    if (box.inode == 0 || daemon_->agent().core().find(id) != nullptr) continue;
    for (const Knob knob : kKnobs)
      if (!laws_.as_intended(box.inode, knob))
        laws_.violate(std::string("lowered but no longer tracked: ") + file_name(knob) + " of " +
                      box.path);
  }
}

// If nobody else writes a limit, no change may count as foreign.
void World::judge_blame() {
  // A value that cannot be read may look foreign.
  if (scenario_.events_one_in != 0 || scenario_.nested_one_in != 0) return;
  if (scenario_.faults.one_in != 0 || scenario_.faults.at_call != 0) return;
  for (const ContainerView* view : daemon_->agent().core().containers()) {
    const std::string whose = " although nobody else writes: " + view->info.path.substr(0, 32);
    for (const Verdict blocked_by : {view->cpu_blocked_by, view->memory_blocked_by})
      if (blocked_by == Verdict::standing_down || blocked_by == Verdict::silently_reverted ||
          blocked_by == Verdict::rival)
        laws_.violate(to_string(blocked_by) + whose);
    for (const Knob knob : {Knob::cpu_max, Knob::memory_max, Knob::memory_high}) {
      Limits intended;
      const KnobText& text = laws_.intents(view->info.id.inode, knob).front();
      if (parse_knob(knob, text.view(), intended) &&
          compare_knob(knob, view->original, intended) != 0)
        laws_.violate(std::string("another original of ") + file_name(knob) + whose);
    }
  }
  for (const JournalOutcome& one : daemon_->agent().journal().recent_outcomes())
    if (one.outcome.detail == "another writer changed the limit")
      laws_.violate("a trial ended by a foreign change, although nobody else writes: decision " +
                    std::to_string(one.outcome.decision_id));
}

std::uint64_t World::own_events(const Box& box) const {
  if (box.inode == 0) return 0;
  const MemoryEventCounts& own = kernel_.cgroup(box.inode)->memory.local_events;
  return own.max + own.oom;
}

// A blocked write returns when it is done or its deadline has passed. `now`: interrupted by a
// signal.
void World::resume_parked(bool now) {
  while (lanes().parked()) {
    const auto deadline = lanes().deadline_ns();
    const bool interrupted = now || (deadline && *deadline <= time_ns());
    if (!interrupted && lanes().parked_until_ns() > time_ns()) return;
    lanes().resume(interrupted);
  }
}

void World::change_disk() {
  using State = Disk::State;
  const bool full = disk_random_.one_in(2);
  disk_works_ = !disk_works_;
  Disk::of_process().set(disk_works_ ? State::works : full ? State::full : State::broken);
}

void World::settle_history() {
  if (daemon_ && !surroundings_.history.empty()) daemon_->settle_history();
}

// Whatever the disk did, every decision must be in the journal.
void World::judge_journal() {
  StoreThread* const store = daemon_->agent().store();
  if (store == nullptr) return;
  if (!disk_works_) change_disk();
  const auto recent = daemon_->agent().journal().recent_decisions();
  std::set<std::uint64_t> stored;
  const Status ended = daemon_->agent().store_all();
  if (!ended) return laws_.violate("the history is lost: " + ended.error().text);
  if (store->counts().dropped_journal != 0) laws_.violate("decisions were dropped");
  daemon_.reset();
  auto file = Store::open({.path = surroundings_.history, .boot_id = kSimulatedBoot});
  if (!file) return laws_.violate(file.error().text);
  const auto events = file->events(std::nullopt, {.limit = 1 << 20});
  if (!events) return laws_.violate(events.error().text);
  for (const JournalEvent& event : *events)
    if (const auto* const one = std::get_if<JournalDecision>(&event.what))
      stored.insert(one->decision.decision_id);
  for (const JournalDecision& one : recent)
    if (!stored.contains(one.decision.decision_id))
      laws_.violate("decision " + std::to_string(one.decision.decision_id) + " of " +
                    std::to_string(recent.size()) + " is not in the journal");
}

// A clean stop restores everything. If calls still fail, the companion does so afterwards.
void World::finish() {
  resume_parked(true);
  const auto stopped = daemon_->agent().stop();
  if (stopped.failures.empty()) laws_.judge_restored(kernel_, "after the last stop");
  faults_.stop();
  judge_journal();
  daemon_.reset();
  const bool done = companion_->after_death();
  if (!done && laws_.violation().empty()) laws_.violate("the companion could not restore");
  laws_.judge_restored(kernel_, "at the end");
  companion_.reset();
  if (const auto open = open_descriptors(); open != 0)
    laws_.violate(std::to_string(open) + " descriptors are still open");
}

void World::report(RunReport& into) const {
  into.violation = laws_.violation();
  into.steps = steps_;
  into.crashes = crashes_;
  into.tally = laws_.tally();
  into.calls = faults_.calls();
  into.faults = faults_.injected();
  into.kills = laws_.tally().kills;
  into.disk_failures = Disk::of_process().failures() - disk_failures_before_;
  into.hangs = hangs_;
  into.parked = parked_;
  into.nested = nested_;
  into.slow_ticks = slow_ticks_;
  into.hash = hash_;
}

int World::before(const Call& call) {
  if (quiet_) return 0;
  ++steps_;
  mix(call.inode * 31 + call.file.size() * 7 + static_cast<std::uint64_t>(call.lane));
  const bool near_a_write =
      call.lane != Lane::agent || call.kind == Call::Kind::write || call.kind == Call::Kind::look;
  const std::uint64_t chances =
      near_a_write ? (scenario_.nested_one_in + 49) / 50 : scenario_.nested_one_in;
  if (!in_the_middle_ && random_.one_in(chances))
    something_happens_in_the_middle(call);
  const bool changes = call.kind == Call::Kind::write && knob_of(call.file).has_value();
  if (changes) try_torn_deaths();
  if (changes || random_.one_in(scenario_.crash_one_in)) try_death();
  const bool reads = call.kind == Call::Kind::read && call.lane == Lane::agent;
  if (reads && call.file == "memory.current" && std::exchange(slow_tick_, false)) {
    ++slow_ticks_;
    hang(static_cast<std::int64_t>(random_.between(2500, 4500)) * kMillisecond);
  }
  laws_.looked(call);
  const int fault = faults_.next(call);
  if (scenario_.trace && (fault != 0 || changes)) trace(call, "before", fault);
  if (call.kind == Call::Kind::write) {
    laws_.will_write(call);
    for (const char letter : call.text) mix(static_cast<std::uint64_t>(letter));
  }
  return fault;
}

void World::after(const Call& call, int error) {
  if (quiet_) return;
  if (scenario_.trace) trace(call, "after", error);
  mix(static_cast<std::uint64_t>(error));
  if (call.kind != Call::Kind::write || !knob_of(call.file)) return;
  // If no other write can have come between, and no write before it failed, a refusal means that
  // the order of the writes is wrong.
  if (error == EINVAL && scenario_.nested_one_in == 0 && faults_.injected() == 0 &&
      call.lane != Lane::companion)
    laws_.violate("the kernel refused " + std::string(call.file));
  try_death();
  leases_at_last_change_ = lease_bytes();
}

void World::trace(const Call& call, const char* when, int error) const {
  constexpr std::array kLanes = {"agent", "raise", "lower", "fast path", "companion"};
  constexpr std::array kKinds = {"open", "read", "write", "look"};
  std::fprintf(stderr, "%.2f %-9s %-6s %-5s #%llu %s '%s' %d\n",
               static_cast<double>(time_ns()) / 1e9, kLanes[static_cast<std::size_t>(call.lane)],
               when, kKinds[static_cast<std::size_t>(call.kind)],
               static_cast<unsigned long long>(call.inode), std::string(call.file).c_str(),
               std::string(call.text.substr(0, call.text.find('\n'))).c_str(), error);
}

bool World::slow(const Call& call) {
  return !quiet_ && call.lane == Lane::lowering && knob_of(call.file).has_value() &&
         random_.one_in(scenario_.slow_writes_one_in);
}

bool World::blocked(const Call& call) {
  leases_at_last_change_ = lease_bytes();  // the new limit is in force already
  if (quiet_ || call.lane != Lane::lowering || random_.one_in(3)) return false;
  ++parked_;
  const auto wait = static_cast<std::int64_t>(random_.between(10, 4000)) * kMillisecond;
  const bool interrupted = lanes().park(time_ns() + wait);
  laws_.time_passed_in(Lane::lowering);
  return interrupted;
}

void World::wait_a_little() {
  if (quiet_) return set_time_ns(time_ns() + kSlice);
  slice(Runs::without_agent);
}

}  // namespace cgphase::simulator
