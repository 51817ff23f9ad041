#include "protocol/protocol.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/parse.h"
#include "base/text.h"

namespace cgphase {
namespace {

using nlohmann::json;

// So much of a foreign word is repeated in an error.
constexpr std::size_t kShownBytes = 64;

enum class ArgKind : std::uint8_t { text, number, flag };

struct Arg {
  const char* name;
  ArgKind kind;
  bool required;
};

struct VerbRow {
  Verb verb;
  const char* name;
  bool admin;
  std::array<Arg, 7> args;  // unused entries have no name
};

constexpr Arg kContainer{"container", ArgKind::text, true};
constexpr Arg kMaybeContainer{"container", ArgKind::text, false};
constexpr Arg kFrom{"from_seconds", ArgKind::number, false};
constexpr Arg kUntil{"until_seconds", ArgKind::number, false};
constexpr Arg kLimit{"limit", ArgKind::number, false};

// The closed list: one row per verb, in the order of the enum.
constexpr std::array<VerbRow, kVerbCount> kVerbs = {{
    {Verb::status, "status", false, {}},
    {Verb::list, "list", false, {}},
    {Verb::show, "show", false, {kContainer}},
    {Verb::explain, "explain", false, {kContainer, Arg{"at_seconds", ArgKind::number, false}}},
    {Verb::history, "history", false,
     {kMaybeContainer, Arg{"record", ArgKind::number, false}, kFrom, kUntil, kLimit,
      Arg{"full", ArgKind::flag, false}, Arg{"rows", ArgKind::flag, false}}},
    {Verb::events, "events", false,
     {kMaybeContainer, kFrom, kUntil, kLimit, Arg{"before", ArgKind::text, false}}},
    {Verb::mode, "mode", true, {Arg{"mode", ArgKind::text, true}, kMaybeContainer,
      Arg{"until_restart", ArgKind::flag, false}}},
    {Verb::pause, "pause", true, {kContainer}},
    {Verb::resume, "resume", true, {kContainer}},
    {Verb::restore, "restore", true, {kMaybeContainer, Arg{"all", ArgKind::flag, false}}},
    {Verb::config, "config", false, {}},
    {Verb::records, "records", false, {Arg{"after", ArgKind::number, false}}},
    {Verb::learned, "learned", false, {kMaybeContainer, Arg{"image", ArgKind::text, false}}},
    {Verb::fit, "fit", false,
     {Arg{"cpus", ArgKind::number, true}, Arg{"memory_mib", ArgKind::number, true},
      Arg{"seconds", ArgKind::number, true}, Arg{"risk", ArgKind::number, false}}},
    {Verb::table, "table", false,
     {Arg{"name", ArgKind::text, true}, Arg{"after", ArgKind::number, false}}},
    {Verb::model, "model", true, {}},
    {Verb::pin, "pin", true,
     {kContainer, Arg{"cpus", ArgKind::number, false}, Arg{"memory_mib", ArgKind::number, false}}},
}};

const VerbRow& row_of(Verb verb) { return kVerbs[static_cast<std::size_t>(verb)]; }

std::unexpected<Error> refuse(std::string text) {
  return failure(ErrorKind::invalid, "request refused: " + std::move(text));
}

// Brackets open at once, outside of strings. Checked before parsing, so that no parser has to be
// trusted with deep nesting.
int nesting_depth(std::string_view text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      else if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

const VerbRow* find_verb(std::string_view name) {
  const auto row = std::ranges::find_if(kVerbs, [&](const VerbRow& r) { return name == r.name; });
  return row == kVerbs.end() ? nullptr : &*row;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string_view close = nearest(word, candidates);
  return close.empty() ? std::string() : "; did you mean '" + std::string(close) + "'?";
}

std::unexpected<Error> refuse_verb(std::string_view name) {
  std::vector<std::string_view> names;
  for (const VerbRow& row : kVerbs) names.emplace_back(row.name);
  const std::string_view shown = name.substr(0, kShownBytes);
  return refuse("no verb '" + escape_name(shown) + "'" + did_you_mean(shown, names));
}

const Arg* find_arg(const VerbRow& row, std::string_view name) {
  for (const Arg& arg : row.args)
    if (arg.name != nullptr && name == arg.name) return &arg;
  return nullptr;
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

// null where the text is nothing of that kind.
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
    for (const Arg& known : row.args)
      if (known.name != nullptr) names.emplace_back(known.name);
    const std::string shown = name.substr(0, kShownBytes);
    return refuse(std::string(row.name) + " takes no '" + escape_name(shown) + "'" +
                  did_you_mean(shown, names));
  }
  if (!fits(value, arg->kind))
    return refuse(std::string(row.name) + ": '" + name + "' has the wrong type, length or size");
  return {};
}

Status check_required(const VerbRow& row, const json& args) {
  for (const Arg& arg : row.args)
    if (arg.name != nullptr && arg.required && !args.contains(arg.name))
      return refuse(std::string(row.name) + " needs '" + arg.name + "'");
  if (row.verb == Verb::history && args.contains("container") == args.contains("record"))
    return refuse("history needs 'container'; or 'record', as a reply to records says it");
  if (row.verb == Verb::learned && args.contains("container") == args.contains("image"))
    return refuse("learned needs either 'container' or 'image'");
  if (row.verb == Verb::restore && args.contains("container") == args.value("all", false))
    return refuse("restore needs either 'container' or 'all'");
  return {};
}

Status check_args(const VerbRow& row, const json& args) {
  if (!args.is_object()) return refuse("'args' is not an object");
  for (const auto& [name, value] : args.items())
    if (Status status = check_arg(row, name, value); !status) return status;
  return check_required(row, args);
}

}  // namespace

Exit exit_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::gone:
    case ErrorKind::not_found: return Exit::no_container;
    case ErrorKind::invalid:
    case ErrorKind::unsupported: return Exit::invalid;
    case ErrorKind::denied: return Exit::denied;
    case ErrorKind::io: return Exit::failure;
  }
  return Exit::failure;
}

