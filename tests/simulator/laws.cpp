#include "tests/simulator/laws.h"

#include <algorithm>
#include <limits>

namespace cgphase::simulator {
namespace {

// A foreign write within this many calls after the agent's last read counts as simultaneous.
constexpr std::uint64_t kFreshCalls = 4;
// How late a thaw may be: the companion's two checks, and slices of simulated time.
constexpr std::chrono::milliseconds kLateThaw{650};
constexpr std::uint64_t kSmallestQuota = 10'000;  // 10 ms

std::size_t index_of(Knob knob) { return static_cast<std::size_t>(knob); }
std::size_t index_of(Lane lane) { return static_cast<std::size_t>(lane); }

std::string quote(const KnobText& text) { return "'" + std::string(text.view()) + "'"; }

std::string quote(const std::vector<KnobText>& texts) {
  std::string list;
  for (const KnobText& text : texts) list += (list.empty() ? "" : " or ") + quote(text);
  return list;
}

Limits limits_of(Knob knob, const KnobText& text) {
  Limits limits;
  (void)parse_knob(knob, text.view(), limits);
  return limits;
}

}  // namespace

std::optional<Knob> knob_of(std::string_view file) {
  for (const Knob knob : kKnobs)
    if (file == file_name(knob)) return knob;
  return std::nullopt;
}

std::string Laws::name(std::uint64_t inode, Knob knob) const {
  const std::string path = kernel_.cgroup(inode) ? kernel_.path_of(inode) : "(gone)";
  return path.substr(0, 32) + "#" + std::to_string(inode) + "/" + file_name(knob);
}

KnobText Laws::value(const CgroupKernel& kernel, std::uint64_t inode, Knob knob) const {
  std::string text;
  if (kernel.read(inode, file_name(knob), text) != 0) return {};
  return KnobText::from(text.substr(0, text.find('\n'))).value_or(KnobText{});
}

void Laws::violate(std::string text) {
  if (violation_.empty()) violation_ = std::move(text);
}

void Laws::appeared(std::uint64_t inode) {
  Wills& wills = wills_[inode];
  for (const Knob knob : kKnobs)
    wills[index_of(knob)] = {{value(kernel_, inode, knob)}, {}, step_};
}

void Laws::vanished(std::uint64_t inode) {
  wills_.erase(inode);
  freezes_.erase(inode);
}

void Laws::others_wrote(std::uint64_t inode, Knob knob) {
  Will& will = wills_.at(inode)[index_of(knob)];
  will.before = std::exchange(will.now, {value(kernel_, inode, knob)});
  will.step = ++step_;
}

const std::vector<KnobText>& Laws::intents(std::uint64_t inode, Knob knob) const {
  return wills_.at(inode)[index_of(knob)].now;
}

bool Laws::intended(const Will& will, Knob knob, const KnobText& text) const {
  return std::any_of(will.now.begin(), will.now.end(),
                     [&](const KnobText& one) { return same_value(knob, one, text); });
}

bool Laws::as_intended(std::uint64_t inode, Knob knob) const {
  return intended(wills_.at(inode)[index_of(knob)], knob, value(kernel_, inode, knob));
}

void Laws::looked(const Call& call) {
  ++step_;
  const std::size_t lane = index_of(call.lane);
  ++calls_[lane];
  const auto knob = knob_of(call.file);
  if (call.kind == Call::Kind::read && knob)
    looks_[lane][{call.inode, *knob}] = {step_, calls_[lane]};
}

void Laws::time_passed_in(Lane lane) { looks_[index_of(lane)].clear(); }

void Laws::will_write(const Call& call) {
  if (call.file.ends_with(".pressure")) return;      // a trigger, not a limit
  if (kernel_.cgroup(call.inode) == nullptr) return;  // the kernel will refuse
  const auto facts = facts_(call.inode);
  if (call.file == "memory.reclaim") {
    ++tally_.reclaims;
    // What was granted comes back only below what is in use, whatever the mode is now.
    if (!facts || !(facts->may_write || facts->most_bytes > 0))
      violate("memory.reclaim without permission");
    return;
  }
  const auto knob = knob_of(call.file);
  if (!knob || !facts)
    return violate("a write outside the allowed files: " + std::string(call.file) + " of #" +
                   std::to_string(call.inode));
  const auto text = KnobText::from(call.text.substr(0, call.text.find('\n')));
  if (!text) return violate("a value that is too long for " + name(call.inode, *knob));
  const auto found = wills_.find(call.inode);
  if (found == wills_.end())
    return violate("a write outside of containers: " + std::string(call.file));
  Will& will = found->second[index_of(*knob)];
  judge_race(call, *knob, will);
  if (intended(will, *knob, *text)) {
    ++tally_.restored;
    const auto bytes = *knob == Knob::memory_max ? limits_of(*knob, *text).memory_max->bytes
                                                 : std::nullopt;
    if (bytes && bytes->value < kernel_.need_bytes(call.inode))
      violate("put back below need of " + std::to_string(kernel_.need_bytes(call.inode)) + ": " +
              quote(*text) + " in " + name(call.inode, *knob));
    return;
  }
  judge_ours(call, *knob, *text, will);
}

// Checks whether a foreign value that this thread had not read is about to be overwritten.
void Laws::judge_race(const Call& call, Knob knob, Will& will) {
  const std::size_t lane = index_of(call.lane);
  const auto look = looks_[lane].find({call.inode, knob});
  const bool seen = look != looks_[lane].end() && look->second.step >= will.step;
  const bool holds_theirs = intended(will, knob, value(kernel_, call.inode, knob));
  if (seen || !holds_theirs || will.before.empty()) return;
  const bool fresh = look != looks_[lane].end() &&
                     calls_[lane] - look->second.call <= kFreshCalls;
  if (!fresh)
    return violate("the foreign " + quote(will.now) + " in " + name(call.inode, knob) +
                   " is overwritten, although not read, with '" + std::string(call.text) + "'");
  ++tally_.lost_races;
  for (const KnobText& one : will.before)
    if (!intended(will, knob, one)) will.now.push_back(one);
  will.before.clear();
}

// Checks a value of the agent.
void Laws::judge_ours(const Call& call, Knob knob, const KnobText& text, const Will& will) {
  const auto facts = facts_(call.inode);
  const std::string what = quote(text) + " in " + name(call.inode, knob);
  if (!facts->may_write) return violate("written to a container that must not be changed: " + what);
  const bool agreed = (knob != Knob::memory_max || facts->most_bytes > 0) &&
                      (knob != Knob::cgroup_freeze || facts->freeze_longest.count() > 0);
  if (!agreed || (knob == Knob::cpu_weight && !facts->may_weigh))
    return violate("a knob that cgphase never writes: " + what);
  Limits after;
  if (!parse_knob(knob, text.view(), after)) return violate("malformed: " + what);
  if (knob == Knob::cpu_weight) {
    judge_weight(*after.cpu_weight, will, what);
    return judge_lease(call, knob, text, will);
  }
  if (knob == Knob::cgroup_freeze) {
    judge_freezing(call, will, what);
    return judge_lease(call, knob, text, will);
  }
  // After a lost race several originals are allowed, and a grant is above one of them.
  const bool granted = std::ranges::any_of(will.now, [&](const KnobText& one) {
    return compare_knob(knob, after, limits_of(knob, one)) > 0;
  });
  if (knob == Knob::memory_max && !granted) return violate("below the original: " + what);
  if (knob == Knob::memory_max || above(will, knob, after))
    return judge_granted(call, knob, after, will, what);
  judge_lease(call, knob, text, will);
  judge_lowering(call, knob, after);
}

bool Laws::above(const Will& will, Knob knob, const Limits& after) const {
  return std::all_of(will.now.begin(), will.now.end(), [&](const KnobText& one) {
    return compare_knob(knob, after, limits_of(knob, one)) > 0;
  });
}

void Laws::judge_granted(const Call& call, Knob knob, const Limits& after, const Will& will,
                         const std::string& what) {
  ++tally_.granted;
  const auto facts = facts_(call.inode);
  double found = std::numeric_limits<double>::infinity(), most = 0;
  if (knob == Knob::cpu_max && after.cpu_cores()) {
    found = after.cpu_cores()->value;
    most = facts->most_cores;
  } else if (knob == Knob::memory_max && after.memory_max->bytes) {
    found = static_cast<double>(after.memory_max->bytes->value);
    most = facts->most_bytes;
  }
  if (found > most * 1.001)
    return violate("above the original " + quote(will.now) + ", without consent: " + what);
  if (call.lane == Lane::fast_path) violate("granted by the fast path: " + what);
  const KnobText text = *format_knob(knob, after);
  judge_lease(call, knob, text, will);
  if (knob != Knob::memory_max) return;
  const Limits before = limits_of(knob, value(kernel_, call.inode, knob));
  if (compare_knob(knob, after, before) < 0 && found < static_cast<double>(
                                                           kernel_.need_bytes(call.inode)))
    violate("below need of " + std::to_string(kernel_.need_bytes(call.inode)) + ": " + what);
}

void Laws::judge_freezing(const Call& call, const Will& will, const std::string& what) {
  ++tally_.frozen;
  if (call.lane != Lane::lowering) violate("frozen by another thread: " + what);
  const auto lease = lease_of(call.inode, Knob::cgroup_freeze);
  const MonotonicTime now{std::chrono::nanoseconds(time_ns())};
  const auto longest = facts_(call.inode)->freeze_longest;
  if (!lease || lease->deadline == MonotonicTime{} || lease->deadline > now + longest)
    violate("frozen without a deadline, or beyond consent: " + what);
  if (!intended(will, Knob::cgroup_freeze, *KnobText::from("0")))
    violate("somebody else has frozen it: " + what);
  const Freeze& last = freezes_[call.inode];
  const std::chrono::nanoseconds runs{time_ns() - last.runs_since_ns};
  if (!last.now && runs + kLateThaw < last.before) violate("frozen again too soon: " + what);
}

void Laws::judge_freeze(std::uint64_t inode, std::chrono::nanoseconds passed) {
  const bool now = frozen(inode);
  const auto found = freezes_.find(inode);
  if (!now && found == freezes_.end()) return;
  Freeze& one = freezes_[inode];
  if (now && !one.now) one.still = one.still.zero();
  if (now) one.still += passed;
  if (!now && one.now) one = {.before = one.still, .runs_since_ns = time_ns()};
  one.now = now;
  const auto facts = facts_(inode);
  if (now && facts && one.still > facts->freeze_longest + kLateThaw)
    violate("still frozen after " + std::to_string(one.still.count() / 1'000'000) + " ms: " +
            name(inode, Knob::cgroup_freeze));
}

void Laws::judge_weight(std::uint32_t weight, const Will& will, const std::string& what) {
  ++tally_.weighed;
  const bool near = std::ranges::any_of(will.now, [&](const KnobText& one) {
    const std::uint32_t original = limits_of(Knob::cpu_weight, one).cpu_weight.value_or(0);
    return weight <= 10 * original && 10 * weight >= original;
  });
  if (!near) violate("more than ten times or less than a tenth: " + what);
}

void Laws::judge_lowering(const Call& call, Knob knob, const Limits& after) {
  const KnobText now = value(kernel_, call.inode, knob);
  const Limits before = limits_of(knob, now);
  const std::string what = "'" + std::string(call.text) + "' over " + quote(now) + " in " +
                           name(call.inode, knob);
  if (knob == Knob::cpu_max && before.cpu_max && after.cpu_max->period != before.cpu_max->period)
    violate("the period changed: " + what);
  if (compare_knob(knob, after, before) >= 0) {
    ++tally_.raised;
    return;
  }
  ++tally_.lowered;
  if (knob == Knob::cpu_max && !facts_(call.inode)->may_lower_quota)
    violate("lowered although there is a GPU: " + what);
  if (call.lane == Lane::companion) violate("lowered by the companion: " + what);
  if (knob == Knob::memory_high &&
      after.memory_high->bytes->value < kernel_.need_bytes(call.inode))
    violate("below need of " + std::to_string(kernel_.need_bytes(call.inode)) + ": " + what);
  if (knob == Knob::cpu_max && after.cpu_max->quota->value < kSmallestQuota)
    violate("below 10 ms per period: " + what);
}

void Laws::judge_lease(const Call& call, Knob knob, const KnobText& text, const Will& will) {
  const auto lease = lease_of(call.inode, knob);
  const std::string what = quote(text) + " in " + name(call.inode, knob);
  if (!lease) return violate("written without a lease: " + what);
  if (!lease->is_ours(knob, text)) return violate("the lease does not name " + what);
  if (!intended(will, knob, lease->original))
    violate("the lease would restore " + quote(lease->original) + ", not " + quote(will.now) +
            ": " + what);
}

std::optional<LeaseValues> Laws::lease_of(std::uint64_t inode, Knob knob) const {
  if (!leases_) return std::nullopt;
  for (int record = 0; record < leases_->record_count(); ++record)
    if (auto values = leases_->read_values(record, {kSimulatedDevice, inode}, knob)) return values;
  return std::nullopt;
}

void Laws::judge_kills(const std::vector<OomKill>& kills) {
  for (const OomKill& kill : kills) {
    ++tally_.kills;
    const auto found = wills_.find(kill.limiting);
    if (found == wills_.end()) continue;  // the limit of a slice, which is not ours
    const KnobText max = value(kernel_, kill.limiting, Knob::memory_max);
    const Will& will = found->second[index_of(Knob::memory_max)];
    if (!intended(will, Knob::memory_max, max) &&
        !above(will, Knob::memory_max, limits_of(Knob::memory_max, max)))
      violate("killed by the agent's " + quote(max) + " in " +
              name(kill.limiting, Knob::memory_max));
  }
}

void Laws::judge_refused(const LimitChange& change, const LimitResult& result) {
  if (result.written || kernel_.cgroup(change.id.inode) == nullptr) return;
  for (const Knob knob : kKnobs) {
    const Limits now = limits_of(knob, value(kernel_, change.id.inode, knob));
    if (compare_knob(knob, change.new_limits, change.old_limits) >= 0) continue;
    ++tally_.refused;
    if (compare_knob(knob, now, change.new_limits) == 0)
      violate("refused (" + result.error + "), and yet in force: " +
              quote(value(kernel_, change.id.inode, knob)) + " in " + name(change.id.inode, knob));
  }
}

void Laws::judge_recoverable(const char* when) {
  for (const auto& [inode, wills] : wills_) {
    for (const Knob knob : kKnobs) {
      const Will& will = wills[index_of(knob)];
      const KnobText now = value(kernel_, inode, knob);
      if (intended(will, knob, now)) continue;
      const auto lease = lease_of(inode, knob);
      if (!lease || !lease->is_ours(knob, now) || !intended(will, knob, lease->original))
        return violate(std::string(when) + ": " + quote(now) + " is in " + name(inode, knob) +
                       " and no lease contains the original " + quote(will.now));
    }
  }
}

bool Laws::in_use(const CgroupKernel& kernel, std::uint64_t inode, Knob knob,
                  const KnobText& now, const Will& will) const {
  if (knob != Knob::memory_max || !above(will, knob, limits_of(knob, now))) return false;
  // Reclaim may end early, and then cache counts, too.
  const auto used = static_cast<double>(kernel.cgroup(inode)->memory.current);
  return std::ranges::any_of(will.now, [&](const KnobText& one) {
    const auto bytes = limits_of(knob, one).memory_max->bytes;
    return bytes && used > 0.85 * static_cast<double>(bytes->value);
  });
}

void Laws::judge_restored(const CgroupKernel& kernel, const char* when) {
  for (const auto& [inode, wills] : wills_) {
    for (const Knob knob : kKnobs) {
      const Will& will = wills[index_of(knob)];
      const KnobText now = value(kernel, inode, knob);
      if (intended(will, knob, now)) continue;
      if (in_use(kernel, inode, knob, now, will)) ++tally_.kept;
      else
        return violate(std::string(when) + ": " + quote(now) + " in " + name(inode, knob) +
                       " instead of " + quote(will.now));
    }
  }
}

}  // namespace cgphase::simulator
