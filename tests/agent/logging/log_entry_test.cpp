#include "agent/logging/log_entry.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/file.h"
#include "base/parse.h"

using namespace cgphase;

namespace {

// Text by id, as systemd/cgphase.catalog has it.
std::map<std::string, std::string> catalog() {
  const auto text = read_file(CGPHASE_SOURCE_DIR "/systemd/cgphase.catalog", 256 * 1024);
  REQUIRE(text);
  std::map<std::string, std::string> entries;
  std::string_view rest = *text, line;
  std::string id;
  while (next_line(rest, line)) {
    if (line.starts_with("-- ")) {
      id = line.substr(3);
      CHECK_MESSAGE(entries.emplace(id, "").second, "twice in the catalog: ", id);
    } else if (!id.empty()) {
      entries[id] += std::string(line) + "\n";
    }
  }
  return entries;
}

std::set<std::string> words(std::string_view text) {
  std::set<std::string> found;
  std::string_view word;
  while (next_word(text, word)) found.emplace(word);
  return found;
}

// The names between two @ of a text.
std::set<std::string> named_fields(const std::string& text) {
  std::set<std::string> found;
  for (std::size_t at = text.find('@'); at != std::string::npos; at = text.find('@', at + 1)) {
    const std::size_t end = text.find('@', at + 1);
    REQUIRE_MESSAGE(end != std::string::npos, text);
    found.insert(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return found;
}

}  // namespace

TEST_CASE("every message of the daemon is in the catalog, and every entry of it is a message") {
  std::set<std::string> in_code, in_catalog;
  for (const MessageKind& kind : message_kinds()) in_code.emplace(kind.id);
  for (const auto& [id, text] : catalog()) in_catalog.insert(id);
  CHECK(in_code == in_catalog);
  CHECK(in_code.size() == message_kinds().size());
}

TEST_CASE("an id is 128 bits, in the digits that the journal searches") {
  for (const MessageKind& kind : message_kinds()) {
    CHECK(kind.id.size() == 32);
    CHECK(kind.id.find_first_not_of("0123456789abcdef") == std::string_view::npos);
    CHECK(kind_of(kind.message).id == kind.id);
  }
}

TEST_CASE("an entry of the catalog has a subject and says more, with fields that the message has") {
  const auto entries = catalog();
  for (const MessageKind& kind : message_kinds()) {
    const std::string& text = entries.at(std::string(kind.id));
    CAPTURE(text);
    CHECK(text.starts_with("Subject: "));
    CHECK(text.find("\nDefined-By: cgphase\n") != std::string::npos);
    CHECK(text.find("\n\n") < text.size() - 80);
    CHECK(std::ranges::includes(words(kind.fields), named_fields(text)));
  }
}

TEST_CASE("fields have names that the journal takes from programs") {
  std::set<std::string> names = words(kCommonFields);
  for (const MessageKind& kind : message_kinds()) names.merge(words(kind.fields));
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(name.size() <= 64);
    CHECK(name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos);
    CHECK((name[0] >= 'A' && name[0] <= 'Z'));
  }
}
