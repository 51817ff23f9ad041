// Names, images and labels from the files that engines keep on disk: no socket, no daemon needed.
// Formats: docs/operations.md. All of it is foreign: sizes are bounded, what does not parse is
// passed over.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "collectors/containers/container_info.h"

namespace cgphase {

inline constexpr std::size_t kMaxEngineFileBytes = 4 << 20;
inline constexpr std::size_t kMaxLabels = 128;
inline constexpr std::size_t kMaxLabelBytes = 4096;  // key and value each
inline constexpr std::size_t kMaxNameBytes = 256;    // a longer name or image is not taken

// Adds what is known on disk about `container` (engine and engine_id must be set). Fields that no
// file tells stay as they are. `engine_root` is "/" but for tests. The files are root's: only for a
// cgroup that root made, for an id is a name that anybody can give.
void read_engine_files(const std::string& engine_root, ContainerInfo& container);

// The engine-neutral door: extended attributes of the cgroup directory. user.cgphase.name and
// user.cgphase.image are name and image, user.cgphase.X is the label "cgphase.X".
void read_attributes(int directory_fd, ContainerInfo& container);

// The parts of the above that need no disk, for tests and the fuzzer.
void apply_docker_config(std::string_view json, ContainerInfo& container);
void apply_storage_list(std::string_view json, ContainerInfo& container);
void apply_oci_config(std::string_view json, ContainerInfo& container);

}  // namespace cgphase
