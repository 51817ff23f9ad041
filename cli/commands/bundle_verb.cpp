// cgphase bundle: packs diagnostics of this host into one archive for a bug report.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "cli/commands/interruption.h"
#include "cli/commands/verbs.h"
#include "cli/offline.h"
#include "cli/options.h"
#include "cli/output/print.h"
#include "cli/output/view.h"
#include "cli/run_program.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr unsigned kOwnerOnly = 0600;  // the archive contains names of other users' containers
constexpr std::chrono::seconds kCommandLimit{30}, kArchiveLimit{600};
constexpr const char* kThisProgram = "/proc/self/exe";

struct BundleItem {
  const char* file;
  std::vector<std::string> words;
};

// Output of this command. Samples are left to cgphase record and cgphase export.
const std::vector<BundleItem> kOwnItems = {
    {"version.txt", {"--version"}},
    {"doctor.txt", {"doctor"}},
    {"status.json", {"status", "--json"}},
    {"containers.json", {"list", "--json"}},
    {"events.jsonl", {"events", "--since", "-1d", "-o", "jsonl"}},
    {"configuration.txt", {"config", "show", "--origin"}},
    {"configuration-check.txt", {"config", "check"}},
    {"models.txt", {"model", "list"}},
};
// Output of the system's programs.
const std::vector<BundleItem> kHostItems = {
    {"configuration-files.txt",
     {"find", "/etc/cgphase", "-name", "*.toml", "-type", "f", "-exec", "tail", "-v", "-n", "+1",
      "{}", "+"}},
    {"kernel.txt", {"uname", "-srvm"}},
    {"system.txt", {"cat", "/etc/os-release"}},
    {"unit.txt", {"systemctl", "--no-pager", "cat", "cgphased.service"}},
    {"unit-state.txt",
     {"systemctl", "--no-pager", "show", "cgphased.service", "-p",
      "ActiveState,SubState,Result,ExecMainStatus,NRestarts,NeedDaemonReload,FragmentPath,"
      "DropInPaths,MemoryCurrent,TasksCurrent,StateChangeTimestamp"}},
    {"journal.txt",
     {"journalctl", "--no-pager", "--since", "-24h", "--lines", "5000", "-u", "cgphased.service",
      "-u", "cgphase-restore.service", "-u", "cgphase-train.service"}},
};

