// Makes more writes to watched files than an inotify instance keeps.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "base/fd.h"
#include "base/file.h"

namespace cgphase {

// Alternates between files, because repeated writes to the same file are merged.
inline void fill_inotify(const std::string& one, const std::string& other) {
  const Result<std::string> most = read_file("/proc/sys/fs/inotify/max_queued_events", 32);
  REQUIRE(most.has_value());
  const Fd files[] = {Fd(::open(one.c_str(), O_WRONLY | O_CLOEXEC)),
                      Fd(::open(other.c_str(), O_WRONLY | O_CLOEXEC))};
  int written = 0;
  for (int i = 0; i <= std::stoi(*most); ++i)
    written += ::pwrite(files[i % 2].get(), "0", 1, 0) == 1;
  REQUIRE(written == std::stoi(*most) + 1);
}

}  // namespace cgphase
