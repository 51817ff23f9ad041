#include "model/installed_models.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/parse.h"
#include "base/text.h"

namespace cgphase {
namespace {

constexpr const char* kLink = "current";
constexpr std::string_view kSuffix = ".json";
constexpr std::size_t kMostDigits = 9;  // of a number, so that no file name overflows

std::string folder_of(const std::string& state_dir) { return state_dir + "/models"; }

// "12.json" is 12. "012.json" and all other names have no number.
std::optional<std::uint64_t> number_of(std::string_view name) {
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  if (name.empty() || name.size() > kMostDigits || name.front() == '0') return std::nullopt;
  return parse_u64(name);
}

WallTime time_of(const struct stat& status) {
  return WallTime(std::chrono::seconds(status.st_mtim.tv_sec) +
                  std::chrono::nanoseconds(status.st_mtim.tv_nsec));
}

Status read_link(const std::string& folder, InstalledModels& found) {
  const std::string link = folder + "/" + kLink;
  std::array<char, 64> target;
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
  if (length < 0 && errno == ENOENT) return {};
  if (length < 0 && errno != EINVAL) return errno_failure(escape_name(link), errno);
  if (length > 0)
    found.current = number_of({target.data(), static_cast<std::size_t>(length)});
  if (!found.current)
    return failure(ErrorKind::invalid,
                   escape_name(link) + ": is not a link to a model in its folder");
  struct stat status{};
  if (::lstat(link.c_str(), &status) == 0) found.since = time_of(status);
  return {};
}

Status sync_folder(const Fd& folder, const std::string& name) {
  return ::fsync(folder.get()) == 0 ? Status{} : errno_failure(escape_name(name), errno);
}

}  // namespace

std::vector<InstalledModel> InstalledModels::in_order() const {
  std::vector<InstalledModel> order;
  if (!current) return order;
  for (auto model = models.rbegin(); model != models.rend(); ++model)
    if (model->number <= *current) order.push_back(*model);
  return order;
}

Result<InstalledModels> installed_models(const std::string& state_dir) {
  const std::string folder = folder_of(state_dir);
  InstalledModels found;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const auto number = number_of(entries->path().filename().native());
    struct stat status{};
    if (!number || ::lstat(entries->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode))
      continue;
    found.models.push_back({*number, entries->path().native(), time_of(status)});
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return errno_failure(escape_name(folder), error.value());
  std::ranges::sort(found.models, {}, &InstalledModel::number);
  if (Status link = read_link(folder, found); !link) return std::unexpected(link.error());
  return found;
}

ModelInstaller::ModelInstaller(std::string state_dir, Fd lock)
    : state_dir_(std::move(state_dir)), folder_(folder_of(state_dir_)), lock_(std::move(lock)) {}

Result<ModelInstaller> ModelInstaller::open(const std::string& state_dir) {
  const std::string folder = folder_of(state_dir);
  if (::mkdir(folder.c_str(), 0750) != 0 && errno != EEXIST)
    return errno_failure(escape_name(folder), errno);
  Result<Fd> lock = open_path(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!lock) return std::unexpected(lock.error());
  if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0)
    return failure(ErrorKind::io, escape_name(folder) +
                                      ": another process is installing a model; "
                                      "try again");
  if (::access(folder.c_str(), W_OK) != 0) return errno_failure(escape_name(folder), errno);
  return ModelInstaller(state_dir, *std::move(lock));
}

std::string ModelInstaller::path_of(std::uint64_t number) const {
  return folder_ + "/" + std::to_string(number) + std::string(kSuffix);
}

Result<InstalledModel> ModelInstaller::add(std::string_view text) {
  const Result<InstalledModels> before = installed_models(state_dir_);
  // An invalid link is not an error, because use() replaces it.
  if (!before && before.error().kind != ErrorKind::invalid)
    return std::unexpected(before.error());
  std::uint64_t number = 1;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored))
    number = std::max(number, number_of(entry.path().filename().native()).value_or(0) + 1);
  if (before && before->current) number = std::max(number, *before->current + 1);
  if (std::to_string(number).size() > kMostDigits)
    return failure(ErrorKind::io, escape_name(folder_) + ": all model numbers are used");
  if (Status written = replace_file(path_of(number), text, 0640); !written)
    return std::unexpected(written.error());
  return InstalledModel{number, path_of(number), {}};
}

Status ModelInstaller::use(std::optional<std::uint64_t> number) {
  const std::string link = folder_ + "/" + kLink, fresh = link + ".new";
  if (!number) {
    if (::unlink(link.c_str()) != 0 && errno != ENOENT)
      return errno_failure(escape_name(link), errno);
    return sync_folder(lock_, folder_);
  }
  ::unlink(fresh.c_str());
  const std::string target = std::to_string(*number) + std::string(kSuffix);
  if (::symlink(target.c_str(), fresh.c_str()) != 0 ||
      ::rename(fresh.c_str(), link.c_str()) != 0)
    return errno_failure(escape_name(link), errno);
  return sync_folder(lock_, folder_);
}

Status ModelInstaller::remove(std::uint64_t number) {
  const std::string path = path_of(number);
  return ::unlink(path.c_str()) == 0 || errno == ENOENT ? Status{}
                                                        : errno_failure(escape_name(path), errno);
}

Status ModelInstaller::tidy(std::optional<std::uint64_t> before) {
  const Result<InstalledModels> found = installed_models(state_dir_);
  if (!found) return std::unexpected(found.error());
  std::size_t kept = 0;
  for (const InstalledModel& model : found->in_order()) {
    const bool left = model.number != *found->current && model.number > before.value_or(0);
    if (!left && kept++ < kKeptModels) continue;
    if (Status removed = remove(model.number); !removed) return removed;
  }
  return {};
}

}  // namespace cgphase
