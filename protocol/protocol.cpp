#include "protocol/protocol.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace cgphase {
namespace {

using nlohmann::json;

// Counts the brackets that are open at once, outside of strings. The check runs before the parser,
// which then never meets deep nesting.
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

Result<json> parse_bounded_json(std::string_view text) {
  if (nesting_depth(text) > kJsonDepthLimit)
    return failure(ErrorKind::invalid, "JSON nested too deep");
  json parsed = json::parse(text, nullptr, false);
  if (parsed.is_discarded()) return failure(ErrorKind::invalid, "malformed JSON");
  return parsed;
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
  if (schema == parsed->end() || !schema->is_number_integer() || *schema < kOldestSchema ||
      *schema > kSchema)
    return bad("the reply has an unknown schema: use the cgphase and cgphased of one package");
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
