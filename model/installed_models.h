// The models that were installed on this host: numbered files in STATE_DIR/models and a link that
// names the one in use. docs/internals/model-file.md tells the layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace cgphase {

inline constexpr std::size_t kKeptModels = 5;  // the one in use and those before it

struct InstalledModel {
  std::uint64_t number = 0;
  std::string path;
  WallTime installed{};  // written
};

struct InstalledModels {
  std::vector<InstalledModel> models;  // ascending by number
  // That the link names; absent: the package's model is in use. There may be no file of it.
  std::optional<std::uint64_t> current;
  WallTime since{};  // the link is as it is; where there is one

  // The one in use, then those before it, which stand in where it is damaged. Empty: none.
  std::vector<InstalledModel> in_order() const;
};

// No such folder: none. What is no model by its name is passed over. Errors: denied, io, and
// invalid where the link names none.
Result<InstalledModels> installed_models(const std::string& state_dir);

// To change them; one process at a time. A file appears whole, a link changes at once. Nothing here
// looks into a model.
class ModelInstaller {
 public:
  // Makes the folder, mode 0750. Errors: denied, io (also where another process changes them).
  static Result<ModelInstaller> open(const std::string& state_dir);

  // Writes one under a number above all others. It is not in use yet.
  Result<InstalledModel> add(std::string_view text);
  // Absent: none, so the package's.
  Status use(std::optional<std::uint64_t> number);
  Status remove(std::uint64_t number);
  // After use() of a new one: those between it and `before`, that somebody went back from, go, and
  // of the rest all but kKeptModels.
  Status tidy(std::optional<std::uint64_t> before);

 private:
  ModelInstaller(std::string state_dir, Fd lock);
  std::string path_of(std::uint64_t number) const;

  std::string state_dir_, folder_;
  Fd lock_;
};

}  // namespace cgphase
