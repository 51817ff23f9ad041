// The files of web/, part of the program. agent/CMakeLists.txt makes the source of this header out
// of them.
#pragma once

#include <span>
#include <string_view>

namespace cgphase {

struct WebFile {
  std::string_view path;  // "/", "/page.js"
  const char* type;
  std::string_view text;
};
std::span<const WebFile> web_files();

}  // namespace cgphase
