#include "collectors/ebpf/limit_writes.h"

#include <bpf/libbpf.h>
#include <skeletons/limit_writes.skel.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/parse.h"
#include "collectors/ebpf/cgroup_paths.h"
#include "collectors/ebpf/limit_write_record.h"
#include "collectors/ebpf/probe.h"

namespace cgphase {
namespace {

constexpr std::string_view kLimitFiles[] = {"memory.max", "memory.high", "cpu.max",
                                              "cpu.max.burst"};

// The text up to its terminating 0, or all bytes.
template <std::size_t size>
std::string_view text_in(const char (&bytes)[size]) {
  return {bytes, ::strnlen(bytes, size)};
}

// One call takes everything that the ring can contain.
static_assert(ProbeSource::kMostLimitWrites ==
              LIMIT_WRITE_RING_BYTES / (sizeof(limit_write_record) + LIMIT_WRITE_HEADER_BYTES));

}  // namespace

std::optional<LimitWrite> parse_limit_write(std::span<const std::byte> record) {
  limit_write_record raw;
  if (record.size() < sizeof(raw)) return std::nullopt;
  std::memcpy(&raw, record.data(), sizeof(raw));
  const std::string_view file = text_in(raw.file);
  if (std::ranges::find(kLimitFiles, file) == std::end(kLimitFiles)) return std::nullopt;
  const auto since_boot = std::chrono::nanoseconds(static_cast<std::int64_t>(raw.time_ns));
  return LimitWrite{.time = MonotonicTime(since_boot),
                    .directory = raw.directory,
                    .file = std::string(file),
                    .value = std::string(trim(text_in(raw.value))),
                    .pid = static_cast<pid_t>(raw.pid),
                    .command = std::string(text_in(raw.command)),
                    .writer_cgroup = raw.writer_cgroup};
}

struct LimitWriteProbe::Impl {
  explicit Impl(const std::string& cgroup_root) : paths(cgroup_root) {}

  // Callback of libbpf. A negative result ends the reading after this record.
  static int take_record(void* self, void* data, std::size_t size) {
    auto& impl = *static_cast<Impl*>(self);
    auto write = parse_limit_write({static_cast<const std::byte*>(data), size});
    if (!write) return 0;
    write->writer_path = impl.paths.find(write->writer_cgroup);
    impl.taken.push_back(std::move(*write));
    return impl.taken.size() < ProbeSource::kMostLimitWrites ? 0 : -1;
  }

  Probe<limit_writes> probe;
  Ring ring;  // the ring of the probe
  CgroupPaths paths;
  std::vector<LimitWrite> taken;
};

LimitWriteProbe::LimitWriteProbe(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LimitWriteProbe::LimitWriteProbe(LimitWriteProbe&&) noexcept = default;
LimitWriteProbe& LimitWriteProbe::operator=(LimitWriteProbe&&) noexcept = default;
LimitWriteProbe::~LimitWriteProbe() = default;

Result<LimitWriteProbe> LimitWriteProbe::start(const std::string& cgroup_root) {
  auto impl = std::make_unique<Impl>(cgroup_root);
  auto probe = start_probe<limit_writes>(
      "limit_writes", ProbeKind::copying, [](limit_writes& programs) {
        programs.rodata->own_pid = static_cast<__u32>(::getpid());
      });
  if (!probe) return std::unexpected(probe.error());
  impl->probe = std::move(*probe);
  impl->ring.reset(ring_buffer__new(bpf_map__fd(impl->probe->maps.writes), Impl::take_record,
                                    impl.get(), nullptr));
  if (!impl->ring) return probe_failure("reading", "limit_writes", ProbeKind::copying, errno);
  return LimitWriteProbe(std::move(impl));
}

std::vector<LimitWrite> LimitWriteProbe::drain() {
  (void)ring_buffer__consume(impl_->ring.get());
  return std::exchange(impl_->taken, {});
}

std::uint64_t LimitWriteProbe::lost() const {
  return __atomic_load_n(&impl_->probe->bss->lost, __ATOMIC_RELAXED);
}

}  // namespace cgphase
