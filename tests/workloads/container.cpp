#include "tests/workloads/container.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/file.h"
#include "base/parse.h"

namespace cgphase::workloads {

namespace {

constexpr std::size_t kMaxKnobBytes = 65'536;
constexpr std::uint64_t kPeriodUsec = 100'000;
constexpr const char* kInit = "/bin/sleep";
constexpr const char* kForever = "infinity";
constexpr std::chrono::seconds kEndWait{10};

Status make_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
    return errno_failure("mkdir " + path, errno);
  return {};
}

Status write_file(const std::string& path, std::string_view text) {
  auto file = open_path(path, O_WRONLY);
  if (!file) return std::unexpected(file.error());
  return pwrite_text(file->get(), text);
}

}  // namespace

Status make_cgroup_parent(const std::string& directory) {
  if (auto status = make_directory(directory); !status) return status;
  return write_file(directory + "/cgroup.subtree_control", "+cpu +memory +io +pids");
}

Container::Container(const MixItem& item, const Options& options)
    : item_(item), options_(options), cgroup_(options.cgroup_parent + "/" + item.name) {
  item_.run.work_dir = options.work + "/" + item.name;
}

Result<Container> Container::create(const MixItem& item, const Options& options) {
  Container container(item, options);
  if (auto status = make_directory(container.item_.run.work_dir); !status)
    return std::unexpected(status.error());
  if (auto status = make_directory(container.cgroup_); !status)
    return std::unexpected(status.error());
  if (auto status = container.set_limits(); !status) return std::unexpected(status.error());
  const std::string image = "cgphase-workload/" + item.kind;
  // Kernels without user attributes on cgroup2 (before 5.7) leave the name as the only identity.
  if (setxattr(container.cgroup_.c_str(), kImageAttribute, image.data(), image.size(), 0) != 0 &&
      errno != EOPNOTSUPP)
    return errno_failure("setxattr " + container.cgroup_, errno);
  return container;
}

Status Container::set_limits() {
  const auto quota = std::llround(item_.limits.cpu_cores * static_cast<double>(kPeriodUsec));
  if (auto status = write_knob("cpu.max", fmt::format("{} {}", quota, kPeriodUsec)); !status)
    return status;
  return write_knob("memory.max", fmt::format("{}", item_.limits.memory_bytes));
}

Status Container::start() {
  auto init =
      Child::start({kInit, kForever}, {.out = "/dev/null", .err = "/dev/null", .cgroup = cgroup_});
  if (!init) return std::unexpected(init.error());
  init_ = std::move(*init);
  const RunOptions& run = item_.run;
  std::vector<std::string> words{
      options_.program, item_.kind, "--seed", fmt::format("{}", run.seed), "--size",
      fmt::format("{}", run.size), "--seconds", fmt::format("{}", run.seconds), "--wait",
      fmt::format("{}", run.wait), "--work-dir", run.work_dir, "--labels", labels_path(),
      "--result", result_path(), "--arithmetic", fmt::format("{}", run.arithmetic)};
  if (!run.far_end.empty()) words.insert(words.end(), {"--far-end", run.far_end});
  auto child = Child::start(
      words, {.err = options_.results + "/" + item_.name + ".err", .cgroup = cgroup_});
  if (!child) return std::unexpected(child.error());
  process_ = std::move(*child);
  return {};
}

Result<std::string> Container::read_knob(const char* name) const {
  auto text = read_file(cgroup_ + "/" + name, kMaxKnobBytes);
  if (!text) return text;
  return std::string(trim(*text));
}

std::optional<std::uint64_t> Container::read_keyed(const char* name, std::string_view key) const {
  const auto text = read_knob(name);
  if (!text) return std::nullopt;
  std::string_view rest = *text, line, word;
  while (next_line(rest, line))
    if (next_word(line, word) && word == key) return parse_u64(trim(line));
  return std::nullopt;
}

Status Container::write_knob(const char* name, std::string_view value) const {
  return write_file(cgroup_ + "/" + name, value);
}

Status Container::remove() {
  for (Child* child : {&process_, &init_}) {
    child->send(SIGKILL);
    child->wait(kEndWait);
  }
  if (rmdir(cgroup_.c_str()) != 0) return errno_failure("rmdir " + cgroup_, errno);
  return {};
}

}  // namespace cgphase::workloads
