#include "tests/simulator/kernel_claims.h"

#include "base/parse.h"
#include "base/result.h"
#include "base/units.h"

namespace cgphase::simulator {
namespace {

const std::string kA = "/a", kB = "/a/b";

std::string word(int error) { return error == 0 ? "ok" : errno_word(error); }

// Writes each text and reports the file's content after it.
std::string try_all(Hierarchy& tree, const std::string& file,
                    const std::vector<std::string>& texts) {
  std::string outcome;
  for (const std::string& text : texts) {
    outcome += word(tree.write(kA, file, text)) + " ";
    outcome += tree.read(kA, file) + "; ";
  }
  return outcome;
}

std::uint64_t field(Hierarchy& tree, const std::string& path, const std::string& file,
                    std::string_view wanted) {
  const std::string text = tree.read(path, file);
  std::string_view rest = text, line, name, value;
  while (next_line(rest, line))
    if (next_word(line, name) && name == wanted && next_word(line, value))
      return parse_u64(value).value_or(0);
  return 0;
}

std::string some(std::uint64_t count) { return count == 0 ? "none" : "some"; }

// Events of this file, as "max=some oom=some oom_kill=1".
std::string events(Hierarchy& tree, const std::string& path, const std::string& file) {
  return "max=" + some(field(tree, path, file, "max")) +
         " oom=" + some(field(tree, path, file, "oom")) +
         " oom_kill=" + std::to_string(field(tree, path, file, "oom_kill"));
}

std::string life(Hierarchy& tree, int process) { return tree.alive(process) ? "lives" : "dead"; }

std::string bytes(std::uint64_t mib) { return std::to_string(mib * kMiB); }

bool below(Hierarchy& tree, const std::string& path, std::uint64_t mib) {
  return parse_u64(tree.read(path, "memory.current")).value_or(~0ULL) <= mib * kMiB;
}

std::string texts_of_cpu_max(Hierarchy& tree) {
  return try_all(tree, "cpu.max",
                 {"50000", "40000 20000", "max", "max 200000\n", "999 100000", "1000 100000", "x",
                  "50000 999", "50000 1000001", "50000abc 100000", " 60000  50000 "});
}

std::string texts_of_burst(Hierarchy& tree) {
  tree.write(kA, "cpu.max", "50000 100000");
  std::string outcome = try_all(tree, "cpu.max.burst", {"50001", "50000", "x", "-1"});
  outcome += "quota down: " + word(tree.write(kA, "cpu.max", "40000 100000")) + " ";
  outcome += tree.read(kA, "cpu.max") + "; burst down: ";
  outcome += word(tree.write(kA, "cpu.max.burst", "40000")) + "; quota down: ";
  outcome += word(tree.write(kA, "cpu.max", "40000 100000")) + "; without quota: ";
  outcome += word(tree.write(kA, "cpu.max", "max")) + " ";
  return outcome + word(tree.write(kA, "cpu.max.burst", "900000"));
}

std::string texts_of_weight(Hierarchy& tree) {
  return try_all(tree, "cpu.weight", {"1", "10000\n", "0", "10001", "x", "0x20"});
}

std::string texts_of_memory(Hierarchy& tree) {
  std::string outcome = try_all(tree, "memory.max",
                                {"1G", "0x100000", "409601", "2m\n", "max", "-1", "1.5G", "10 M",
                                 "1Gx", "9223372036854775807", "maximum"});
  outcome += try_all(tree, "memory.high", {"64M", "max"});
  outcome += try_all(tree, "memory.low", {"64M", "max", "0"});
  return outcome + try_all(tree, "memory.min", {"4097"});
}

std::string modes_of_files(Hierarchy& tree) {
  std::string outcome;
  for (const char* file : {"memory.current", "cpu.stat", "memory.events", "cgroup.controllers"})
    outcome += word(tree.write(kA, file, "1")) + " ";
  return outcome + tree.read(kA, "memory.reclaim") + " " + tree.read(kA, "memory.such") + " " +
         word(tree.write(kA, "memory.such", "1"));
}

std::string removed(Hierarchy& tree) {
  tree.make(kB);
  std::string outcome = "with child " + word(tree.remove(kA));
  const int process = tree.spawn(kB);
  outcome += ", with process " + word(tree.remove(kB));
  tree.end(process);
  const std::uint64_t before = tree.inode(kB);
  tree.hold(kB, "memory.max");
  tree.hold_directory(kB);
  outcome += ", empty " + word(tree.remove(kB));
  outcome += "; held file " + tree.read_held() + " " + word(tree.write_held("max"));
  outcome += ", file in held directory " + word(tree.open_in_held("memory.max"));
  outcome += "; again " + word(tree.make(kB)) + ", ";
  outcome += tree.inode(kB) == before ? "same inode" : "another inode";
  return outcome + ", held file " + tree.read_held() + ", in held directory " +
         word(tree.open_in_held("memory.max"));
}

std::string max_below_anon(Hierarchy& tree) {
  tree.write(kA, "memory.max", bytes(256));
  const int process = tree.spawn(kA);
  tree.take_anon(process, 64 * kMiB);
  const std::string outcome = word(tree.write(kA, "memory.max", bytes(16)));
  return outcome + ", " + life(tree, process) + ", " + events(tree, kA, "memory.events");
}

std::string max_below_shmem(Hierarchy& tree) {
  const int process = tree.spawn(kA);
  tree.take_shmem(process, 48 * kMiB);
  const std::string outcome = word(tree.write(kA, "memory.max", bytes(16)));
  return outcome + ", " + life(tree, process) + ", oom_kill=" +
         std::to_string(field(tree, kA, "memory.events", "oom_kill")) + ", " +
         (below(tree, kA, 16) ? "below" : "above");
}

std::string max_below_cache(Hierarchy& tree) {
  const int process = tree.spawn(kA);
  tree.take_file(process, 48 * kMiB);
  std::string outcome = below(tree, kA, 32) ? "no cache" : "cached";
  outcome += ", " + word(tree.write(kA, "memory.max", bytes(24))) + ", " + life(tree, process);
  outcome += below(tree, kA, 24) ? ", below" : ", above";
  return outcome + ", " + events(tree, kA, "memory.events");
}

std::string allocation_above_max(Hierarchy& tree) {
  tree.write(kA, "memory.max", bytes(32));
  const int process = tree.spawn(kA);
  tree.take_anon(process, 16 * kMiB);
  std::string outcome = life(tree, process) + ", ";
  tree.take_anon(process, 64 * kMiB);
  return outcome + life(tree, process) + ", " + events(tree, kA, "memory.events");
}

std::string cache_meets_max(Hierarchy& tree) {
  tree.write(kA, "memory.max", bytes(24));
  const int process = tree.spawn(kA);
  tree.take_file(process, 48 * kMiB);
  return life(tree, process) + (below(tree, kA, 24) ? ", below, " : ", above, ") +
         events(tree, kA, "memory.events");
}

std::string limit_of_parent(Hierarchy& tree) {
  tree.make(kB);
  tree.write(kA, "memory.max", bytes(32));
  const int process = tree.spawn(kB);
  tree.take_anon(process, 64 * kMiB);
  return life(tree, process) + "; parent " + events(tree, kA, "memory.events") + ", local " +
         events(tree, kA, "memory.events.local") + "; child " +
         events(tree, kB, "memory.events") + ", local " +
         events(tree, kB, "memory.events.local");
}

std::string limit_of_child(Hierarchy& tree) {
  tree.make(kB);
  tree.write(kB, "memory.max", bytes(32));
  const int process = tree.spawn(kB);
  tree.take_anon(process, 64 * kMiB);
  return life(tree, process) + "; parent " + events(tree, kA, "memory.events") + ", local " +
         events(tree, kA, "memory.events.local") + "; child local " +
         events(tree, kB, "memory.events.local");
}

std::string largest_dies(Hierarchy& tree) {
  tree.write(kA, "memory.max", bytes(64));
  const int large = tree.spawn(kA), small = tree.spawn(kA);
  tree.take_anon(large, 40 * kMiB);
  tree.take_anon(small, 8 * kMiB);
  tree.take_anon(small, 24 * kMiB);
  return "large " + life(tree, large) + ", small " + life(tree, small);
}

std::string group_dies(Hierarchy& tree) {
  tree.write(kA, "memory.oom.group", "1");
  tree.write(kA, "memory.max", bytes(64));
  const int large = tree.spawn(kA), small = tree.spawn(kA);
  tree.take_anon(small, 8 * kMiB);
  tree.take_anon(large, 80 * kMiB);
  return "large " + life(tree, large) + ", small " + life(tree, small) + ", oom_kill=" +
         std::to_string(field(tree, kA, "memory.events", "oom_kill"));
}

std::string above_high(Hierarchy& tree) {
  tree.write(kA, "memory.high", bytes(24));
  const int process = tree.spawn(kA);
  tree.take_anon(process, 25 * kMiB);
  std::string outcome = life(tree, process) + ", high=";
  outcome += some(field(tree, kA, "memory.events", "high")) + ", ";
  return outcome + events(tree, kA, "memory.events");
}

std::string reclaim_on_demand(Hierarchy& tree) {
  const int process = tree.spawn(kA);
  tree.take_anon(process, 8 * kMiB);
  tree.take_file(process, 48 * kMiB);
  std::string outcome = word(tree.write(kA, "memory.reclaim", bytes(8)));
  outcome += ", " + word(tree.write(kA, "memory.reclaim", bytes(512)));
  outcome += ", " + word(tree.write(kA, "memory.reclaim", "x"));
  return outcome + ", " + life(tree, process) + (below(tree, kA, 24) ? ", below" : ", above");
}

std::string throttled(Hierarchy& tree) {
  tree.make(kB);
  const int process = tree.spawn(kB);
  tree.spin(process, 400);
  std::string outcome = "free " + some(field(tree, kB, "cpu.stat", "nr_throttled"));
  tree.write(kB, "cpu.max", "20000 100000");
  tree.spin(process, 600);
  outcome += ", own quota " + some(field(tree, kB, "cpu.stat", "nr_throttled")) + " " +
          some(field(tree, kB, "cpu.stat", "throttled_usec"));
  tree.write(kB, "cpu.max", "max");
  const std::uint64_t before = field(tree, kB, "cpu.stat", "nr_throttled");
  tree.write(kA, "cpu.max", "20000 100000");
  tree.spin(process, 600);
  outcome += ", quota of the parent: child " +
          some(field(tree, kB, "cpu.stat", "nr_throttled") - before);
  return outcome + ", parent " + some(field(tree, kA, "cpu.stat", "nr_throttled"));
}

// A fifth of a CPU, plus a little for the first period, which starts with a full bucket.
std::string served_by_quota(Hierarchy& tree) {
  tree.write(kA, "cpu.max", "20000 100000");
  const int process = tree.spawn(kA);
  const std::uint64_t before = field(tree, kA, "cpu.stat", "usage_usec");
  tree.spin(process, 2000);
  const std::uint64_t used = field(tree, kA, "cpu.stat", "usage_usec") - before;
  return used < 200'000 ? "less" : used <= 700'000 ? "about a fifth" : "more";
}

std::string frozen(Hierarchy& tree) {
  std::string outcome = word(tree.write(kA, "cgroup.freeze", "2"));
  outcome += " " + word(tree.write(kA, "cgroup.freeze", "x"));
  outcome += " " + word(tree.write(kA, "cgroup.freeze", "1"));
  outcome += ", " + std::to_string(field(tree, kA, "cgroup.events", "frozen"));
  outcome += " " + word(tree.write(kA, "cgroup.freeze", "0"));
  outcome += ", " + std::to_string(field(tree, kA, "cgroup.events", "frozen"));
  const int process = tree.spawn(kA);
  outcome += ", populated " + std::to_string(field(tree, kA, "cgroup.events", "populated"));
  tree.end(process);
  return outcome + " " + std::to_string(field(tree, kA, "cgroup.events", "populated"));
}

}  // namespace

std::vector<Claim> kernel_claims() {
  return {
      {"texts of cpu.max", texts_of_cpu_max,
       "ok 50000 100000; ok 40000 20000; ok max 20000; ok max 200000; EINVAL max 200000; "
       "ok 1000 100000; EINVAL 1000 100000; EINVAL 1000 100000; EINVAL 1000 100000; "
       "ok 50000 100000; ok 60000 50000; "},
      {"texts of cpu.max.burst", texts_of_burst,
       "EINVAL 0; ok 50000; EINVAL 50000; EINVAL 50000; quota down: EINVAL 50000 100000; "
       "burst down: ok; quota down: ok; without quota: ok ok"},
      {"texts of cpu.weight", texts_of_weight,
       "ok 1; ok 10000; ERANGE 10000; ERANGE 10000; EINVAL 10000; ok 32; "},
      {"texts of memory limits", texts_of_memory,
       "ok 1073741824; ok 1048576; ok 409600; ok 2097152; ok max; EINVAL max; EINVAL max; "
       "EINVAL max; EINVAL max; ok max; EINVAL max; ok 67108864; ok max; ok 67108864; ok max; "
       "ok 0; ok 4096; "},
      {"modes of files", modes_of_files, "EINVAL EINVAL EINVAL EINVAL EINVAL ENOENT ENOENT"},
      {"a removed cgroup", removed,
       "with child EBUSY, with process EBUSY, empty ok; held file ENODEV ENODEV, file in held "
       "directory ENOENT; again ok, another inode, held file ENODEV, in held directory ENOENT"},
      {"memory.max below anon", max_below_anon, "ok, dead, max=none oom=some oom_kill=1"},
      {"memory.max below shmem", max_below_shmem, "ok, dead, oom_kill=1, above"},
      {"memory.max below cache", max_below_cache,
       "cached, ok, lives, below, max=none oom=none oom_kill=0"},
      {"an allocation above memory.max", allocation_above_max,
       "lives, dead, max=some oom=some oom_kill=1"},
      {"cache that meets memory.max", cache_meets_max,
       "lives, below, max=some oom=none oom_kill=0"},
      {"the parent's memory.max", limit_of_parent,
       "dead; parent max=some oom=some oom_kill=1, local max=some oom=some oom_kill=0; child "
       "max=none oom=none oom_kill=1, local max=none oom=none oom_kill=1"},
      {"the child's memory.max", limit_of_child,
       "dead; parent max=some oom=some oom_kill=1, local max=none oom=none oom_kill=0; child "
       "local max=some oom=some oom_kill=1"},
      {"who is killed", largest_dies, "large dead, small lives"},
      {"memory.oom.group", group_dies, "large dead, small dead, oom_kill=3"},
      {"memory.high", above_high, "lives, high=some, max=none oom=none oom_kill=0"},
      {"memory.reclaim", reclaim_on_demand, "ok, EAGAIN, EINVAL, lives, below"},
      {"throttling", throttled,
       "free none, own quota some some, quota of the parent: child none, parent some"},
      {"the share of a quota", served_by_quota, "about a fifth"},
      {"cgroup.freeze", frozen, "ERANGE EINVAL ok, 1 ok, 0, populated 1 0"},
  };
}

}  // namespace cgphase::simulator