const char* to_string(Verb verb) { return row_of(verb).name; }

bool is_admin(Verb verb) { return row_of(verb).admin; }

std::optional<std::string> Request::text(const char* name) const {
  const auto at = args.find(name);
  if (at == args.end() || !at->is_string()) return std::nullopt;
  return at->get<std::string>();
}

std::optional<double> Request::number(const char* name) const {
  const auto at = args.find(name);
  if (at == args.end() || !at->is_number()) return std::nullopt;
  return at->get<double>();
}

std::optional<WallTime> Request::time(const char* name) const {
  const std::optional<double> seconds = number(name);
  if (!seconds) return std::nullopt;
  return WallTime(std::chrono::nanoseconds(static_cast<std::int64_t>(*seconds * 1e9)));
}

int Request::count(const char* name, int absent, int most) const {
  const std::optional<double> value = number(name);
  return value ? static_cast<int>(std::min(*value, static_cast<double>(most))) : absent;
}

bool Request::flag(const char* name) const {
  const auto at = args.find(name);
  return at != args.end() && at->is_boolean() && at->get<bool>();
}

Result<Request> request_of_texts(std::string_view verb, std::span<const TextArgument> arguments) {
  const VerbRow* const row = find_verb(verb);
  if (row == nullptr) return refuse_verb(verb);
  Request request{.verb = row->verb};
  for (const auto& [name, value] : arguments) {
    if (request.args.contains(name))
      return refuse("'" + escape_name(name.substr(0, kShownBytes)) + "' is given twice");
    const Arg* const arg = find_arg(*row, name);
    request.args[name] = arg != nullptr ? typed(value, arg->kind) : json(value);
  }
  if (Status status = check_args(*row, request.args); !status)
    return std::unexpected(status.error());
  return request;
}

