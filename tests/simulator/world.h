// A machine with some containers, the daemon that manages them, and random events of a seed:
// growth, phases, foreign writes, container churn, failing system calls, lost samples, hangs and
// deaths. Every law is checked at every step. The first violation ends the run.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulator/cgroup_kernel.h"
#include "tests/simulator/daemon.h"
#include "tests/simulator/disk.h"
#include "tests/simulator/faults.h"
#include "tests/simulator/laws.h"
#include "tests/simulator/random.h"
#include "tests/simulator/system_calls.h"

namespace cgphase::simulator {

struct Scenario {
  std::uint64_t seed = 1;
  int seconds = 300;
  // Each is "one in this many". 0: never.
  std::uint64_t events_one_in = 12;     // per second: actions of others
  std::uint64_t nested_one_in = 2000;   // per system call: an action during it; 50 times as often
                                        // while a limit is written
  std::uint64_t crash_one_in = 3000;    // per system call: try the daemon's death here
  std::uint64_t allocation_one_in = 0;  // allocations of the tested code: try its death here
  std::uint64_t late_results_one_in = 0;
  std::uint64_t blocked_events_one_in = 0;  // per slice of time while a lowering blocks: actions of
                                            // others
  std::uint64_t slow_writes_one_in = 0;     // lowerings that block without reclaim
  std::uint64_t slow_ticks_one_in = 0;      // ticks whose reading takes about three seconds
  bool classes = false;                 // the first two containers are critical and batch
  bool consents = false;                // the owners of the first two agree to more
  bool freezes = false;                 // the first two are batch, to be frozen; memory is short
  bool gpus = false;                    // processes open a GPU at some time
  bool inner_limits = false;            // each container has a child cgroup with its own limit
  double growth_ratio = 0.12;           // maximum growth per second, as a share of the limit in
                                        // force
  std::uint64_t disk_one_in = 0;        // per second: the history's disk fails or recovers
  bool history = false;                 // use a history; implied by disk_one_in
  bool hangs = false;                   // the daemon stops during a call
  bool trace = false;                   // print every call to standard error
  FaultPlan faults;
};

// The result of a run.
struct RunReport {
  std::string violation;  // empty: no law was broken
  std::uint64_t steps = 0;   // system calls of the tested code, plus slices of simulated time
  std::uint64_t crashes = 0; // tried deaths of the daemon
  Laws::Tally tally;
  std::uint64_t calls = 0;   // calls that could have failed
  std::uint64_t disk_failures = 0;
  std::uint64_t faults = 0, kills = 0, hangs = 0, parked = 0, nested = 0, slow_ticks = 0;
  std::uint64_t hash = 0;    // of all events, to compare two runs
};

// What the owner of a consenting container agrees to.
inline constexpr double kMostCores = 12;
inline constexpr std::uint64_t kMostBytes = 24 * kGiB;

class World final : private CallObserver {
 public:
  explicit World(const Scenario& scenario);
  ~World() override;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  RunReport run();

 private:
  struct Box {
    std::string path;
    bool named = false;      // cgphase may change it
    bool hands_off = false;  // another manager owns it
    bool weighed = false;    // it has a class with a weight of its own
    bool consents = false;   // its owner agrees to more than its limits
    std::chrono::seconds freeze_longest{0};
    std::uint64_t inode = 0;
    int pid = 0;
    bool paused = false;
    std::int64_t back_at_ns = 0;  // when a removed container returns
    double target = 0.1, cores = 0.1;  // need and CPU, as shares of the foreign limits
    double cache = 0.1;                // page cache, as a share of the limit in force
    bool busy = false;
    std::uint64_t inner = 0;  // its child cgroup
    int inner_pid = 0;
    bool gpu = false;    // whether its process has a GPU open
    int gpu_ticks = 0;   // ticks of the agent since then
    std::uint64_t events = 0;  // at its own limit, before this tick
    std::uint64_t events_at_lowering = 0;
  };
  enum class Runs { all, without_agent, workload_alone };

  // world.cpp: the machine, the daemon, and time
  void set_up_machine();
  void make_box(Box& box);
  void make_inner(Box& box);
  void start_process(Box& box);
  void open_gpu(Box& box);
  void start_daemon();
  bool second();
  void slice(Runs runs);
  void pass(std::int64_t ns, Runs runs);
  void poll_fast_path();
  void drive_agent();
  void resume_parked(bool now);
  void change_disk();
  void settle_history();
  void judge_journal();
  void judge_memory_events();
  void judge_gpus();
  void judge_unknown();
  void judge_blame();
  std::uint64_t own_events(const Box& box) const;
  void finish();
  void report(RunReport& into) const;
  std::optional<Laws::Facts> facts_of(std::uint64_t inode) const;
  void allocated();
  void try_death();
  void try_torn_deaths();
  void die_with(const std::string& leases, const char* when);
  std::string lease_bytes() const;
  void trace(const Call& call, const char* when, int error) const;
  void mix(std::uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001b3ULL; }

  // workload.cpp
  void work(Box& box);
  void work_inside(Box& box);
  void grow(Box& box, double limit);
  void fill_cache(Box& box);
  void jump(Box& box);
  double intended_bytes(const Box& box) const;
  double intended_cores(const Box& box) const;

  // others.cpp: actions of others
  void something_happens();
  void something_happens_in_the_middle(const Call& call);
  void others_write(Box& box);
  bool write_as_other(Box& box, Knob knob, const std::string& text);
  void write_memory(Box& box);
  void write_quota(Box& box);
  void write_burst(Box& box);
  void reload();
  void remove_box(Box& box);
  void change_mode();
  void toggle_kill_switch();
  void hang(std::int64_t ns);
  void kill_and_restart();
  void stop_and_start();
  Box* some_box();
  Box* box_of(std::uint64_t inode);

  // CallObserver
  int before(const Call& call) override;
  void after(const Call& call, int error) override;
  bool slow(const Call& call) override;
  bool blocked(const Call& call) override;
  void wait_a_little() override;

  Scenario scenario_;
  Random random_;
  Random disk_random_;  // separate, so that the disk changes nothing else
  std::string directory_;  // of this run, on the real file system
  std::string leases_at_last_change_;  // at the last change of the kernel, or tick; later stores
                                       // may be cut short
  CgroupKernel kernel_;
  Laws laws_;
  Faults faults_;
  SimulatedClock clock_;
  Daemon::Environment surroundings_;
  std::vector<Box> boxes_;
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<SimulatedCompanion> companion_;
  Mode mode_ = Mode::enforce;
  bool disk_works_ = true;
  bool kill_switch_ = false, kill_switch_seen_ = false;
  bool quiet_ = false;     // no checks, faults or random events
  bool in_fast_path_ = false, in_the_middle_ = false;
  int lost_ticks_ = 0;
  bool slow_tick_ = false;  // its slow reading is still to come
  std::uint64_t judged_decision_ = 0;
  std::int64_t next_tick_ns_ = 0, next_beat_ns_ = 0, next_fast_path_ns_ = 0, next_check_ns_ = 0;
  std::uint64_t steps_ = 0, crashes_ = 0, hangs_ = 0, parked_ = 0, nested_ = 0, slow_ticks_ = 0;
  std::uint64_t hash_ = 1, allocations_ = 0, disk_failures_before_ = Disk::of_process().failures();
};

}  // namespace cgphase::simulator