// "cgphase-bundle-20260131T140305Z"
std::string bundle_name() {
  const std::time_t now = std::chrono::system_clock::to_time_t(
      std::chrono::floor<std::chrono::seconds>(SystemClock().wall_now()));
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  return fmt::format("cgphase-bundle-{:04}{:02}{:02}T{:02}{:02}{:02}Z", utc.tm_year + 1900,
                     utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::vector<BundleItem> all_items(const CommonOptions& options) {
  std::vector<BundleItem> items;
  for (BundleItem item : kOwnItems) {
    item.words.insert(item.words.begin(), {kThisProgram, "--socket", options.socket, "--color",
                                           "never", "--utc"});
    items.push_back(std::move(item));
  }
  items.insert(items.end(), kHostItems.begin(), kHostItems.end());
  return items;
}

// Runs the command of `item`. Its standard output goes to a file in `folder`; the returned row has
// its exit status and its errors.
json collect(const BundleItem& item, const std::filesystem::path& folder) {
  json row = {{"name", item.file}, {"command", json::array()}, {"exit", nullptr}, {"said", ""}};
  for (const std::string& word : item.words)
    row["command"].push_back(word == kThisProgram ? "cgphase" : escape_name(word));
  const Result<Fd> file = open_path(folder / item.file, O_WRONLY | O_CREAT | O_EXCL, kOwnerOnly);
  if (!file) {
    row["said"] = file.error().text;
    return row;
  }
  const auto end = run_program_into(*file, item.words, kCommandLimit);
  row["said"] = printable(end ? trim(end->said) : end.error().text);
  if (end && end->exit) row["exit"] = *end->exit;
  return row;
}

// Packs the folder `name` of the private folder `work`; returns the path of the archive.
OrComplaint<std::string> pack(const std::string& work, const std::string& name) {
  std::string archive = work + "/archive.tar.gz";
  const Result<Fd> nothing = open_path("/dev/null", O_WRONLY);
  if (!nothing) return complaint(nothing.error());
  const auto end = run_program_into(
      *nothing, {"tar", "--create", "--gzip", "--file", archive, "--directory", work, name},
      kArchiveLimit);
  if (!end) return std::unexpected(end.error());
  if (end->exit == 0) return archive;
  return complaint(Exit::failure,
                   "tar: " + (end->exit ? printable(trim(end->said)) : "was ended by a signal"));
}

OrComplaint<json> bundle(std::string path, const CommonOptions& options) {
  const std::string name = bundle_name();
  if (path.empty()) path = name + ".tar.gz";
  catch_interruptions();
  ::setenv("LC_ALL", "C.UTF-8", 1);
  Result<TextOutput> file = TextOutput::open(path, kOwnerOnly);
  if (!file) return complaint(file.error());
  const Result<PrivateFolder> work = PrivateFolder::make();
  if (!work) return complaint(work.error());
  const std::filesystem::path folder = std::filesystem::path(work->path()) / name;
  std::error_code error;
  if (!std::filesystem::create_directory(folder, error))
    return complaint(Exit::failure, folder.string() + ": " + error.message());
  json body = {{"schema", kSchema}, {"file", escape_name(path)}, {"items", json::array()}};
  for (const BundleItem& item : all_items(options)) {
    body["items"].push_back(collect(item, folder));
    if (const Status more = not_interrupted(); !more) return complaint(more.error());
  }
  if (const Status kept = replace_file(folder / "items.json", body.dump(2) + "\n", kOwnerOnly);
      !kept)
    return complaint(kept.error());
  const auto archive = pack(work->path(), name);
  if (const Status more = not_interrupted(); !more) return complaint(more.error());
  if (!archive) return std::unexpected(archive.error());
  if (const Status copied = file->copy(*archive); !copied) return complaint(copied.error());
  if (const Status done = file->finish(); !done) return complaint(done.error());
  return body;
}

std::string render_bundle(const json& body, const TextStyle& style) {
  std::string text;
  for (const json& item : view_array(body, "/items")) {
    if (view_number(item, "/exit") == 0) continue;
    const std::string said = view_text(item, "/said");
    const auto exit = view_number(item, "/exit");
    const std::string how = exit ? fmt::format("the command exited with {:.0f}", *exit)
                                 : "the command was ended by a signal";
    text += toned(view_text(item, "/name") + ": " + (said.empty() ? how : said), Tone::caution,
                  style) +
            '\n';
  }
  return text + view_text(body, "/file") +
         ": contains names, images and paths of containers, the configuration, and one day of the "
         "system journal with the name of this host; check it before you share it\n";
}

constexpr CsvColumn kBundleColumns[] = {{"name", "/name"}, {"exit", "/exit"}, {"said", "/said"}};
const Form kBundleForm{.text = render_bundle, .rows = "/items", .columns = kBundleColumns};

int run_bundle(const std::string& path, const CommonOptions& options) {
  if (const auto form = present(kBundleForm, json::object(), options.output, {}); !form)
    return complain(Exit::usage, form.error().text);
  const auto body = bundle(path, options);
  if (!body) return complain(body.error());
  if (options.silent()) return 0;
  if (path.empty()) return print(kBundleForm, *body, options);
  const auto row = present(kBundleForm, *body, options.output,
                            text_style(options, terminal_environment()));
  if (!row) return complain(Exit::usage, row.error().text);
  const Status written = emit_beside(*row, path);
  return written ? 0 : complain(complaint(written.error()).error());
}

}  // namespace

void add_bundle_verb(CLI::App& app, const CommonOptions& options, int& exit_code) {
  const auto path = std::make_shared<std::string>();
  CLI::App* const verb = app.add_subcommand(
      "bundle",
      "Pack diagnostics into one archive for a bug report (as root: with the system journal)");
  verb->footer(
      "It has status, list, a day of events, doctor, configuration, model and system facts. It has "
      "names and paths of containers, but no labels or samples.");
  verb->add_option(
          "-o,--output", *path,
          "Archive to write; - is standard output [cgphase-bundle-TIME.tar.gz in this folder]")
      ->type_name("FILE");
  verb->callback([path, &options, &exit_code] { exit_code = run_bundle(*path, options); });
}

}  // namespace cgphase
