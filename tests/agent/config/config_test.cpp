#include "agent/config/config.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "agent/config/config_table.h"
#include "base/file.h"
#include "tests/agent/temporary_directory.h"
#include "tests/in_child.h"

using namespace cgphase;
using namespace std::chrono_literals;

namespace {

// /etc/cgphase of a test.
class ConfigFiles {
 public:
  ConfigFiles() { std::filesystem::create_directory(directory_ / "conf.d"); }
  std::string path() const { return directory_ / "cgphase.toml"; }
  std::string drop_in(const std::string& name) const { return directory_ / ("conf.d/" + name); }
  void write(const std::string& text) const { write_to(path(), text); }
  void write_to(const std::string& file, const std::string& text) const {
    std::ofstream(file, std::ios::binary) << text;
  }
  Result<Config> load() const { return load_config({path(), true}); }
  const std::string& directory() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

Config config_of(const std::string& text) {
  const ConfigFiles files;
  files.write(text);
  Result<Config> config = files.load();
  REQUIRE_MESSAGE(config.has_value(), (config ? "" : config.error().text));
  return *config;
}

// What is said about a file, without the path before ":LINE:COLUMN: ".
std::string refusal_of(const std::string& text) {
  const ConfigFiles files;
  files.write(text);
  const Result<Config> config = files.load();
  REQUIRE_FALSE(config.has_value());
  CHECK(config.error().kind == ErrorKind::invalid);
  REQUIRE(config.error().text.starts_with(files.path() + ":"));
  return config.error().text.substr(files.path().size() + 1);
}

bool accepts(const std::string& text) {
  const ConfigFiles files;
  files.write(text);
  return files.load().has_value();
}

std::string value_of(const Config& config, const std::string& key) {
  for (const ConfigValue& value : config_rows(config))
    if (value.key == key) return value.value;
  return "no such key";
}

std::string origin_of(const Config& config, const std::string& key) {
  for (const ConfigValue& value : config_rows(config))
    if (value.key == key) return value.origin;
  return "no such key";
}

std::string quoted_patterns(std::size_t count, std::size_t size) {
  std::string text = "include = [";
  for (std::size_t i = 0; i < count; ++i) text += "\"" + std::string(size, 'a') + "\",";
  return text + "]";
}

}  // namespace

TEST_CASE("nothing configured is observe with the documented defaults") {
  const Config config = config_of("");
  CHECK(config.mode == Mode::observe);
  CHECK(config.interval == 1s);
  CHECK(config.store.cap.value == 256 * kMiB);
  CHECK(config.enforce.names.empty());
  CHECK_FALSE(config.manage_unlimited);
  CHECK_FALSE(config.safety.lower_gpu_quota);
  CHECK(config.enforce.cpu == CpuLever::weight);
  CHECK(config.budget == BudgetConfig{0.9, 1, UnlimitedRule::observe});
  CHECK(config.warnings.empty());
}

TEST_CASE("every kind of value is read") {
  const Config config = config_of(R"(
mode = "enforce"
interval = "250ms"
policy = "hold:window=120"
include = ["/system.slice/*.service", "/a"]
manage_unlimited = true
lower_gpu_quota = true
risk = "1 %"
[store]
cap = "1.5G"
[enforce]
names = ["train-*"]
cpu = "quota"
[budget]
memory = "75 %"
unlimited = "guard"
)");
  CHECK(config.mode == Mode::enforce);
  CHECK(config.interval == 250ms);
  CHECK(config.policy == "hold:window=120");
  CHECK(config.include == std::vector<std::string>{"/system.slice/*.service", "/a"});
  CHECK(config.manage_unlimited);
  CHECK(config.safety.lower_gpu_quota);
  CHECK(config.risk == 0.01);
  CHECK(config.store.cap.value == 1536 * kMiB);
  CHECK(config.enforce.names == std::vector<std::string>{"train-*"});
  CHECK(config.enforce.cpu == CpuLever::quota);
  CHECK(config.budget ==
        BudgetConfig{.memory_ratio = 0.75, .unlimited = UnlimitedRule::guard});
}

TEST_CASE("a key of an earlier version is one warning that says what became of it") {
  ConfigFiles files;
  files.write("mode = \"advise\"\nproc_root = \"/x\"\n[rails]\nlower_gpu_quota = true\n"
              "trial = \"1s\"\ntypo = 5\n[guard]\nenabled = false\n[store]\nraw_for = 7\n");
  const Result<Config> config = files.load();
  REQUIRE(config.has_value());
  CHECK(config->mode == Mode::advise);
  CHECK(config->proc_root == "/proc");
  CHECK(config->safety == SafetyConfig{});
  std::vector<std::string> warnings = config->warnings;
  std::ranges::sort(warnings);
  const std::string at = files.path() + ":";
  CHECK(warnings ==
        std::vector<std::string>{
            at + "10: store.raw_for is ignored: it is always 1d",
            at + "2: proc_root is ignored: give cgphased the option --proc-root",
            at + "4: rails.lower_gpu_quota is ignored: write lower_gpu_quota at the top of the "
                 "file",
            at + "5: rails.trial is ignored: it is a constant now (docs/safety.md)",
            at + "6: rails.typo is ignored: it is a constant now (docs/safety.md)",
            at + "8: guard.enabled is ignored: it is a constant now (docs/safety.md)"});
}

TEST_CASE("tests may set internal keys, by an environment variable") {
  const std::string text = "rails.trial = \"1s\"\nproc_root = \"/x\"\n";
  REQUIRE(::setenv(kTestKeys, "1", 1) == 0);
  const Config config = config_of(text);
  const bool bad_is_refused = !accepts("rails.trial = 5");
  ::unsetenv(kTestKeys);
  CHECK(config.safety.trial == 1s);
  CHECK(config.proc_root == "/x");
  CHECK(config.warnings.empty());
  CHECK(bad_is_refused);
  CHECK(config_of(text).safety.trial == 30s);
}

TEST_CASE("an unknown key is refused with the nearest one, at its line and column") {
  CHECK(refusal_of("mode = \"observe\"\n[store]\n  capp = \"30M\"\n") ==
        "3:3: unknown key store.capp; nearest is store.cap");
}

TEST_CASE("an unknown key that is near nothing points to the document") {
  CHECK(refusal_of("xylophone = 1\n") ==
        "1:1: unknown key xylophone; docs/configuration.md lists them all");
}

TEST_CASE("an unknown section is refused with the key") {
  CHECK(refusal_of("[rail]\ncool_down = \"30s\"\n").starts_with("1:2: unknown key rail;"));
}

TEST_CASE("a bad value is shown with what is allowed, at its line and column") {
  CHECK(refusal_of("\nmode = \"enforced\"\n") ==
        "2:8: mode = \"enforced\": not a mode; allowed: observe, advise, enforce");
  CHECK(refusal_of("\ninterval = \"5 parsecs\"") ==
        "2:12: interval = \"5 parsecs\": not a duration such as \"30s\" or \"5min\"; "
        "allowed: 100ms to 1min");
  CHECK(refusal_of("[store]\ncap = \"7M\"") ==
        "2:7: store.cap = \"7M\": out of bounds; allowed: 8M to 64G");
}

TEST_CASE("a duration without a unit is refused") {
  CHECK(refusal_of("interval = 1").find("not a duration") != std::string::npos);
  CHECK(refusal_of("interval = \"1\"").find("not a duration") != std::string::npos);
}

TEST_CASE("a duration finer than its key is refused") {
  CHECK(refusal_of("interval = \"0.5ms\"").find("out of bounds") != std::string::npos);
  CHECK(refusal_of("interval = \"1000.5ms\"").find("not a whole multiple of 1ms") !=
        std::string::npos);
}

TEST_CASE("a key that is a table, and a section that is a value, are refused") {
  CHECK(refusal_of("mode = {a = 1}").find("mode = a value of kind table: not a mode") !=
        std::string::npos);
  CHECK(refusal_of("store = 5").find("store is a section, written [store], not 5") !=
        std::string::npos);
  CHECK(refusal_of("[[store]]\ncap = \"1G\"").find("store is a section") != std::string::npos);
}

TEST_CASE("the wrong kind of value is refused for every key") {
  // A date is none of the kinds that any key takes.
  for (const ConfigKey& key : config_keys()) {
    CAPTURE(key.key);
    CHECK(refusal_of(key.key + " = 1979-05-27").starts_with("1:"));
    if (key.allowed != "true, false")
      CHECK(refusal_of(key.key + " = true").find("allowed: " + key.allowed) != std::string::npos);
  }
}

TEST_CASE("an array with one number in it is refused") {
  CHECK(refusal_of("include = [\"/a\", 5]").find("not an array of texts") != std::string::npos);
}

TEST_CASE("the first of several errors is reported") {
  CHECK(refusal_of("zz = 1\n[store]\ncap = 5\n[enforce]\nname = []\n").starts_with("1:1:"));
  CHECK(refusal_of("[store]\ncap = 5\n[gpu]\nenabled = 1\n").starts_with("2:7:"));
}

TEST_CASE("broken TOML is refused with line and column") {
  CHECK(refusal_of("mode = \"observe\nx").starts_with("1:"));
  CHECK(refusal_of("a = 1\n= 2\n").starts_with("2:1: "));
}

TEST_CASE("a key given twice in one file is refused") {
  CHECK(refusal_of("mode = \"observe\"\nmode = \"advise\"\n").starts_with("2:"));
}

TEST_CASE("bytes that are no text are refused") {
  CHECK_FALSE(accepts(std::string("mode = \"\xff\xfe\"")));
  CHECK_FALSE(accepts(std::string("mode\0= 1", 8)));
}

TEST_CASE("a hostile value does not reach the terminal raw") {
  const std::string text = refusal_of("mode = \"\\u001b[31m\"\n");
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("\\x1b") != std::string::npos);
}

