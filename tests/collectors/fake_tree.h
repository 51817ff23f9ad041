// A directory that looks like a cgroup v2 root. Each test writes its content.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace cgphase {

class FakeTree {
 public:
  FakeTree() {
    char name[] = "/tmp/cgphase-tree-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    root_ = name;
  }
  ~FakeTree() { std::filesystem::remove_all(root_); }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  const std::string& root() const { return root_; }

  // `path` begins with '/', as a CgroupPath does.
  void make(const std::string& path) const { std::filesystem::create_directories(root_ + path); }
  void remove(const std::string& path) const { std::filesystem::remove_all(root_ + path); }
  void write(const std::string& path, std::string_view text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path, std::ios::binary) << text;
  }
  std::string read(const std::string& path) const {
    std::ifstream file(root_ + path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void link(const std::string& path, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::filesystem::create_symlink(target, root_ + path);
  }
  // Uses the device number 0:0, which needs no privilege and has no driver.
  void make_device(const std::string& path) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    REQUIRE(::mknod((root_ + path).c_str(), S_IFCHR | 0600, 0) == 0);
  }

 private:
  std::string root_;
};

}  // namespace cgphase
