// Which mode a container has, what administrators asked for, and how that is kept.
#include <algorithm>
#include <utility>

#include "agent/agent.h"

namespace cgphase {
namespace {

// A command waits this long for the disk: less than its client waits for the answer.
constexpr std::chrono::seconds kSavePatience{1};

}  // namespace

Mode Agent::mode_of(const ContainerInfo& info) const {
  if (kill_switch_ || !may_write() || paused(info)) return Mode::observe;
  // As for a container that somebody else manages: the journal then tells what holds it.
  return std::min(asked_mode(info), standing_down().empty() ? Mode::enforce : Mode::advise);
}

Mode Agent::asked_mode(const ContainerInfo& info) const {
  const auto own = own_mode(info);
  if (!own) return mode_for(config_, info);
  return std::min({own->mode, mode_ceiling(),
                   info.hands_off.empty() ? Mode::enforce : Mode::advise});
}

std::optional<AskedMode> Agent::own_mode(const ContainerInfo& info) const {
  if (const auto of_id = asked_modes_.find(info.id); of_id != asked_modes_.end())
    return of_id->second;
  const auto of_name = parts_.holds.of(info).mode.in_force();
  return of_name && kept_by_name(info, of_name->mode) ? of_name : std::nullopt;
}

// Advise and enforce are for containers without a mode of their own.
Mode Agent::mode_ceiling() const {
  const auto& asked = parts_.holds.host().in_force();
  return asked && asked->mode == Mode::observe ? Mode::observe : Mode::enforce;
}

std::vector<const ContainerView*> Agent::capped() const {
  std::vector<const ContainerView*> capped;
  for (const ContainerView* view : parts_.pipeline.containers())
    if (const auto own = own_mode(view->info); own && own->mode > mode_ceiling())
      capped.push_back(view);
  return capped;
}

// A host that cannot be written to gets no more than its configuration says, which was checked.
void Agent::follow_host_mode() {
  const auto& asked = parts_.holds.host().in_force();
  config_.mode = asked ? asked->mode : configured_mode_;
  if (parts_.writer == nullptr) config_.mode = std::min(config_.mode, configured_mode_);
}

ModeRequest Agent::changed(ModeRequest request, std::optional<Mode> mode,
                           bool until_restart) const {
  if (!mode) return {};
  const AskedMode asked{.mode = *mode, .since = clock_.wall_now()};
  if (!until_restart) return {.lasting = asked, .until_restart = {}};
  request.until_restart = asked;
  return request;
}

LimitWriter::RestoreReport Agent::set_mode(std::optional<Mode> mode, bool until_restart) {
  parts_.holds.end_loss();
  // No ceiling, and no more than the configuration allows.
  if (mode == Mode::enforce && configured_mode_ == Mode::enforce && !until_restart) mode.reset();
  parts_.holds.set_host(changed(parts_.holds.host(), mode, until_restart));
  save_holds();
  follow_host_mode();
  return apply_modes();
}

LimitWriter::RestoreReport Agent::set_mode(CgroupId id, std::optional<Mode> mode,
                                           bool until_restart) {
  const ContainerView* view = parts_.pipeline.find(id);
  if (view == nullptr) return {};
  asked_modes_.erase(id);
  Status kept;
  if (mode && !kept_by_name(view->info, *mode)) {
    asked_modes_[id] = {*mode, clock_.wall_now()};
  } else {
    Holds::Hold hold = parts_.holds.of(view->info);
    hold.mode = changed(hold.mode, mode, until_restart);
    kept = parts_.holds.set(view->info, hold);
  }
  save_holds();
  LimitWriter::RestoreReport report = apply_modes();
  if (!kept) report.failures.push_back(kept.error().text);
  return report;
}

std::size_t Agent::forget_modes(const std::string& name) {
  const std::size_t count = parts_.holds.forget_modes(name);
  if (count > 0) save_holds();
  return count;
}

// On the thread that may wait for a disk, where there is one: the loop must not, and an older state
// that waits there must not be written after a newer one.
void Agent::save_holds() {
  const auto note = [this](const Status& saved) {
    saves_begun_ -= 1;
    holds_error_ = saved ? "" : saved.error().text;
    answer_saved();
  };
  const auto save = [this, note, holds = parts_.holds](Store&) {
    post_([note, saved = holds.save()] { note(saved); });
  };
  saves_begun_ += 1;
  if (!parts_.store) note(parts_.holds.save());
  else if (!parts_.store->query(save))
    note(failure(ErrorKind::io, "too much waits for the disk"));
}

void Agent::after_save(AfterSave then) {
  after_save_.emplace_back(clock_.monotonic_now(), std::move(then));
  answer_saved();
}

void Agent::answer_saved() {
  const MonotonicTime now = clock_.monotonic_now();
  std::vector<std::pair<MonotonicTime, AfterSave>> waiting = std::exchange(after_save_, {});
  for (auto& [since, then] : waiting) {
    if (saves_begun_ == 0) then(holds_error_);
    else if (now - since >= kSavePatience) then("the disk does not answer");
    else after_save_.emplace_back(since, std::move(then));
  }
}

}  // namespace cgphase
