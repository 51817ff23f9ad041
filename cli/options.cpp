#include "cli/options.h"

#include <filesystem>

namespace cgphase {

std::string CommonOptions::runtime_directory() const {
  const std::string parent = std::filesystem::path(socket).parent_path();
  return parent.empty() ? "." : parent;
}

std::string CommonOptions::admin_socket() const { return runtime_directory() + "/admin.sock"; }

}  // namespace cgphase