TEST_CASE("numbers and lengths are taken at their bounds and refused one past them") {
  const auto at = [](const std::string& text) { return accepts(text); };
  CHECK(at("interval = \"100ms\""));
  CHECK_FALSE(at("interval = \"99ms\""));
  CHECK(at("interval = \"60s\""));
  CHECK_FALSE(at("interval = \"60001ms\""));
  CHECK(at("store.cap = \"8M\""));
  CHECK_FALSE(at("store.cap = \"8388607\""));
  CHECK(at("store.cap = \"64G\""));
  CHECK_FALSE(at("store.cap = \"68719476737\""));
  CHECK(at("risk = 0.5"));
  CHECK(at("risk = \"0.0001 %\""));
  CHECK_FALSE(at("risk = 0.5000001"));
  CHECK_FALSE(at("risk = \"0.00009 %\""));
  CHECK_FALSE(at("risk = \"little\""));
  CHECK_FALSE(at("risk = true"));
  CHECK(at("runtime_dir = \"/" + std::string(kMaxRuntimeDirBytes - 1, 'r') + "\""));
  CHECK_FALSE(at("runtime_dir = \"/" + std::string(kMaxRuntimeDirBytes, 'r') + "\""));
  CHECK(at("state_dir = \"/" + std::string(kMaxPathBytes - 1, 'r') + "\""));
  CHECK_FALSE(at("state_dir = \"/" + std::string(kMaxPathBytes, 'r') + "\""));
  CHECK_FALSE(at("risk = nan"));
}