Result<json> parse_bounded_json(std::string_view text) {
  if (nesting_depth(text) > kJsonDepthLimit)
    return failure(ErrorKind::invalid, "JSON nested too deep");
  json parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded()) return failure(ErrorKind::invalid, "malformed JSON");
  return parsed;
}

Result<Request> parse_request(std::string_view payload) {
  if (payload.size() > kRequestLimitBytes) return refuse("longer than 64 KiB");
  Result<json> parsed = parse_bounded_json(payload);
  if (!parsed) return refuse(parsed.error().text);
  if (!parsed->is_object()) return refuse("not an object");
  for (const auto& [key, value] : parsed->items())
    if (key != "verb" && key != "args" && key != "schema")
      return refuse("unknown key '" + escape_name(key.substr(0, kShownBytes)) + "'");
  const auto verb = parsed->find("verb");
  if (verb == parsed->end() || !verb->is_string()) return refuse("no 'verb'");
  const VerbRow* const row = find_verb(verb->get_ref<const std::string&>());
  if (row == nullptr) return refuse_verb(verb->get_ref<const std::string&>());
  Request request{.verb = row->verb, .args = parsed->value("args", json::object())};
  if (Status status = check_args(*row, request.args); !status)
    return std::unexpected(status.error());
  return request;
}

std::string encode_request(const Request& request) {
  const json wire = {
      {"schema", kSchema}, {"verb", to_string(request.verb)}, {"args", request.args}};
  return wire.dump(-1, ' ', false, json::error_handler_t::replace);
}

json ok_reply(json body) {
  CHECK_INVARIANT(body.is_object() || body.is_null());
  body["schema"] = kSchema;
  return body;
}

json error_reply(Exit exit, std::string_view text) {
  CHECK_INVARIANT(exit != Exit::ok);
  return {{"schema", kSchema}, {"error", {{"exit", static_cast<int>(exit)}, {"text", text}}}};
}

json error_reply(const Error& error) { return error_reply(exit_of(error.kind), error.text); }

Result<Reply> parse_reply(std::string_view payload) {
  Result<json> parsed = parse_bounded_json(payload);
  if (!parsed) return std::unexpected(parsed.error());
  const auto bad = [](const char* text) { return failure(ErrorKind::invalid, text); };
  if (!parsed->is_object()) return bad("reply is not an object");
  const auto schema = parsed->find("schema");
  if (schema == parsed->end() || *schema != kSchema) return bad("reply is not of schema 1");
  Reply reply{.body = std::move(*parsed), .exit = Exit::ok, .error = {}};
  const auto error = reply.body.find("error");
  if (error == reply.body.end()) return reply;
  if (!error->is_object()) return bad("malformed error reply");
  const auto exit = error->find("exit");
  const auto text = error->find("text");
  if (exit == error->end() || !exit->is_number_integer() || text == error->end() ||
      !text->is_string())
    return bad("malformed error reply");
  const auto code = exit->get<std::int64_t>();
  const bool known = code > 0 && code <= static_cast<int>(Exit::assertion);
  reply.exit = known ? static_cast<Exit>(code) : Exit::failure;
  reply.error = text->get<std::string>();
  return reply;
}

std::string encode_frame(std::string_view payload) {
  CHECK_INVARIANT(payload.size() <= kReplyLimitBytes);
  std::string frame;
  frame.reserve(kFrameHeaderBytes + payload.size());
  for (int shift = 24; shift >= 0; shift -= 8)
    frame += static_cast<char>((payload.size() >> shift) & 0xFFU);
  frame += payload;
  return frame;
}

std::size_t frame_length(std::array<unsigned char, kFrameHeaderBytes> header) {
  std::size_t length = 0;
  for (const unsigned char byte : header) length = length << 8 | byte;
  return length;
}

std::string encode_reply_frame(const json& reply) {
  const std::string text = reply.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() <= kReplyLimitBytes) return encode_frame(text);
  return encode_frame(
      error_reply(Exit::failure, "answer longer than 16 MiB; ask for a shorter time").dump());
}

}  // namespace cgphase
