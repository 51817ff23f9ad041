#include "agent/overrides.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace cgphase {
namespace {

// A command waits at most this long for the disk: less than its client waits for the answer.
constexpr std::chrono::seconds kSavePatience{1};

}  // namespace

Overrides::Overrides(OverrideTable table, const Config& config, const Clock& clock,
                     StoreThread* store, Post post)
    : table_(std::move(table)), config_(config), clock_(clock), store_(store),
      post_(std::move(post)) {}

std::optional<TimedMode> Overrides::own_mode(const ContainerInfo& info) const {
  if (const auto of_id = modes_by_id_.find(info.id); of_id != modes_by_id_.end())
    return of_id->second;
  const auto of_name = table_.of(info).mode.in_force();
  return of_name && kept_by_name(info, of_name->mode) ? of_name : std::nullopt;
}

// Advise and enforce apply to containers without a mode of their own.
Mode Overrides::ceiling() const {
  const auto& host = table_.host().in_force();
  return host && host->mode == Mode::observe ? Mode::observe : Mode::enforce;
}

Mode Overrides::asked_mode(const ContainerInfo& info) const {
  const auto own = own_mode(info);
  if (!own) return mode_for(config_, info);
  return std::min({own->mode, ceiling(), info.hands_off.empty() ? Mode::enforce : Mode::advise});
}

bool Overrides::kept_by_name(const ContainerInfo& info, Mode mode) const {
  return info.made_by_root || mode <= mode_for(config_, info);
}

ModeRequest Overrides::changed(ModeRequest request, std::optional<Mode> mode,
                               bool until_restart) const {
  if (!mode) return {};
  const TimedMode asked{.mode = *mode, .since = clock_.wall_now()};
  if (!until_restart) return {.lasting = asked, .until_restart = {}};
  request.until_restart = asked;
  return request;
}

void Overrides::set_host_mode(std::optional<Mode> mode, bool until_restart) {
  table_.set_host(changed(table_.host(), mode, until_restart));
  save();
}

Status Overrides::set_mode(const ContainerInfo& info, std::optional<Mode> mode,
                           bool until_restart) {
  modes_by_id_.erase(info.id);
  Status kept;
  if (mode && !kept_by_name(info, *mode)) {
    modes_by_id_[info.id] = {*mode, clock_.wall_now()};
  } else {
    Override one = table_.of(info);
    one.mode = changed(one.mode, mode, until_restart);
    kept = table_.set(info, one);
  }
  save();
  return kept;
}

Status Overrides::set_paused(const ContainerInfo& info, bool paused) {
  Override one = table_.of(info);
  one.paused = paused;
  const Status kept = table_.set(info, one);
  save();
  return kept;
}

std::size_t Overrides::forget_modes(const std::string& name) {
  const std::size_t count = table_.forget_modes(name);
  if (count > 0) save();
  return count;
}

void Overrides::drop_host_mode() {
  if (table_.lost()) return;
  table_.set_host({});
  save();
}

// The store's thread saves, because the loop must not wait for a disk, and because an older state
// that waits in its queue must not be written after a newer one.
void Overrides::save() {
  const auto finish = [this](const Status& saved) {
    saves_begun_ -= 1;
    save_error_ = saved ? "" : saved.error().text;
    answer_saved();
  };
  saves_begun_ += 1;
  if (store_ == nullptr) return finish(table_.save());
  const bool queued = store_->query([post = post_, finish, table = table_](Store&) {
    post([finish, saved = table.save()] { finish(saved); });
  });
  if (!queued) finish(failure(ErrorKind::io, "too much waits for the disk"));
}

void Overrides::after_save(AfterSave then) {
  after_save_.emplace_back(clock_.monotonic_now(), std::move(then));
  answer_saved();
}

void Overrides::answer_saved() {
  if (after_save_.empty()) return;
  const MonotonicTime now = clock_.monotonic_now();
  std::vector<std::pair<MonotonicTime, AfterSave>> waiting = std::exchange(after_save_, {});
  for (auto& [since, then] : waiting) {
    if (saves_begun_ == 0) then(save_error_);
    else if (now - since >= kSavePatience) then("the disk does not answer");
    else after_save_.emplace_back(since, std::move(then));
  }
}

}  // namespace cgphase
