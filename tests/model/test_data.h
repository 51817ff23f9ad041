// The path of public traces that are not part of this repository: in the folder that the
// environment names, else next to a developer's checkout.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace cgphase {

// Empty, after a message, if the folder does not exist. The caller then returns.
inline std::string test_data(const std::string& name) {
  const char* named = std::getenv("CGPHASE_TEST_DATA");
  const bool asked = named != nullptr && *named != '\0';
  const std::string folder = asked ? named : CGPHASE_SOURCE_DIR "/../shared/data";
  if (asked || std::filesystem::is_directory(folder)) return folder + "/" + name;
  MESSAGE("CGPHASE_TEST_DATA names no folder: " << name << " is not tested");
  return {};
}

}  // namespace cgphase
