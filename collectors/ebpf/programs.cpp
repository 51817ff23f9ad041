#include "collectors/ebpf/programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <skeletons/programs.skel.h>

#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "collectors/ebpf/probe.h"
#include "collectors/ebpf/program_record.h"
#include "collectors/ebpf/tiers.h"

namespace cgphase {
namespace {

const std::vector<Tier<programs>> kProgramTiers = {
    {"starts and reads", ProbeKind::copying, [](programs&) {}},
    {"starts", ProbeKind::copying,
     [](programs& skeleton) { bpf_program__set_autoload(skeleton.progs.on_read, false); }}};

}  // namespace

std::optional<ProgramAct> parse_program_act(std::span<const std::byte> record) {
  program_record raw;
  if (record.size() < sizeof(raw)) return std::nullopt;
  std::memcpy(&raw, record.data(), sizeof(raw));
  ProgramAct act{.container = raw.container,
                 .key = raw.key,
                 .age = std::chrono::nanoseconds(static_cast<std::int64_t>(raw.age_ns))};
  switch (raw.act) {
    case PROGRAM_STARTS: act.kind = ProgramAct::Kind::starts; break;
    case PROGRAM_READS_CPU: act.kind = ProgramAct::Kind::reads_cpu; break;
    case PROGRAM_READS_MEMORY: act.kind = ProgramAct::Kind::reads_memory; break;
    case PROGRAM_DROPPED: act.kind = ProgramAct::Kind::dropped; break;
    default: return std::nullopt;
  }
  act.command.assign(raw.command, ::strnlen(raw.command, sizeof(raw.command)));
  return act;
}

struct ProgramProbe::Impl final : ProgramStarts {
  static int take_act(void* self, void* data, std::size_t size) {
    auto& taken = static_cast<Impl*>(self)->taken;
    if (auto act = parse_program_act({static_cast<const std::byte*>(data), size}))
      taken.push_back(std::move(*act));
    return taken.size() < ProbeSource::kMostProgramActs ? 0 : -1;
  }
  static int take_start(void* self, void* data, std::size_t size) {
    auto& impl = *static_cast<Impl*>(self);
    std::uint64_t container = 0;
    if (size < sizeof(container)) return 0;
    std::memcpy(&container, data, sizeof(container));
    impl.notify(impl.listener, container);
    return --impl.left > 0 ? 0 : -1;
  }

  int fd() const override { return ring_buffer__epoll_fd(starts.get()); }
  void take(void (*notify_one)(void*, std::uint64_t), void* whom) override {
    notify = notify_one;
    listener = whom;
    left = PROGRAM_START_RING_BYTES / sizeof(std::uint64_t);
    (void)ring_buffer__consume(starts.get());
  }

  Started<programs> started;
  Ring acts;    // read by the owner of the probe
  Ring starts;  // read through ProgramStarts, as are the members below
  void (*notify)(void*, std::uint64_t) = nullptr;
  void* listener = nullptr;
  std::size_t left = 0;  // records left to report in this take()
  std::vector<ProgramAct> taken;
  std::uint64_t lost_before = 0;
};

ProgramProbe::ProgramProbe(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
ProgramProbe::ProgramProbe(ProgramProbe&&) noexcept = default;
ProgramProbe& ProgramProbe::operator=(ProgramProbe&&) noexcept = default;
ProgramProbe::~ProgramProbe() = default;

Result<ProgramProbe> ProgramProbe::start() {
  if (Status able = check_probes(); !able) return std::unexpected(able.error());
  auto impl = std::make_shared<Impl>();
  auto started = start_first<programs>("programs", kProgramTiers, [](programs&) {});
  if (!started) return std::unexpected(started.error());
  impl->started = std::move(*started);
  const auto& maps = impl->started.probe->maps;
  impl->acts.reset(
      ring_buffer__new(bpf_map__fd(maps.acts), Impl::take_act, impl.get(), nullptr));
  impl->starts.reset(
      ring_buffer__new(bpf_map__fd(maps.starts), Impl::take_start, impl.get(), nullptr));
  if (!impl->acts || !impl->starts)
    return probe_failure("reading", "programs", ProbeKind::copying, errno);
  return ProgramProbe(std::move(impl));
}

bool ProgramProbe::watch(std::uint64_t container, bool wanted) {
  const int map = bpf_map__fd(impl_->started.probe->maps.watched);
  if (!wanted) return bpf_map_delete_elem(map, &container) == 0;
  const watched_container fresh{};
  return bpf_map_update_elem(map, &container, &fresh, BPF_ANY) == 0;
}

void ProgramProbe::ignore(std::uint64_t container, std::uint64_t key, bool ignored) {
  const int map = bpf_map__fd(impl_->started.probe->maps.harmless);
  const program_key program = {container, key};
  const std::uint8_t yes = 1;
  if (ignored) (void)bpf_map_update_elem(map, &program, &yes, BPF_ANY);
  else (void)bpf_map_delete_elem(map, &program);
}

std::vector<ProgramAct> ProgramProbe::drain() {
  const std::uint64_t lost_now = lost();
  (void)ring_buffer__consume(impl_->acts.get());
  if (std::exchange(impl_->lost_before, lost_now) != lost_now)
    impl_->taken.push_back({.kind = ProgramAct::Kind::dropped, .command = {}});
  return std::exchange(impl_->taken, {});
}

std::string ProgramProbe::tier() const { return impl_->started.tier; }

bool ProgramProbe::reports_reads() const {
  return impl_->started.tier == kProgramTiers.front().name;
}

std::uint64_t ProgramProbe::lost() const {
  return __atomic_load_n(&impl_->started.probe->bss->lost, __ATOMIC_RELAXED);
}

std::shared_ptr<ProgramStarts> ProgramProbe::starts() const { return impl_; }

}  // namespace cgphase
