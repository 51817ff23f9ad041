#include "collectors/ebpf/kernel_pull.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <skeletons/pull.skel.h>
#include <skeletons/pull_css.skel.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "collectors/ebpf/tiers.h"

namespace cgphase {
namespace {

constexpr Tier<pull_css> kCssIterator = {"BPF css iterator", ProbeKind::copying,
                                         [](pull_css&) {}};
constexpr Tier<pull> kIterator = {"BPF iterator", ProbeKind::copying, [](pull& skeleton) {
                                    // Attached explicitly below.
                                    (void)bpf_program__set_autoattach(skeleton.progs.pull_each,
                                                                      false);
                                  }};

struct Unlink {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
using Link = std::unique_ptr<bpf_link, Unlink>;

template <class Skeleton>
class KernelPull final : public CgroupPull {
 public:
  KernelPull(Started<Skeleton> started, Fd root, std::size_t room)
      : started_(std::move(started)), root_(std::move(root)), room_(room) {
    for (std::size_t i = room; i > 0; --i) free_.push_back(static_cast<std::uint32_t>(i - 1));
  }
  ~KernelPull() override {
    if (records_ != nullptr) ::munmap(const_cast<pull_record*>(records_), map_bytes());
  }

  // Some errors appear only in the first walk, which is done here.
  Status open() {
    void* map = ::mmap(nullptr, map_bytes(), PROT_READ, MAP_SHARED,
                       bpf_map__fd(started_.probe->maps.records), 0);
    if (map == MAP_FAILED) return errno_failure("mapping the records of the program pull", errno);
    records_ = static_cast<const pull_record*>(map);
    if (Status ready = prepare(*started_.probe); !ready) return ready;
    if (!walk(0)) return errno_failure("running the BPF program pull", errno);
    return {};
  }

  const char* name() const override { return started_.tier; }

  std::optional<std::uint32_t> add(std::uint64_t inode) override {
    if (free_.empty()) return std::nullopt;
    const std::uint32_t place = free_.back();
    if (bpf_map_update_elem(places(), &inode, &place, BPF_ANY) != 0) return std::nullopt;
    free_.pop_back();
    return place;
  }
  void remove(std::uint64_t inode, std::uint32_t place) override {
    (void)bpf_map_delete_elem(places(), &inode);
    free_.push_back(place);
  }
  void choose(const MemoryChoice& choice) override {
    auto& bss = *started_.probe->bss;
    std::ranges::copy(choice.lines, bss.memory_index);
    for (std::uint32_t i = 0; i < PULL_RAW; ++i) bss.same_index[i] = i;
    std::ranges::copy(choice.same, bss.same_index);
  }

  bool walk(std::uint64_t raw_of) override {
    auto& bss = *started_.probe->bss;
    bss.tick = ++tick_;
    bss.raw_of = raw_of;
    walked_ = run(*started_.probe);
    return walked_;
  }
  bool one_flush() const override { return started_.probe->bss->one_flush != 0; }
  // A place whose cgroup was removed has a record of an earlier tick.
  const pull_record* record(std::uint32_t place) const override {
    return walked_ && records_[place].tick == tick_ ? &records_[place] : nullptr;
  }
  std::span<const std::uint64_t> raw() const override {
    const auto& bss = *started_.probe->bss;
    static_assert(sizeof bss.raw[0] == sizeof(std::uint64_t));
    if (!walked_ || bss.raw_tick != tick_) return {};
    return {reinterpret_cast<const std::uint64_t*>(bss.raw), PULL_RAW};
  }

 private:
  int places() const { return bpf_map__fd(started_.probe->maps.places); }
  std::size_t map_bytes() const {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return (room_ * sizeof(pull_record) + page - 1) / page * page;
  }

  Status prepare(pull_css& skeleton) {
    struct stat status{};
    if (::fstat(root_.get(), &status) != 0) return errno_failure("the root of cgroups", errno);
    skeleton.bss->root = status.st_ino;
    return {};
  }
  Status prepare(pull& skeleton) {
    bpf_iter_link_info where{};
    where.cgroup.cgroup_fd = static_cast<__u32>(root_.get());
    where.cgroup.order = BPF_CGROUP_ITER_DESCENDANTS_PRE;
    LIBBPF_OPTS(bpf_iter_attach_opts, options);
    options.link_info = &where;
    options.link_info_len = sizeof where;
    link_.reset(bpf_program__attach_iter(skeleton.progs.pull_each, &options));
    if (!link_) return probe_failure("attaching", "pull", ProbeKind::copying, errno);
    return {};
  }
  bool run(pull&) {
    const Fd walk(bpf_iter_create(bpf_link__fd(link_.get())));
    char nothing[64];
    ssize_t count = -1;
    while (walk.valid()) {
      count = ::read(walk.get(), nothing, sizeof nothing);
      if (count >= 0 || (errno != EINTR && errno != EAGAIN)) break;
    }
    return count == 0;
  }
  static bool run(pull_css& skeleton) {
    LIBBPF_OPTS(bpf_test_run_opts, options);
    return bpf_prog_test_run_opts(bpf_program__fd(skeleton.progs.pull_all), &options) == 0 &&
           options.retval == 0;
  }

  Started<Skeleton> started_;
  Fd root_;
  const std::size_t room_;
  Link link_;  // link of the iterator
  const pull_record* records_ = nullptr;
  std::vector<std::uint32_t> free_;
  std::uint64_t tick_ = 0;
  bool walked_ = false;
};

template <class Skeleton>
Result<std::unique_ptr<CgroupPull>> start_way(const std::string& cgroup_root, std::size_t room,
                                              const Tier<Skeleton>& way) {
  Result<Fd> root = open_path(cgroup_root, O_RDONLY | O_DIRECTORY);
  if (!root) return std::unexpected(root.error());
  const auto prepare = [&](Skeleton& skeleton) {
    (void)bpf_map__set_max_entries(skeleton.maps.places, static_cast<std::uint32_t>(room));
    (void)bpf_map__set_max_entries(skeleton.maps.records, static_cast<std::uint32_t>(room));
  };
  auto started = start_first<Skeleton>("pull", {way}, prepare);
  if (!started) return std::unexpected(started.error());
  auto walker =
      std::make_unique<KernelPull<Skeleton>>(std::move(*started), std::move(*root), room);
  if (Status open = walker->open(); !open) return std::unexpected(open.error());
  return walker;
}

}  // namespace

Result<std::unique_ptr<CgroupPull>> start_kernel_pull(const std::string& cgroup_root,
                                                      std::size_t room, std::string_view way) {
  if (Status types = check_types(); !types) return std::unexpected(types.error());
  std::optional<Error> refusal;
  const auto start = [&](const auto& tier) -> std::unique_ptr<CgroupPull> {
    if (!way.empty() && way != tier.name) return nullptr;
    auto started = start_way(cgroup_root, room, tier);
    if (started) return std::move(*started);
    if (!refusal) refusal = std::move(started.error());
    else refusal->text += "; " + started.error().text;
    return nullptr;
  };
  if (auto walker = start(kCssIterator)) return walker;
  if (auto walker = start(kIterator)) return walker;
  return std::unexpected(refusal.value_or(Error{ErrorKind::invalid, "no such way"}));
}

}  // namespace cgphase
