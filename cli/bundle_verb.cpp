#include "cli/bundle_verb.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/print.h"
#include "cli/run_program.h"
#include "cli/view.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr unsigned kMode = 0600;  // names of other people's containers, and the journal, are in it

struct BundleItem {
  const char* file;
  std::vector<std::string> words;
};

// What this command says. The rest of what is of use is in files that nobody can read but root, or
// large: cgphase record and export give these.
const std::vector<BundleItem> kOwn = {
    {"version.txt", {"--version"}},
    {"doctor.txt", {"doctor"}},
    {"status.json", {"status", "--json"}},
    {"containers.json", {"list", "--json"}},
    {"events.jsonl", {"events", "--since", "-1d", "-o", "jsonl"}},
    {"configuration.txt", {"config", "show", "--origin"}},
    {"configuration-check.txt", {"config", "check"}},
    {"models.txt", {"model", "list"}},
};
// What the host says of it.
const std::vector<BundleItem> kOfHost = {
    {"configuration-files.txt",
     {"sh", "-c", "exec tail -n +1 /etc/cgphase/*.toml /etc/cgphase/conf.d/*.toml"}},
    {"kernel.txt", {"uname", "-a"}},
    {"system.txt", {"cat", "/etc/os-release"}},
    {"unit.txt", {"systemctl", "--no-pager", "cat", "cgphased.service"}},
    {"unit-state.txt", {"systemctl", "--no-pager", "show", "cgphased.service"}},
    {"journal.txt",
     {"journalctl", "--no-pager", "--since", "-24h", "--lines", "5000", "-u", "cgphased.service",
      "-u", "cgphase-restore.service", "-u", "cgphase-train.service"}},
};

// A folder of its own that goes with it.
class WorkFolder {
 public:
  static OrComplaint<WorkFolder> make() {
    std::error_code error;
    std::string path = std::filesystem::temp_directory_path(error) / "cgphase-bundle.XXXXXX";
    if (error || ::mkdtemp(path.data()) == nullptr)
      return complaint(Exit::failure, path + ": no folder can be made: " + errno_word(errno));
    return WorkFolder(std::move(path));
  }
  WorkFolder(WorkFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  WorkFolder& operator=(WorkFolder&&) = delete;
  ~WorkFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit WorkFolder(std::string path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

std::vector<BundleItem> all_items(const CommonOptions& options) {
  std::vector<BundleItem> items;
  for (BundleItem item : kOwn) {
    item.words.insert(item.words.begin(), {"/proc/self/exe", "--socket", options.socket});
    items.push_back(std::move(item));
  }
  items.insert(items.end(), kOfHost.begin(), kOfHost.end());
  return items;
}

// What comes of it is in the file, also why there is nothing.
json collect(const BundleItem& item, const std::filesystem::path& folder) {
  json told = {{"name", item.file}, {"command", item.words}, {"exit", nullptr}};
  if (item.words.front() == "/proc/self/exe") told["command"][0] = "cgphase";
  const Result<Fd> file = open_path(folder / item.file, O_WRONLY | O_CREAT | O_EXCL, kMode);
  if (!file) return told;
  const auto exit = run_program_into(*file, item.words);
  if (exit && *exit) told["exit"] = **exit;
  if (!exit) ::dprintf(file->get(), "%s\n", exit.error().text.c_str());
  return told;
}

OrComplaint<json> bundle(std::string path, const CommonOptions& options) {
  const std::string name =
      fmt::format("cgphase-bundle-{:%Y%m%dT%H%M%SZ}",
                  std::chrono::floor<std::chrono::seconds>(SystemClock().wall_now()));
  if (path.empty()) path = name + ".tar.gz";
  Result<FileReplacement> archive = FileReplacement::create(path, kMode);
  if (!archive) return complaint(archive.error());
  auto work = WorkFolder::make();
  if (!work) return std::unexpected(work.error());
  const std::filesystem::path folder = work->path() / name;
  std::filesystem::create_directory(folder);
  json body = {{"schema", kSchema}, {"file", escape_name(path)}, {"items", json::array()}};
  for (const BundleItem& item : all_items(options)) body["items"].push_back(collect(item, folder));
  if (const Status kept = replace_file(folder / "items.json", body.dump(2) + "\n", kMode); !kept)
    return complaint(kept.error());
  const auto end = run_program({"tar", "--create", "--gzip", "--file", archive->temporary_path(),
                                "--directory", work->path(), name}, STDERR_FILENO);
  if (!end) return std::unexpected(end.error());
  if (end->exit != 0) return complaint(Exit::failure, path + ": " + end->said);
  if (const Status done = archive->commit(); !done) return complaint(done.error());
  return body;
}

std::string render_bundle(const json& body, const TextStyle& style) {
  std::string text;
  for (const json& item : view_array(body, "/items"))
    if (view_number(item, "/exit") != 0)
      text += toned(view_text(item, "/name") + ": its command failed, and says there why\n",
                    Tone::caution, style);
  return text + view_text(body, "/file") +
         ": names of containers and images, limits and the journal of the last day; look through "
         "it before you give it away\n";
}

const Form kBundleForm{.text = render_bundle, .rows = "/items"};

int run(const std::string& path, const CommonOptions& options) {
  const auto body = bundle(path, options);
  if (!body) return complain(body.error());
  return options.silent() ? 0 : print(kBundleForm, *body, options);
}

}  // namespace

void add_bundle_verb(CLI::App& app, const CommonOptions& options, int& exit_code) {
  const auto path = std::make_shared<std::string>();
  CLI::App* const verb = app.add_subcommand(
      "bundle", "What somebody who helps has to see, in one archive (as root: with the journal)");
  verb->add_option("-o,--output", *path,
                   "archive to write [cgphase-bundle-TIME.tar.gz in this folder]");
  verb->callback([path, &options, &exit_code] { exit_code = run(*path, options); });
}

}  // namespace cgphase
