#include "agent/config/config.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "agent/config/config_table.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/text.h"
#include "policy/terms_parser.h"

namespace cgphase {
namespace {

constexpr std::string_view kLabelPrefix = "cgphase.";
constexpr const char* kModeLabel = "cgphase.mode";

// The first of several faults of a file, in the order of its lines.
struct Fault {
  toml::source_position at;
  std::string text;
};

std::string at_position(const std::string& file, const toml::source_position& at) {
  return fmt::format("{}:{}:{}: ", escape_name(file), at.line, at.column);
}

// The bytes of a value as the file has them are gone after parsing; what toml++ prints is the same
// but for spelling, and may be long.
std::string shown(const toml::node& node) {
  constexpr std::size_t kLongest = 60;
  std::string text;
  const auto print = [&](const auto& value) { text = fmt::format("{}", value); };
  if (const auto* value = node.as_string())
    text = '"' + value->get() + '"';
  else if (const auto* number = node.as_integer())
    print(number->get());
  else if (const auto* real = node.as_floating_point())
    print(real->get());
  else if (const auto* truth = node.as_boolean())
    print(truth->get());
  else
    text = fmt::format("a value of kind {}", node.is_table()   ? "table"
                                             : node.is_array() ? "array"
                                                               : "date or time");
  return escape_name(text.size() > kLongest ? text.substr(0, kLongest) + "..." : text);
}

RawValue raw_of(const toml::node& node) {
  if (const auto* truth = node.as_boolean()) return truth->get();
  if (const auto* number = node.as_integer()) return number->get();
  if (const auto* real = node.as_floating_point()) return real->get();
  if (const auto* text = node.as_string()) return text->get();
  const toml::array* array = node.as_array();
  if (array == nullptr) return {};
  std::vector<std::string> texts;
  for (const toml::node& element : *array) {
    const auto* text = element.as_string();
    if (text == nullptr) return {};
    texts.push_back(text->get());
  }
  return texts;
}

// What is wrong with a value of this row; nothing when `config` has taken it.
std::string take(const ConfigRow& row, const RawValue& raw, Config& config) {
  const std::string wrong = row.read(raw, config);
  return wrong.empty() ? wrong : wrong + "; allowed: " + row.allowed;
}

std::string unknown_key(const std::string& key) {
  std::vector<std::string_view> known;
  for (const ConfigRow& row : config_table())
    if (!row.internal) known.push_back(row.key);
  const std::string_view near = nearest(key, known);
  return fmt::format(
      "unknown key {}; {}", escape_name(key),
      near.empty() ? "docs/configuration.md lists them all" : fmt::format("nearest is {}", near));
}

// One file laid over what `config` holds so far.
class Layer {
 public:
  Layer(std::string file, Config& config) : file_(std::move(file)), config_(config) {}

  void read_table(const toml::table& table, const std::string& prefix) {
    for (const auto& [name, node] : table) read_node(name, node, prefix);
  }

  Status result() const {
    if (!first_) return {};
    return failure(ErrorKind::invalid, at_position(file_, first_->at) + first_->text);
  }

 private:
  void read_node(const toml::key& name, const toml::node& node, const std::string& prefix) {
    const std::string key = prefix + std::string(name.str());
    const ConfigRow* row = find_row(key);
    if (row != nullptr && (!row->internal || std::getenv(kTestKeys) != nullptr))
      return read_value(*row, node);
    if (const std::string former = former_key(key); !former.empty())
      return config_.warnings.push_back(
          fmt::format("{}:{}: {}", escape_name(file_), node.source().begin.line, former));
    if (!is_section(key)) return fault(name.source().begin, unknown_key(key));
    if (const toml::table* section = node.as_table()) return read_table(*section, key + ".");
    fault(node.source().begin,
          fmt::format("{} is a section, written [{}], not {}", key, key, shown(node)));
  }

  void read_value(const ConfigRow& row, const toml::node& node) {
    const std::string wrong = take(row, raw_of(node), config_);
    if (!wrong.empty())
      return fault(node.source().begin, fmt::format("{} = {}: {}", row.key, shown(node), wrong));
    config_.origins[row.key] = fmt::format("{}:{}", file_, node.source().begin.line);
  }

  void fault(const toml::source_position& at, std::string text) {
    if (!first_ || at < first_->at) first_ = Fault{at, std::move(text)};
  }

