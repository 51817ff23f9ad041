// Where public traces lie that are not part of this repository.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

namespace cgphase {

// Empty, after a message, where the environment does not name the folder: the caller returns.
inline std::string test_data(const std::string& name) {
  const char* folder = std::getenv("CGPHASE_TEST_DATA");
  if (folder != nullptr && *folder != '\0') return std::string(folder) + "/" + name;
  MESSAGE("CGPHASE_TEST_DATA is not set: " << name << " is not tested");
  return {};
}

}  // namespace cgphase
