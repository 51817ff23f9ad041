// The models that were installed on this host: numbered files in STATE_DIR/models and a link to the
// one in use. docs/internals/model-file.md describes the layout.
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

inline constexpr std::size_t kKeptModels = 5;  // the one in use and its predecessors

struct InstalledModel {
  std::uint64_t number = 0;
  std::string path;
  WallTime installed{};  // time of the file
};

struct InstalledModels {
  std::vector<InstalledModel> models;  // ascending by number
  // The number in the link. If absent, the package's model is in use. The file may be missing.
  std::optional<std::uint64_t> current;
  WallTime since{};  // time of the link, if there is one

  // The model in use, then its predecessors, which replace it if it is damaged. Empty if no
  // installed model is in use.
  std::vector<InstalledModel> in_order() const;
};

// Lists the installed models; none if the folder does not exist. Files with other names are
// ignored. Errors: denied, io, and invalid if the link does not point to a model.
Result<InstalledModels> installed_models(const std::string& state_dir);

// Changes the installed models. Only one process at a time may do so. A file appears complete, and
// the link changes atomically. Models are not parsed here.
class ModelInstaller {
 public:
  // Creates the folder, mode 0750. Errors: denied, io (also if another process changes the models).
  static Result<ModelInstaller> open(const std::string& state_dir);

  // Writes a model under a number above all others. It is not in use until use() is called.
  Result<InstalledModel> add(std::string_view text);
  // Points the link to model `number`. If absent, the link is removed and the package's model is
  // used.
  Status use(std::optional<std::uint64_t> number);
  Status remove(std::uint64_t number);
  // Call it after use() of a new model. It removes the models between the new one and `before`,
  // from which the user went back, and of the others all but kKeptModels.
  Status tidy(std::optional<std::uint64_t> before);

 private:
  ModelInstaller(std::string state_dir, Fd lock);
  std::string path_of(std::uint64_t number) const;

  std::string state_dir_, folder_;
  Fd lock_;
};

}  // namespace cgphase