  std::string file_;
  Config& config_;
  std::optional<Fault> first_;
};

Status lay_over(const std::string& file, Config& config) {
  const Result<std::string> text = read_file(file, kMaxConfigFileBytes);
  if (!text) return std::unexpected(text.error());
  try {
    const toml::table table = toml::parse(*text, file);
    Layer layer(file, config);
    layer.read_table(table, "");
    return layer.result();
  } catch (const toml::parse_error& error) {
    return failure(ErrorKind::invalid,
                   at_position(file, error.source().begin) + escape_name(error.description()));
  }
}

// conf.d/*.toml beside the file, by name. No such directory: none.
Result<std::vector<std::string>> drop_ins(const std::string& file) {
  const std::filesystem::path directory = std::filesystem::path(file).parent_path() / "conf.d";
  std::error_code error;
  std::vector<std::string> files;
  std::filesystem::directory_iterator entries(directory, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::filesystem::path& path = entries->path();
    if (path.extension() == ".toml" && !path.filename().native().starts_with('.'))
      files.push_back(path);
  }
  if (error && error != std::errc::no_such_file_or_directory)
    return errno_failure(escape_name(directory.native()), error.value());
  if (files.size() > kMaxConfigFiles)
    return failure(ErrorKind::invalid,
                   fmt::format("{}: {} files, at most {} are read", escape_name(directory.native()),
                               files.size(), kMaxConfigFiles));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Result<Config> load_config(const ConfigSource& source) {
  Config config;
  const Status base = lay_over(source.file, config);
  const bool absent = !base && base.error().kind == ErrorKind::not_found;
  if (!base && (!absent || source.must_exist)) return std::unexpected(base.error());
  const Result<std::vector<std::string>> files = drop_ins(source.file);
  if (!files) return std::unexpected(files.error());
  for (const std::string& file : *files)
    if (const Status laid = lay_over(file, config); !laid)
      return std::unexpected(laid.error());
  return config;
}

Status override_config(Config& config, std::string_view key, std::string_view value,
                       const std::string& origin) {
  const ConfigRow* row = find_row(key);
  if (row == nullptr)
    return failure(ErrorKind::invalid, origin + ": " + unknown_key(std::string(key)));
  Config changed = config;
  if (const std::string wrong = take(*row, std::string(value), changed); !wrong.empty())
    return failure(ErrorKind::invalid,
                   fmt::format("{} \"{}\": {}", origin, escape_name(value), wrong));
  changed.origins[row->key] = origin;
  config = std::move(changed);
  return {};
}

std::vector<ConfigValue> config_rows(const Config& config) {
  std::vector<ConfigValue> values;
  for (const ConfigRow& row : config_table()) {
    if (row.internal) continue;
    const auto origin = config.origins.find(row.key);
    values.push_back(
        {row.key, row.print(config), origin == config.origins.end() ? "default" : origin->second});
  }
  return values;
}

std::vector<ConfigKey> config_keys() {
  const Config defaults;
  std::vector<ConfigKey> keys;
  for (const ConfigRow& row : config_table())
    if (!row.internal) keys.push_back({row.key, row.allowed, row.print(defaults), row.meaning});
  return keys;
}

bool matches_any(const std::vector<std::string>& patterns, const std::string& text) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return ::fnmatch(pattern.c_str(), text.c_str(), FNM_NOESCAPE) == 0;
  });
}

Mode mode_for(const Config& config, const ContainerInfo& container) {
  if (config.mode == Mode::observe) return Mode::observe;
  const bool named = matches_any(config.enforce.names, container.name) ||
                     matches_any(config.enforce.images, container.image) ||
                     matches_any(config.enforce.cgroups, container.path);
  // A label that cannot be read may forbid it.
  Mode wanted = named && container.labels_unknown.empty() ? Mode::enforce : Mode::advise;
  if (const auto label = container.labels.find(kModeLabel); label != container.labels.end())
    wanted = parse_mode(label->second).value_or(Mode::observe);
  const Mode ceiling = container.hands_off.empty() ? config.mode : Mode::advise;
  return std::min(wanted, ceiling);
}

FoundTerms terms_for(const Config& config, const ContainerInfo& container) {
  FoundTerms found;
  for (const std::string_view name : kTermNames) {
    const auto label = container.labels.find(std::string(kLabelPrefix) + std::string(name));
    if (label == container.labels.end()) continue;
    if (const Status set = set_term(found.terms, name, label->second); !set)
      found.ignored.push_back(std::string(kLabelPrefix) + set.error().text);
  }
  for (const std::string& line : config.containers) {
    std::string_view rest = line, word;
    (void)next_word(rest, word);
    const std::vector<std::string> pattern = {std::string(word)};
    if (matches_any(pattern, container.name) || matches_any(pattern, container.image) ||
        matches_any(pattern, container.path))
      (void)set_terms(found.terms, rest);
  }
  return found;
}

std::vector<std::string> keep_until_restart(const Config& now, Config& asked) {
  std::vector<std::string> kept;
  const auto keep = [&](const char* key, const auto& old, auto& fresh) {
    if (old == fresh) return;
    kept.push_back(std::string(key) + " changes only with a restart");
    fresh = old;
  };
  keep("cgroup_root", now.cgroup_root, asked.cgroup_root);
  keep("runtime_dir", now.runtime_dir, asked.runtime_dir);
  keep("state_dir", now.state_dir, asked.state_dir);
  keep("include", now.include, asked.include);
  keep("interval", now.interval, asked.interval);
  keep("policy", now.policy, asked.policy);
  keep("risk", now.risk, asked.risk);
  keep("manage_unlimited", now.manage_unlimited, asked.manage_unlimited);
  keep("store.cap", now.store.cap.value, asked.store.cap.value);
  keep("bpf.enabled", now.bpf.enabled, asked.bpf.enabled);
  keep("gpu.enabled", now.gpu.enabled, asked.gpu.enabled);
  keep("http.listen", now.http.listen, asked.http.listen);
  keep("metrics.textfile", now.metrics.textfile, asked.metrics.textfile);
  return kept;
}

}  // namespace cgphase