TEST_CASE("a line of containers without terms, or with wrong ones, is refused") {
  CHECK(refusal_of("containers = [\"web class=batch\", \"db class=gold\"]\n")
            .starts_with("1:14: containers = "));
  CHECK(refusal_of("containers = [\"db class=gold\"]\n")
            .find("\"db class=gold\": class=gold: must be critical") != std::string::npos);
  for (const char* line : {"", "web", "web ", "web batch", "web io.min=1"})
    CHECK_FALSE(accepts("containers = [\"" + std::string(line) + "\"]\n"));
  CHECK(config_of("containers = [\"web class=batch\"]\n").containers.size() == 1);
}

TEST_CASE("patterns are taken at their bounds and refused one past them") {
  CHECK(accepts(quoted_patterns(kMaxPatterns, 1)));
  CHECK_FALSE(accepts(quoted_patterns(kMaxPatterns + 1, 1)));
  CHECK(accepts(quoted_patterns(1, kMaxPatternBytes)));
  CHECK_FALSE(accepts(quoted_patterns(1, kMaxPatternBytes + 1)));
  CHECK_FALSE(accepts(quoted_patterns(1, 0)));
}

TEST_CASE("paths must be absolute") {
  for (const char* key :
       {"model", "cgroup_root", "state_dir", "runtime_dir", "kill_switch"}) {
    CAPTURE(key);
    CHECK(accepts(std::string(key) + " = \"/x\""));
    CHECK_FALSE(accepts(std::string(key) + " = \"x\""));
    CHECK_FALSE(accepts(std::string(key) + " = \"\""));
    CHECK_FALSE(accepts(std::string(key) + " = \"/x\\u0000y\""));
  }
}

