// Reads a database file of bbolt, in which Podman 4 and containerd keep what they know of their
// containers. The format: go.etcd.io/bbolt, page.go and bucket.go. The bytes are foreign: each
// offset is checked, and each walk is bounded.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cgphase {

// A copy of the whole file, taken while its owner may write to it. The owner never overwrites a
// page that the newest state uses, so a copy is complete, or an entry is missing. Views are valid
// as long as this object.
class BoltFile {
 public:
  // A B+ tree: a page, or bytes within a leaf.
  struct Bucket {
    std::uint64_t page = 0;
    std::string_view bytes = {};  // if `page` is 0
  };

  // Errors: invalid (no bbolt file, or of another byte order).
  static Result<BoltFile> parse(std::string bytes);

  Bucket root() const { return root_; }
  std::optional<Bucket> bucket(const Bucket& parent, std::string_view key) const;
  std::optional<std::string_view> value(const Bucket& parent, std::string_view key) const;
  // Calls `visit` with each key, and its value or nothing for a bucket, until it returns false.
  using Visit = std::function<bool(std::string_view key, std::optional<std::string_view> value)>;
  void each(const Bucket& bucket, const Visit& visit) const;

 private:
  struct Leaf {
    bool is_bucket = false;
    std::string_view value;
  };
  std::string_view page(std::uint64_t number) const;
  std::string_view top_of(const Bucket& bucket) const;
  std::optional<Leaf> find(const Bucket& bucket, std::string_view key) const;
  bool visit_page(std::string_view page, const Visit& visit, int depth, std::size_t& left) const;

  std::string bytes_;
  std::uint64_t page_bytes_ = 0;
  Bucket root_;
};

}  // namespace cgphase
