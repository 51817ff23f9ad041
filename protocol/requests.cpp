#include "protocol/requests.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/parse.h"
#include "base/text.h"
#include "protocol/fields.h"
#include "protocol/protocol.h"

namespace cgphase {
namespace {

using nlohmann::json;

// The first bytes of an unknown word, which an error repeats.
constexpr std::size_t kShownBytes = 64;

// The arguments of each request, each name once. The lists drive parsing, checks and formatting.
template <class R>
concept WithoutArguments = Is<R, StatusRequest> || Is<R, ListRequest> || Is<R, ConfigRequest> ||
                           Is<R, ModelRequest>;
template <class R>
concept OfOneContainer = Is<R, ShowRequest> || Is<R, PauseRequest> || Is<R, ResumeRequest>;

void visit_fields(auto&, WithoutArguments auto&) {}

void visit_fields(auto& field, OfOneContainer auto& request) {
  field("container", request.container);
}

void visit_fields(auto& field, Is<ExplainRequest> auto& request) {
  field("container", request.container);
  field("at_seconds", request.at_seconds);
}

void visit_fields(auto& field, Is<HistoryRequest> auto& request) {
  field("container", request.container);
  field("record", request.record);
  field("from_seconds", request.from_seconds);
  field("until_seconds", request.until_seconds);
  field("limit", request.limit);
  field("full", request.full);
  field("rows", request.rows);
}

void visit_fields(auto& field, Is<EventsRequest> auto& request) {
  field("container", request.container);
  field("from_seconds", request.from_seconds);
  field("until_seconds", request.until_seconds);
  field("limit", request.limit);
  field("before", request.before);
}

void visit_fields(auto& field, Is<SetModeRequest> auto& request) {
  field("mode", request.mode);
  field("container", request.container);
  field("until_restart", request.until_restart);
}

void visit_fields(auto& field, Is<RestoreRequest> auto& request) {
  field("container", request.container);
  field("all", request.all);
}

void visit_fields(auto& field, Is<RecordsRequest> auto& request) { field("after", request.after); }

void visit_fields(auto& field, Is<LearnedRequest> auto& request) {
  field("container", request.container);
  field("image", request.image);
}

void visit_fields(auto& field, Is<FitRequest> auto& request) {
  field("cpus", request.cpus);
  field("memory_mib", request.memory_mib);
  field("seconds", request.seconds);
  field("risk", request.risk);
}

void visit_fields(auto& field, Is<TableRequest> auto& request) {
  field("name", request.name);
  field("after", request.after);
}

void visit_fields(auto& field, Is<PinRequest> auto& request) {
  field("container", request.container);
  field("cpus", request.cpus);
  field("memory_mib", request.memory_mib);
}

std::unexpected<Error> refuse(std::string text) {
  return failure(ErrorKind::invalid, "request refused: " + std::move(text));
}

// Checks combinations of arguments.
Status check(const auto&) { return {}; }

Status check(const HistoryRequest& request) {
  if (request.container.has_value() != request.record.has_value()) return {};
  return refuse("history needs 'container' or 'record'; a reply to records has the numbers");
}

Status check(const LearnedRequest& request) {
  if (request.container.has_value() != request.image.has_value()) return {};
  return refuse("learned needs either 'container' or 'image'");
}

Status check(const RestoreRequest& request) {
  if (request.container.has_value() != request.all) return {};
  return refuse("restore needs either 'container' or 'all'");
}

enum class ArgKind : std::uint8_t { text, number, flag };

ArgKind kind_of(const std::string&) { return ArgKind::text; }
ArgKind kind_of(bool) { return ArgKind::flag; }
ArgKind kind_of(double) { return ArgKind::number; }
ArgKind kind_of(std::int64_t) { return ArgKind::number; }

struct Arg {
  const char* name;
  ArgKind kind;
  bool required;
};

class ArgLister {
 public:
  std::vector<Arg> args;