TEST_CASE("a file is taken at its bound and refused one byte past it") {
  const ConfigFiles files;
  files.write("#" + std::string(kMaxConfigFileBytes - 1, 'x'));
  CHECK(files.load().has_value());
  files.write("#" + std::string(kMaxConfigFileBytes, 'x'));
  CHECK(files.load().error().kind == ErrorKind::invalid);
}

TEST_CASE("a file that is not there is an error only where it was asked for") {
  const ConfigFiles files;
  CHECK(files.load().error().kind == ErrorKind::not_found);
  CHECK(load_config({files.path(), false}).has_value());
}

TEST_CASE("a directory in place of the file is an error") {
  const ConfigFiles files;
  std::filesystem::create_directory(files.path());
  CHECK_FALSE(files.load().has_value());
  CHECK_FALSE(load_config({files.path(), false}).has_value());
}

TEST_CASE("a file that may not be read is denied, also where it need not exist") {
  const ConfigFiles files;
  files.write("mode = \"enforce\"");
  std::filesystem::permissions(files.directory(), std::filesystem::perms(0755));
  std::filesystem::permissions(files.path(), std::filesystem::perms::none);
  CHECK(in_child([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return 2;
    const Result<Config> config = load_config({files.path(), false});
    return !config && config.error().kind == ErrorKind::denied ? 0 : 1;
  }) == 0);
}

TEST_CASE("files of conf.d are laid over in the order of their names") {
  const ConfigFiles files;
  files.write("mode = \"advise\"\ninterval = \"2s\"\n[enforce]\nnames = [\"a\", \"b\"]\n");
  files.write_to(files.drop_in("20-late.toml"), "mode = \"enforce\"\n");
  files.write_to(files.drop_in("10-early.toml"),
                 "mode = \"observe\"\n[enforce]\nnames = [\"c\"]\n");
  files.write_to(files.drop_in("99-not.conf"), "zz = 1\n");
  files.write_to(files.drop_in(".30-hidden.toml"), "zz = 1\n");
  const Result<Config> config = files.load();
  REQUIRE(config.has_value());
  CHECK(config->mode == Mode::enforce);
  CHECK(config->interval == 2s);
  CHECK(config->enforce.names == std::vector<std::string>{"c"});
  CHECK(origin_of(*config, "mode") == files.drop_in("20-late.toml") + ":1");
  CHECK(origin_of(*config, "interval") == files.path() + ":2");
  CHECK(origin_of(*config, "enforce.names") == files.drop_in("10-early.toml") + ":3");
  CHECK(origin_of(*config, "policy") == "default");
}

TEST_CASE("conf.d is read where the main file is not there") {
  const ConfigFiles files;
  files.write_to(files.drop_in("a.toml"), "mode = \"advise\"");
  CHECK(load_config({files.path(), false})->mode == Mode::advise);
}

TEST_CASE("a fault in conf.d names that file") {
  const ConfigFiles files;
  files.write("");
  files.write_to(files.drop_in("a.toml"), "\nmod = 1");
  CHECK(files.load().error().text.starts_with(files.drop_in("a.toml") + ":2:1: unknown key mod"));
}

TEST_CASE("a configuration without conf.d is whole") {
  const ConfigFiles files;
  files.write("");
  std::filesystem::remove(files.directory() + "/conf.d");
  CHECK(files.load().has_value());
}

TEST_CASE("conf.d is taken with as many files as the bound and refused with one more") {
  const ConfigFiles files;
  files.write("");
  for (std::size_t i = 0; i < kMaxConfigFiles; ++i)
    files.write_to(files.drop_in(std::to_string(i) + ".toml"), "");
  CHECK(files.load().has_value());
  files.write_to(files.drop_in("more.toml"), "");
  CHECK(files.load().error().kind == ErrorKind::invalid);
}

TEST_CASE("a policy that is not there is refused with the nearest") {
  CHECK(refusal_of("policy = \"phas\"")
            .starts_with("1:10: policy = \"phas\": there is no policy \"phas\"; did you mean "
                         "\"phase\"?"));
}

