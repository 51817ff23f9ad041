// A plain directory tree that looks like cgroups to code that takes a root path. No kernel is
// behind it; tests/kernel has the tests that need one.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/fd.h"
#include "cgroupfs/cgroup_id.h"
#include "cgroupfs/knob_file.h"
#include "control/lease/lease_table.h"

namespace cgphase {

// A directory that is removed with everything in it at the end of the test.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char name[] = "/tmp/cgphase-control-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void put_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::trunc) << content;
}

inline std::string get_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

inline CgroupId id_of(const std::string& path) {
  struct stat status;
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return {status.st_dev, status.st_ino};
}

inline void release_lease(LeaseTable& leases, CgroupId id, Knob knob) {
  leases.release(leases.find(id, knob).value(), id, knob);
}

inline KnobText text_of(std::string_view text) { return KnobText::from(text).value(); }

// One container with limits of 2 cores and 1 GiB. It uses 300 MiB, of which 100 are cache.
class FakeCgroup {
 public:
  explicit FakeCgroup(const std::string& root, const std::string& name = "/box")
      : root_(root), path_(name), directory_(root + name) {
    REQUIRE(::mkdir(directory_.c_str(), 0755) == 0);
    put("cpu.max", "200000 100000\n");
    put("cpu.max.burst", "0\n");
    put("cpu.weight", "100\n");
    put("cgroup.freeze", "0\n");
    put("memory.max", "1073741824\n");
    put("memory.high", "max\n");
    put("memory.current", "314572800\n");
    put("memory.stat",
        "anon 209715200\nfile 103809024\nkernel 1048576\nshmem 0\ninactive_file 103809024\n");
    put("memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n");
    put("cpu.stat", "usage_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
    id_ = id_of(directory_);
  }

  CgroupId id() const { return id_; }
  const std::string& path() const { return path_; }
  const std::string& directory() const { return directory_; }
  void put(const std::string& file, const std::string& content) const {
    put_file(directory_ + "/" + file, content);
  }
  // The content without the newline.
  std::string get(const std::string& file) const {
    std::string text = get_file(directory_ + "/" + file);
    return text.substr(0, text.find('\n'));
  }
  Fd open() const { return open_path(directory_, O_RDONLY | O_DIRECTORY).value(); }
  Limits limits() const { return read_limits(open().get()).value(); }
  void remove() const { std::filesystem::remove_all(directory_); }

 private:
  std::string root_, path_, directory_;
  CgroupId id_;
};

}  // namespace cgphase