  template <class T>
  void operator()(const char* name, const T& value) {
    args.push_back({name, kind_of(value), !std::is_same_v<T, bool>});
  }
  template <class T>
  void operator()(const char* name, const std::optional<T>&) {
    args.push_back({name, kind_of(T{}), false});
  }
};

// Reads arguments that check_arg() has accepted.
class Reader {
 public:
  explicit Reader(const json& args) : args_(args) {}

  template <class T>
  void operator()(const char* name, T& value) const {
    if (const auto found = args_.find(name); found != args_.end()) take(*found, value);
  }

 private:
  template <class T>
  static void take(const json& from, T& value) { value = from.get<T>(); }
  static void take(const json& from, std::int64_t& value) {
    value = static_cast<std::int64_t>(from.get<double>());
  }
  template <class T>
  static void take(const json& from, std::optional<T>& value) { take(from, value.emplace()); }

  const json& args_;
};

class Writer {
 public:
  json args = json::object();

  template <class T>
  void operator()(const char* name, const T& value) { args[name] = value; }
  void operator()(const char* name, const bool& value) {
    if (value) args[name] = true;
  }
  template <class T>
  void operator()(const char* name, const std::optional<T>& value) {
    if (value) args[name] = *value;
  }
};

struct VerbRow {
  const char* name;
  bool admin;
  std::vector<Arg> args;
  Result<Request> (*read)(const json& args);
};

template <Verb V>
using RequestOf = std::variant_alternative_t<static_cast<std::size_t>(V), Request>;

template <class R>
Result<Request> read(const json& args) {
  R request;
  const Reader reader(args);
  visit_fields(reader, request);
  if (const Status checked = check(request); !checked) return std::unexpected(checked.error());
  return request;
}

template <Verb V>
VerbRow row(const char* name, bool admin = false) {
  ArgLister lister;
  const RequestOf<V> request;
  visit_fields(lister, request);
  return {name, admin, std::move(lister.args), read<RequestOf<V>>};
}

// The closed list, in the order of Verb.
const std::array<VerbRow, kVerbCount>& verbs() {
  constexpr bool kAdmin = true;
  static const std::array<VerbRow, kVerbCount> rows = {
      row<Verb::status>("status"),          row<Verb::list>("list"),
      row<Verb::show>("show"),              row<Verb::explain>("explain"),
      row<Verb::history>("history"),        row<Verb::events>("events"),
      row<Verb::mode>("mode", kAdmin),      row<Verb::pause>("pause", kAdmin),
      row<Verb::resume>("resume", kAdmin),  row<Verb::restore>("restore", kAdmin),
      row<Verb::config>("config"),          row<Verb::records>("records"),
      row<Verb::learned>("learned"),        row<Verb::fit>("fit"),
      row<Verb::table>("table"),            row<Verb::model>("model", kAdmin),
      row<Verb::pin>("pin", kAdmin)};
  return rows;
}

const VerbRow& row_of(Verb verb) { return verbs()[static_cast<std::size_t>(verb)]; }

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view close = nearest(word, candidates);
  return close.empty() ? std::string() : "; did you mean '" + std::string(close) + "'?";
}

Result<const VerbRow*> find_verb(std::string_view name) {
  const auto found = std::ranges::find(verbs(), name, &VerbRow::name);
  if (found != verbs().end()) return &*found;
  std::vector<std::string_view> names;
  for (const VerbRow& row : verbs()) names.emplace_back(row.name);
  const std::string_view shown = name.substr(0, kShownBytes);
  return refuse("no verb '" + escape_name(shown) + "'" + did_you_mean(shown, names));
}

const Arg* find_arg(const VerbRow& row, std::string_view name) {
  const auto found = std::ranges::find(row.args, name, &Arg::name);
  return found == row.args.end() ? nullptr : &*found;
}

bool fits(const json& value, ArgKind kind) {
  switch (kind) {
    case ArgKind::text:
      return value.is_string() &&
             value.get_ref<const std::string&>().size() <= kTextArgumentLimitBytes;
    case ArgKind::number:
      return value.is_number() && value.get<double>() >= 0 &&
             value.get<double>() <= kNumberArgumentLimit;
    case ArgKind::flag: return value.is_boolean();
  }
  return false;
}

// Returns null if the text is not a value of that kind.
json typed(const std::string& text, ArgKind kind) {
  switch (kind) {
    case ArgKind::text: return text;
    case ArgKind::number:
      if (const auto number = parse_double(text)) return *number;
      return nullptr;
    case ArgKind::flag:
      if (text == "true" || text == "false") return text == "true";
      return nullptr;
  }
  return nullptr;
}

Status check_arg(const VerbRow& row, const std::string& name, const json& value) {
  const Arg* const arg = find_arg(row, name);
  if (arg == nullptr) {
    std::vector<std::string_view> names;
    for (const Arg& known : row.args) names.emplace_back(known.name);
    const std::string shown = name.substr(0, kShownBytes);
    return refuse(std::string(row.name) + " takes no '" + escape_name(shown) + "'" +
                  did_you_mean(shown, names));
  }
  if (!fits(value, arg->kind))
    return refuse(std::string(row.name) + ": '" + name + "' has the wrong type, length or size");
  return {};
}

Result<Request> read_request(const VerbRow& row, const json& args) {
  if (!args.is_object()) return refuse("'args' is not an object");
  for (const auto& [name, value] : args.items())
    if (Status status = check_arg(row, name, value); !status)
      return std::unexpected(status.error());
  for (const Arg& arg : row.args)
    if (arg.required && !args.contains(arg.name))
      return refuse(std::string(row.name) + " needs '" + arg.name + "'");
  return row.read(args);
}

json args_of(const Request& request) {
  Writer writer;
  std::visit([&](const auto& one) { visit_fields(writer, one); }, request);
  return std::move(writer.args);
}

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

const char* to_string(Verb verb) { return row_of(verb).name; }

bool is_admin(Verb verb) { return row_of(verb).admin; }

Result<Request> request_of_texts(std::string_view verb, std::span<const TextArgument> arguments) {
  const Result<const VerbRow*> row = find_verb(verb);
  if (!row) return std::unexpected(row.error());
  json args = json::object();
  for (const auto& [name, value] : arguments) {
    if (args.contains(name))
      return refuse("'" + escape_name(name.substr(0, kShownBytes)) + "' is given twice");
    const Arg* const arg = find_arg(**row, name);
    args[name] = arg != nullptr ? typed(value, arg->kind) : json(value);
  }
  return read_request(**row, args);
}

Result<Request> parse_request(std::string_view payload) {
  if (payload.size() > kRequestLimitBytes) return refuse("longer than 64 KiB");
  const Result<json> parsed = parse_bounded_json(payload);
  if (!parsed) return refuse(parsed.error().text);
  if (!parsed->is_object()) return refuse("not an object");
  for (const auto& [key, value] : parsed->items())
    if (key != "verb" && key != "args" && key != "schema")
      return refuse("unknown key '" + escape_name(key.substr(0, kShownBytes)) + "'");
  const auto verb = parsed->find("verb");
  if (verb == parsed->end() || !verb->is_string()) return refuse("no 'verb'");
  const Result<const VerbRow*> row = find_verb(verb->get_ref<const std::string&>());
  if (!row) return std::unexpected(row.error());
  return read_request(**row, parsed->value("args", json::object()));
}

std::string encode_request(const Request& request) {
  return dumped({{"schema", kSchema},
                 {"verb", to_string(verb_of(request))},
                 {"args", args_of(request)}});
}

std::string encode_arguments(const Request& request) { return dumped(args_of(request)); }

std::optional<WallTime> time_of(const std::optional<double>& seconds) {
  if (!seconds) return std::nullopt;
  return WallTime(std::chrono::nanoseconds(static_cast<std::int64_t>(*seconds * 1e9)));
}

int bounded(const std::optional<std::int64_t>& limit, int absent, int most) {
  return limit ? static_cast<int>(std::min<std::int64_t>(*limit, most)) : absent;
}

}  // namespace cgphase