TEST_CASE("a parameter that its policy lacks is refused with the nearest") {
  CHECK(refusal_of("policy = \"hold:windw=60\"").find("did you mean \"window\"?") !=
        std::string::npos);
}

TEST_CASE("a policy that needs what only replay knows is refused") {
  CHECK(refusal_of("policy = \"oracle-max\"").find("only cgphase replay does") !=
        std::string::npos);
  CHECK(refusal_of("policy = \"ai4dl-phase\"").find("only cgphase replay makes") !=
        std::string::npos);
  CHECK(accepts("policy = \"vpa:half-life=3600\""));
}

TEST_CASE("an option of the command line goes over the files") {
  Config config = config_of("mode = \"enforce\"");
  REQUIRE(override_config(config, "mode", "observe", "--mode").has_value());
  CHECK(config.mode == Mode::observe);
  CHECK(origin_of(config, "mode") == "--mode");
}

TEST_CASE("a bad option changes nothing") {
  Config config = config_of("mode = \"enforce\"");
  const Status refused = override_config(config, "mode", "of\x1b", "--mode");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().text ==
        "--mode \"of\\x1b\": not a mode; allowed: observe, advise, enforce");
  CHECK_FALSE(override_config(config, "policy", "x", "--policy").has_value());
  CHECK_FALSE(override_config(config, "no_key", "x", "--no-key").has_value());
  CHECK(config.mode == Mode::enforce);
  CHECK(config.policy == "phase");
}

namespace {

// The table of the document, made from the rows.
std::string key_table() {
  std::string table = "| key | allowed | default | meaning |\n|---|---|---|---|\n";
  for (const ConfigKey& key : config_keys())
    table += "| `" + key.key + "` | " + key.allowed + " | `" + key.default_value + "` | " +
             key.meaning + " |\n";
  return table;
}

// The file that is installed: every key, commented out, at its default.
std::string default_file() {
  std::string text =
      "# cgphase: what is commented out is the default. docs/configuration.md explains the rest.\n";
  std::string section;
  for (const ConfigKey& key : config_keys()) {
    const std::size_t dot = key.key.find('.');
    const std::string of = dot == std::string::npos ? "" : key.key.substr(0, dot);
    if (of != section) text += "\n[" + of + "]\n";
    section = of;
    const std::string name = key.key.substr(dot == std::string::npos ? 0 : dot + 1);
    text += "\n# " + key.meaning + "\n# Allowed: " + key.allowed + "\n#" + name + " = " +
            key.default_value + "\n";
  }
  return text;
}

std::string source_file(const std::string& name) {
  const Result<std::string> text = read_file(CGPHASE_SOURCE_DIR "/" + name, 1 << 20);
  REQUIRE(text.has_value());
  return *text;
}

// Lines "#key = value" with their mark taken away.
std::string uncommented(const std::string& text) {
  std::string out = text;
  for (std::size_t at = 0; (at = out.find("\n#", at)) != std::string::npos; ++at)
    if (out[at + 2] != ' ') out.erase(at + 1, 1);
  return out;
}

}  // namespace

TEST_CASE("the table in docs/configuration.md is the table of the program") {
  const std::string table = key_table();
  CAPTURE(table);
  CHECK(source_file("docs/configuration.md").find("\n" + table + "\n") != std::string::npos);
}

TEST_CASE("the file that is installed lists every key at its default") {
  const std::string text = default_file();
  CAPTURE(text);
  CHECK(source_file("agent/config/default_config.toml") == text);
}

TEST_CASE("the file that is installed changes nothing, commented or not") {
  const std::string text = source_file("agent/config/default_config.toml");
  const Config commented = config_of(text), bare = config_of(uncommented(text));
  const std::vector<ConfigValue> defaults = config_rows(Config{});
  for (std::size_t i = 0; i < defaults.size(); ++i) {
    CAPTURE(defaults[i].key);
    CHECK(config_rows(commented)[i].value == defaults[i].value);
    CHECK(config_rows(commented)[i].origin == "default");
    CHECK(config_rows(bare)[i].value == defaults[i].value);
    CHECK(config_rows(bare)[i].origin != "default");
  }
}

