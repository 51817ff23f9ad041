#include "tests/workloads/demo_raise.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace cgphase::workloads {

namespace {

using nlohmann::json;

// The fields of one resource.
struct RaisedKnob {
  const char *resource, *name, *limit, *use;
};
constexpr RaisedKnob kRaisedKnobs[] = {
    {"memory", "memory.high", "memory_bytes", "memory_need_bytes"},
    {"cpu", "cpu.max", "cpu_cores", "cpu_cores"}};

std::optional<double> number_of(const json& object, const char* key) {
  const json& value = object.at(key);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

// A letter if the phase is known.
char letter_of(const json& phase) {
  if (phase.at("state") != "known") return '?';
  return phase.at("letter").get<std::string>().at(0);
}

// Whether the policy asked for the raise. Other reasons answer use or pressure.
bool by_the_policy(const json& decision) {
  const json& reason = decision.at("reason");
  return decision.at("direction") == "raise" && decision.at("verdict") == "allowed" &&
         (reason == "phase_changed" || reason == "phase_statistics");
}

// Completes the raise with the point at which use passed the earlier limit. False if it never did,
// if it did in the same or in no known phase, or if the limit was lowered again before.
bool complete(const RaisedKnob& knob, double begin, double time, const std::vector<json>& points,
              Raise& raise) {
  const json* before = nullptr;
  for (const json& point : points) {
    const double at = point.at("time").get<double>();
    if (at < begin) continue;
    if (at <= time) {
      before = &point;
      continue;
    }
    const auto limit = number_of(point.at("limits"), knob.limit);
    if (before == nullptr || (limit && *limit <= raise.from)) return false;
    const double use = number_of(point, knob.use).value_or(0);
    if (use <= raise.from) continue;
    raise.seconds_before = at - time;
    raise.use_then = number_of(*before, knob.use).value_or(0);
    raise.use = use;
    raise.phase_then = letter_of(before->at("phase"));
    raise.phase = letter_of(point.at("phase"));
    return raise.use_then <= raise.from && raise.phase_then != '?' && raise.phase != '?' &&
           raise.phase != raise.phase_then;
  }
  return false;
}

// Whether both precede the same rise of use.
bool same_rise(const Raise& a, const Raise& b) {
  constexpr double kRounding = 1e-3;
  return a.knob == b.knob &&
         std::abs(a.second + a.seconds_before - b.second - b.seconds_before) < kRounding;
}

}  // namespace

std::vector<Raise> raises_before_phases(const std::string& container, double begin,
                                        const std::vector<json>& events,
                                        const std::vector<json>& points) {
  std::vector<Raise> raises;
  for (const json& event : events) {
    if (event.at("event") != "decision" || event.at("name") != container) continue;
    const json& decision = event.at("decision");
    const double time = decision.at("time").get<double>();
    if (time < begin || !by_the_policy(decision)) continue;
    for (const RaisedKnob& knob : kRaisedKnobs) {
      const auto from = number_of(decision.at("old_limits"), knob.limit);
      const auto to = number_of(decision.at("new_limits"), knob.limit);
      if (decision.at("resource") != knob.resource || !from || !to) continue;
      Raise raise{.container = container, .knob = knob.name, .second = time - begin,
                  .from = *from, .to = *to};
      if (!complete(knob, begin, time, points, raise)) continue;
      if (raises.empty() || !same_rise(raises.back(), raise))
        raises.push_back(raise);
      else if (raise.to - raise.from > raises.back().to - raises.back().from)
        raises.back() = raise;
    }
  }
  return raises;
}

std::string to_text(const Raise& raise) {
  const auto amount = [&](double value) {
    return raise.knob == "cpu.max" ? fmt::format("{:.2f} cores", value) : human_bytes(value);
  };
  return fmt::format(
      "{}: {} rose from {} to {} at second {:.0f}, in phase {}, while {} were in use; {:.0f} s "
      "later, in phase {}, {} were",
      raise.container, raise.knob, amount(raise.from), amount(raise.to), raise.second,
      raise.phase_then, amount(raise.use_then), raise.seconds_before, raise.phase,
      amount(raise.use));
}

}  // namespace cgphase::workloads
