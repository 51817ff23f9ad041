// Reads names, images and labels from the files that engines keep on disk, without a socket or a
// daemon. Formats: docs/operations.md. The content is foreign: sizes are limited, and malformed
// files are ignored.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "collectors/containers/container_info.h"

namespace cgphase {

inline constexpr std::size_t kMaxEngineFileBytes = 4 << 20;
inline constexpr std::size_t kMaxLabels = 128;
inline constexpr std::size_t kMaxLabelBytes = 4096;  // limit for key and value each
inline constexpr std::size_t kMaxNameBytes = 256;    // a longer name or image is ignored

// Adds the data on disk about `container` (engine and engine_id must be set). Fields without data
// are unchanged. `engine_root` is "/" except in tests. Use it only for a cgroup that root created:
// the files are root's, and anybody can name a cgroup by an id.
void read_engine_files(const std::string& engine_root, ContainerInfo& container);

// Reads the engine-neutral source: extended attributes of the cgroup directory. user.cgphase.name
// and user.cgphase.image are name and image. user.cgphase.X is the label "cgphase.X".
void read_attributes(int directory_fd, ContainerInfo& container);

// The parsers of these functions, for tests and the fuzzer.
void apply_docker_config(std::string_view json, ContainerInfo& container);
void apply_storage_list(std::string_view json, ContainerInfo& container);
void apply_oci_config(std::string_view json, ContainerInfo& container);

}  // namespace cgphase