TEST_CASE("what config show prints reads back as the same") {
  Config config = config_of(
      "mode = \"advise\"\ninterval = \"1500ms\"\ninclude = [\"/a\\\\b\\\"c\"]\n"
      "risk = \"2.5 %\"\n[store]\ncap = \"1537M\"\n");
  std::string shown;
  for (const ConfigValue& value : config_rows(config))
    shown += value.key + " = " + value.value + "\n";
  const Config again = config_of(shown);
  for (const ConfigValue& value : config_rows(config))
    CHECK(value_of(again, value.key) == value.value);
  CHECK(again.include == config.include);
  CHECK(value_of(config, "interval") == "\"1500ms\"");
  CHECK(value_of(config, "risk") == "\"2.5 %\"");
  CHECK(value_of(config, "store.cap") == "\"1537M\"");
}

TEST_CASE("durations and sizes are printed in the largest unit without rest") {
  CHECK(duration_text(0s) == "0s");
  CHECK(duration_text(60s) == "1min");
  CHECK(duration_text(90s) == "90s");
  CHECK(duration_text(24h) == "1d");
  CHECK(duration_text(1500ms) == "1500ms");
  CHECK(bytes_text(256 * kMiB) == "256M");
  CHECK(bytes_text(1024 * kGiB) == "1T");
  CHECK(bytes_text(1537) == "1537");
  CHECK(bytes_text(0) == "0");
}

namespace {

Config with_mode(Mode mode) {
  Config config;
  config.mode = mode;
  return config;
}

ContainerInfo labelled(const std::string& mode) {
  ContainerInfo container;
  container.name = "train-7";
  container.image = "registry/train:1";
  container.path = "/system.slice/docker-0a.scope";
  if (!mode.empty()) container.labels["cgphase.mode"] = mode;
  return container;
}

}  // namespace

TEST_CASE("observe is observe whatever is named or labelled") {
  Config config = with_mode(Mode::observe);
  config.enforce.names = {"*"};
  CHECK(mode_for(config, labelled("enforce")) == Mode::observe);
}

TEST_CASE("advise is a ceiling for names and labels") {
  Config config = with_mode(Mode::advise);
  config.enforce.names = {"*"};
  CHECK(mode_for(config, labelled("")) == Mode::advise);
  CHECK(mode_for(config, labelled("enforce")) == Mode::advise);
  CHECK(mode_for(config, labelled("observe")) == Mode::observe);
}

TEST_CASE("enforce acts on nobody who is not named") {
  CHECK(mode_for(with_mode(Mode::enforce), labelled("")) == Mode::advise);
}

TEST_CASE("enforce acts on a container named by name, image or cgroup") {
  for (int kind = 0; kind < 3; ++kind) {
    Config config = with_mode(Mode::enforce);
    if (kind == 0) config.enforce.names = {"other", "train-?"};
    if (kind == 1) config.enforce.images = {"registry/*:1"};
    if (kind == 2) config.enforce.cgroups = {"/system.slice/*"};
    CAPTURE(kind);
    CHECK(mode_for(config, labelled("")) == Mode::enforce);
  }
}

TEST_CASE("under enforce a label opts in, and out") {
  Config config = with_mode(Mode::enforce);
  CHECK(mode_for(config, labelled("enforce")) == Mode::enforce);
  config.enforce.names = {"*"};
  CHECK(mode_for(config, labelled("advise")) == Mode::advise);
  CHECK(mode_for(config, labelled("observe")) == Mode::observe);
}

TEST_CASE("a label of no known mode is observe") {
  Config config = with_mode(Mode::enforce);
  config.enforce.names = {"*"};
  CHECK(mode_for(config, labelled("Enforce")) == Mode::observe);
}

TEST_CASE("a container that somebody else manages is never enforced") {
  Config config = with_mode(Mode::enforce);
  config.enforce.names = {"*"};
  ContainerInfo container = labelled("enforce");
  container.hands_off = "managed by the kubelet";
  CHECK(mode_for(config, container) == Mode::advise);
}

TEST_CASE("an empty name matches only a pattern for anything") {
  CHECK_FALSE(matches_any({}, ""));
  CHECK_FALSE(matches_any({"?*"}, ""));
  CHECK(matches_any({"*"}, ""));
  CHECK(matches_any({"[ab]c"}, "bc"));
}

TEST_CASE("a backslash in a pattern is itself") {
  CHECK(matches_any({R"(/system.slice/my\x2djob.service)"}, R"(/system.slice/my\x2djob.service)"));
  CHECK_FALSE(matches_any({R"(a\*)"}, "a*"));
}
