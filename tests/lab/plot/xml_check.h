// Checks that a text is XML in the form that cgphase writes: a declaration, nested elements,
// attributes in double quotes, the five predefined entities, no comments, no CDATA.
#pragma once

#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace cgphase::test {

// The matcher recurses as deep as its match is long, and path data is long.
inline std::string without_path_data(std::string tag) {
  const std::size_t from = tag.find(" d=\"");
  if (from == tag.npos) return tag;
  const std::size_t to = tag.find('"', from + 4);
  return to == tag.npos ? tag : tag.erase(from, to + 1 - from);
}

// Returns the error; empty if there is none.
inline std::string xml_fault(std::string_view text) {
  static const std::regex kEntity("&(?!(amp|lt|gt|quot|#39);)");
  static const std::regex kTag(R"re(/?[A-Za-z]+( [A-Za-z0-9:-]+="[^"<]*")*/?)re");
  constexpr std::string_view kDeclaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  if (!text.starts_with(kDeclaration)) return "no declaration";
  text.remove_prefix(kDeclaration.size());
  if (std::regex_search(text.begin(), text.end(), kEntity)) return "a bare ampersand";
  std::vector<std::string> open;
  for (std::size_t from = text.find('<'); from != text.npos; from = text.find('<', from + 1)) {
    const std::size_t to = text.find('>', from);
    if (to == text.npos) return "a tag that does not end";
    const std::string tag(text.substr(from + 1, to - from - 1));
    if (!std::regex_match(without_path_data(tag), kTag)) return "not a tag: " + tag.substr(0, 80);
    const std::string name = tag.substr(0, tag.find(' '));
    if (name.starts_with('/')) {
      if (open.empty() || "/" + open.back() != name) return "closes what is not open: " + name;
      open.pop_back();
    } else if (!tag.ends_with('/')) {
      open.push_back(name);
    }
  }
  for (const char byte : text)
    if (static_cast<unsigned char>(byte) < 0x20 && byte != '\n') return "a control character";
  return open.empty() ? "" : "not closed: " + open.back();
}

}  // namespace cgphase::test
