#include "agent/observers/program_watch.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "collectors/cgroup_processes.h"

namespace cgphase {
namespace {

// The JVM reads cpu.max when a pool or the collector asks for processors, .NET when the thread pool
// grows, Ray when it starts workers. libuv reads cpu.max and the smaller of memory.max and
// memory.high on each call.
constexpr std::array<LimitReader, 4> kLimitReaders = {{{"java", true, false},
                                                       {"dotnet", true, false},
                                                       {"node", true, true},
                                                       {"raylet", true, false}}};

// An engine's own process on its way into a container ("runc:[2:INIT]"). It does not read for the
// program that it becomes; that program is reported as a start.
constexpr std::string_view kEngineCommand = "runc:[";

}  // namespace

const LimitReader* find_limit_reader(std::string_view command, std::string_view program) {
  const std::string_view base = program.substr(program.rfind('/') + 1);
  const auto found = std::ranges::find_if(kLimitReaders, [&](const LimitReader& reader) {
    return reader.name == command || reader.name == base;
  });
  return found == kLimitReaders.end() ? nullptr : &*found;
}

void ProgramWatch::observe(NodeSample& tick, const Environment& around) {
  for (const CgroupId& id : tick.vanished) drop(id, around);
  for (const Sample& sample : tick.containers) attend(sample, around);
  list_in_turn(tick, around);
  drain_events(tick.time, around);
  for (Sample& sample : tick.containers) {
    const auto found = watched_.find(sample.id);
    if (found == watched_.end()) continue;
    Watched& watched = found->second;
    if (watched.reported && around.probes->reports_limit_reads())
      ignore_quiet(sample.id, watched, tick.time, around);
    sample.programs = std::exchange(
        watched.stat, {.reads_cpu = watched.stat.reads_cpu,
                       .reads_memory = watched.stat.reads_memory});
  }
}

void ProgramWatch::drain_events(MonotonicTime now, const Environment& around) {
  if (!around.probes) return;
  for (const ProgramAct& act : around.probes->drain_program_acts()) take(act, now, around);
}

void ProgramWatch::attend(const Sample& sample, const Environment& around) {
  if (!around.attended(sample.id)) return drop(sample.id, around);
  const auto [found, fresh] = watched_.try_emplace(sample.id);
  Watched& watched = found->second;
  if (fresh) {
    by_inode_.insert_or_assign(sample.id.inode, sample.id);
    watched.reported = around.probes && around.probes->watch_programs(sample.id, true);
  }
  if (sample.populated != false) return;
  forget_programs(sample.id, watched, around);
  watched = Watched{.reported = watched.reported, .listed = true};
}

void ProgramWatch::drop(CgroupId id, const Environment& around) {
  const auto gone = watched_.find(id);
  if (gone == watched_.end()) return;
  forget_programs(id, gone->second, around);
  if (gone->second.reported) (void)around.probes->watch_programs(id, false);
  by_inode_.erase(id.inode);
  watched_.erase(gone);
}

void ProgramWatch::stop_ignoring(CgroupId id, std::uint64_t key, Program& program,
                              const Environment& around) {
  if (std::exchange(program.ignored, false)) around.probes->ignore_program(id, key, false);
}

// BPF then reports the starts of ignored programs again.
void ProgramWatch::forget_programs(CgroupId id, Watched& watched, const Environment& around) {
  for (auto& [key, program] : watched.programs) stop_ignoring(id, key, program, around);
  watched.programs.clear();
}

// Lists the processes of containers that BPF does not report, up to the bound of one call.
void ProgramWatch::list_in_turn(const NodeSample& tick, const Environment& around) {
  std::size_t processes = 0;
  CgroupId listed;
  const auto list_some = [&](bool later) {
    for (const Sample& sample : tick.containers) {
      const auto found = watched_.find(sample.id);
      if (found == watched_.end() || (sample.id > last_listed_) != later) continue;
      Watched& watched = found->second;
      if (sample.populated == false || (watched.reported && watched.listed)) continue;
      if (processes >= kMostProcessesInAll) return;
      processes += list(watched, sample.id, tick.time, around);
      listed = sample.id;
    }
  };
  list_some(true);
  list_some(false);
  last_listed_ = processes < kMostProcessesInAll ? CgroupId() : listed;
}

std::size_t ProgramWatch::list(Watched& watched, CgroupId id, MonotonicTime now,
                               const Environment& around) {
  const Result<Fd> directory = around.directory(id);
  if (!directory) return 0;
  const bool first = !std::exchange(watched.listed, true), started = watched.stat.started;
  std::map<std::string, std::string, std::less<>> running;
  std::size_t processes = 0;
  (void)visit_processes(directory->get(), [&](std::string_view pid) {
    std::string program = process_program(around.proc_root, pid);
    const auto before = watched.running.find(pid);
    if (!program.empty() && (before == watched.running.end() || before->second != program)) {
      const std::string command = process_command(around.proc_root, pid);
      const LimitReader* const reader = find_limit_reader(command, program);
      const std::uint64_t key = std::hash<std::string>()(program);
      if (reader != nullptr || !watched.programs.contains(key))
        start(id, watched, key, reader, now, around);
    }
    running.emplace(pid, std::move(program));
    return ++processes < kMostProcesses;
  });
  watched.running = std::move(running);
  // Programs that ran before the first listing have already read their limits.
  if (first) watched.stat.started = started;
  if (watched.reported) {
    watched.running.clear();
    watched.programs.clear();  // BPF has other keys
  }
  return processes;
}

void ProgramWatch::start(CgroupId id, Watched& watched, std::uint64_t key,
                         const LimitReader* reader, MonotonicTime now,
                         const Environment& around) {
  watched.stat.started = true;
  if (watched.programs.size() >= kMostPrograms && !watched.programs.contains(key))
    forget_programs(id, watched, around);
  Program& program = watched.programs[key];
  if (!program.first) program.first = now;
  program.last = now;
  program.ignored = false;
  if (reader == nullptr) return;
  program.reads = true;
  watched.stat.reads_cpu = watched.stat.reads_cpu || reader->reads_cpu;
  watched.stat.reads_memory = watched.stat.reads_memory || reader->reads_memory;
}

void ProgramWatch::take(const ProgramAct& act, MonotonicTime now, const Environment& around) {
  if (act.kind == ProgramAct::Kind::dropped && act.container == 0) {
    for (auto& [id, watched] : watched_)
      if (watched.reported) take_dropped(id, watched, around);
    return;
  }
  const auto known = by_inode_.find(act.container);
  const auto found = known == by_inode_.end() ? watched_.end() : watched_.find(known->second);
  if (found == watched_.end()) return;
  auto& [id, watched] = *found;
  switch (act.kind) {
    case ProgramAct::Kind::starts:
      return start(id, watched, act.key, find_limit_reader(act.command, {}), now, around);
    case ProgramAct::Kind::dropped: return take_dropped(id, watched, around);
    case ProgramAct::Kind::reads_cpu:
    case ProgramAct::Kind::reads_memory: return take_read(id, watched, act, now, around);
  }
}

// Events were lost: any program may have started or read. Programs that read nothing are ignored
// again after their next start.
void ProgramWatch::take_dropped(CgroupId id, Watched& watched, const Environment& around) {
  watched.stat.started = true;
  for (auto& [key, program] : watched.programs) {
    program.first.reset();
    stop_ignoring(id, key, program, around);
  }
}

// A program that started recently reads its limits for the first time; any other rereads them. If a
// program changed its command line, or if its start was ignored, its age decides.
void ProgramWatch::take_read(CgroupId id, Watched& watched, const ProgramAct& act,
                             MonotonicTime now, const Environment& around) {
  if (act.command.starts_with(kEngineCommand)) return;
  const auto lately = [&](const Program& one) { return now - one.last <= around.start_up; };
  const auto program = watched.programs.find(act.key);
  const bool known = act.key != 0 && program != watched.programs.end();
  bool again = true;
  for (auto& [key, one] : watched.programs) {
    if (known && key != act.key) continue;
    if (one.ignored || lately(one)) again = act.age > around.start_up && !(known && lately(one));
    if (known || lately(one)) one.reads = true;
    stop_ignoring(id, key, one, around);
  }
  if (!again) return;
  (act.kind == ProgramAct::Kind::reads_cpu ? watched.stat.reads_cpu : watched.stat.reads_memory) =
      true;
}

// A program that read nothing after its first start will not read after the next. Health checks and
// loops that start programs must not keep the limits at the originals for ever.
void ProgramWatch::ignore_quiet(CgroupId id, Watched& watched, MonotonicTime now,
                                const Environment& around) {
  for (auto& [key, program] : watched.programs) {
    if (program.reads || key == 0 || !program.first || now - *program.first < around.start_up)
      continue;
    program.first.reset();
    program.ignored = true;
    around.probes->ignore_program(id, key, true);
  }
}

}  // namespace cgphase
