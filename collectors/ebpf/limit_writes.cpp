#include "collectors/ebpf/limit_writes.h"

#include <bpf/libbpf.h>
#include <fcntl.h>
#include <skeletons/limit_writes.skel.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/parse.h"
#include "collectors/ebpf/limit_write_record.h"
#include "collectors/ebpf/probe.h"

namespace cgphase {
namespace {

constexpr std::string_view kLimitFiles[] = {"memory.max", "cpu.max", "cpu.max.burst"};

// Up to the 0 that ends it, or all of it.
template <std::size_t size>
std::string_view text_in(const char (&bytes)[size]) {
  return {bytes, ::strnlen(bytes, size)};
}

// Where an open descriptor leads.
std::string path_of(int fd) {
  std::array<char, 4096> path;
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : std::string();
}

// Paths of cgroups by their inodes: opened as a file server does, by the handle that is the inode,
// for a pid may be somebody else's by now. Takes CAP_DAC_READ_SEARCH.
class CgroupPaths {
 public:
  explicit CgroupPaths(const std::string& root) {
    Result<Fd> opened = open_path(root, O_RDONLY | O_DIRECTORY);
    if (!opened) return;
    root_ = std::move(*opened);
    root_path_ = path_of(root_.get());
  }

  // Empty where it is gone or cannot be known. The last answer is kept: who writes one limit
  // writes more.
  const CgroupPath& find(std::uint64_t inode) {
    if (inode != std::exchange(inode_, inode)) path_ = look(inode);
    return path_;
  }

 private:
  CgroupPath look(std::uint64_t inode) const {
    constexpr int kFileidKernfs = 0xfe;
    struct {
      unsigned bytes = sizeof(inode);
      int type = kFileidKernfs;
      std::uint64_t inode;
    } handle{.inode = inode};
    static_assert(sizeof(handle) == sizeof(file_handle) + sizeof(inode));
    const Fd directory(::open_by_handle_at(root_.get(), reinterpret_cast<file_handle*>(&handle),
                                           O_PATH | O_CLOEXEC));
    if (!directory.valid() || root_path_.empty()) return {};
    const std::string path = path_of(directory.get());
    if (path == root_path_) return "/";
    return path.starts_with(root_path_ + "/") ? path.substr(root_path_.size()) : CgroupPath();
  }

  Fd root_;
  std::string root_path_;
  std::uint64_t inode_ = 0;  // no cgroup has it
  CgroupPath path_;
};

// All that the ring can hold is taken at once.
static_assert(ProbeSource::kMostLimitWrites ==
              LIMIT_WRITE_RING_BYTES / (sizeof(limit_write_record) + LIMIT_WRITE_HEADER_BYTES));

struct FreeRing {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};

}  // namespace

std::optional<LimitWrite> parse_limit_write(std::span<const std::byte> record) {
  limit_write_record told;
  if (record.size() < sizeof(told)) return std::nullopt;
  std::memcpy(&told, record.data(), sizeof(told));
  const std::string_view file = text_in(told.file);
  if (std::ranges::find(kLimitFiles, file) == std::end(kLimitFiles)) return std::nullopt;
  const auto since_boot = std::chrono::nanoseconds(static_cast<std::int64_t>(told.time_ns));
  return LimitWrite{.time = MonotonicTime(since_boot),
                    .directory = told.directory,
                    .file = std::string(file),
                    .value = std::string(trim(text_in(told.value))),
                    .pid = static_cast<pid_t>(told.pid),
                    .command = std::string(text_in(told.command)),
                    .writer_cgroup = told.writer_cgroup};
}

struct LimitWriteProbe::Impl {
  explicit Impl(const std::string& cgroup_root) : paths(cgroup_root) {}

  // libbpf's: a negative answer ends the reading after this record.
  static int take_record(void* self, void* data, std::size_t size) {
    auto& impl = *static_cast<Impl*>(self);
    auto write = parse_limit_write({static_cast<const std::byte*>(data), size});
    if (!write) return 0;
    write->writer_path = impl.paths.find(write->writer_cgroup);
    impl.taken.push_back(std::move(*write));
    return impl.taken.size() < ProbeSource::kMostLimitWrites ? 0 : -1;
  }

  Probe<limit_writes> probe;
  std::unique_ptr<ring_buffer, FreeRing> ring;  // of the probe's
  CgroupPaths paths;
  std::vector<LimitWrite> taken;
};

LimitWriteProbe::LimitWriteProbe(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LimitWriteProbe::LimitWriteProbe(LimitWriteProbe&&) noexcept = default;
LimitWriteProbe& LimitWriteProbe::operator=(LimitWriteProbe&&) noexcept = default;
LimitWriteProbe::~LimitWriteProbe() = default;

Result<LimitWriteProbe> LimitWriteProbe::start(const std::string& cgroup_root) {
  auto impl = std::make_unique<Impl>(cgroup_root);
  auto probe = start_probe<limit_writes>("limit_writes", [](limit_writes& programs) {
    programs.rodata->own_pid = static_cast<__u32>(::getpid());
  });
  if (!probe) return std::unexpected(probe.error());
  impl->probe = std::move(*probe);
  impl->ring.reset(ring_buffer__new(bpf_map__fd(impl->probe->maps.writes), Impl::take_record,
                                    impl.get(), nullptr));
  if (!impl->ring) return probe_failure("reading", "limit_writes", errno);
  return LimitWriteProbe(std::move(impl));
}

std::vector<LimitWrite> LimitWriteProbe::take() {
  (void)ring_buffer__consume(impl_->ring.get());
  return std::exchange(impl_->taken, {});
}

std::uint64_t LimitWriteProbe::lost() const {
  return __atomic_load_n(&impl_->probe->bss->lost, __ATOMIC_RELAXED);
}

}  // namespace cgphase
