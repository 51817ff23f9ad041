#include "collectors/containers/bolt_file.h"

#include <cstring>
#include <utility>

namespace cgphase {
namespace {

constexpr std::uint32_t kMagic = 0xED0CDAED, kVersion = 2;
constexpr std::size_t kPageHeaderBytes = 16, kElementBytes = 16, kBucketHeaderBytes = 16;
constexpr std::size_t kMetaBytes = 64, kChecksummedBytes = 56;
constexpr std::uint16_t kBranchFlag = 1, kLeafFlag = 2;
constexpr std::uint32_t kBucketFlag = 1;
constexpr int kMaxDepth = 16;
constexpr std::size_t kMostVisited = 65536;  // elements of one each()

// The number at `offset`; 0 beyond the end. Files of the other byte order have no valid magic.
template <class Number>
Number number_at(std::string_view bytes, std::size_t offset) {
  Number value = 0;
  if (offset <= bytes.size() && bytes.size() - offset >= sizeof value)
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Empty if it is not all within `bytes`.
std::string_view part(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return {};
  return bytes.substr(offset, size);
}

std::uint64_t checksum(std::string_view bytes) {  // FNV-1a
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  return hash;
}

struct Meta {
  std::uint64_t page_bytes = 0, root = 0, transaction = 0;
};

std::optional<Meta> meta_at(std::string_view bytes, std::size_t offset) {
  const std::string_view meta = part(bytes, offset + kPageHeaderBytes, kMetaBytes);
  if (meta.empty() || number_at<std::uint32_t>(meta, 0) != kMagic ||
      number_at<std::uint32_t>(meta, 4) != kVersion ||
      number_at<std::uint64_t>(meta, kChecksummedBytes) !=
          checksum(meta.substr(0, kChecksummedBytes)))
    return std::nullopt;
  return Meta{number_at<std::uint32_t>(meta, 8), number_at<std::uint64_t>(meta, 16),
              number_at<std::uint64_t>(meta, 48)};
}

std::size_t count_of(std::string_view page) { return number_at<std::uint16_t>(page, 10); }
bool has_flag(std::string_view page, std::uint16_t flag) {
  return (number_at<std::uint16_t>(page, 8) & flag) != 0;
}

// Element `i` of a page, with the bytes up to the end of the page.
std::string_view element(std::string_view page, std::size_t i) {
  const std::size_t offset = kPageHeaderBytes + i * kElementBytes;
  return offset < page.size() ? page.substr(offset) : std::string_view{};
}

struct Branch {
  std::string_view key;
  std::uint64_t page = 0;
};

Branch branch_of(std::string_view element) {
  return {part(element, number_at<std::uint32_t>(element, 0),
               number_at<std::uint32_t>(element, 4)),
          number_at<std::uint64_t>(element, 8)};
}

struct LeafElement {
  bool is_bucket = false;
  std::string_view key, value;
};

LeafElement leaf_of(std::string_view element) {
  const std::uint64_t at = number_at<std::uint32_t>(element, 4);
  const std::uint64_t key_bytes = number_at<std::uint32_t>(element, 8);
  return {(number_at<std::uint32_t>(element, 0) & kBucketFlag) != 0, part(element, at, key_bytes),
          part(element, at + key_bytes, number_at<std::uint32_t>(element, 12))};
}

}  // namespace

// The newest of two states counts. Each is written completely before the next begins.
Result<BoltFile> BoltFile::parse(std::string bytes) {
  std::optional<Meta> newest = meta_at(bytes, 0);
  for (std::size_t size = 1024; size <= 65536; size *= 2) {
    const std::optional<Meta> second = meta_at(bytes, size);
    if (!second || second->page_bytes != size) continue;
    if (!newest || second->transaction > newest->transaction) newest = second;
    break;
  }
  if (!newest || newest->page_bytes < 1024 || newest->root == 0)
    return failure(ErrorKind::invalid, "no bbolt database");
  BoltFile file;
  file.bytes_ = std::move(bytes);
  file.page_bytes_ = newest->page_bytes;
  file.root_ = {.page = newest->root};
  return file;
}

// A page with its overflow, which follows it.
std::string_view BoltFile::page(std::uint64_t number) const {
  if (number > bytes_.size() / page_bytes_) return {};
  const std::uint64_t offset = number * page_bytes_;
  const std::string_view first = part(bytes_, offset, page_bytes_);
  if (first.empty() || number_at<std::uint64_t>(first, 0) != number) return {};
  return part(bytes_, offset, (1 + std::uint64_t{number_at<std::uint32_t>(first, 12)}) *
                                  page_bytes_);
}

std::string_view BoltFile::top_of(const Bucket& bucket) const {
  return bucket.page != 0 ? page(bucket.page) : bucket.bytes;
}

std::optional<BoltFile::Leaf> BoltFile::find(const Bucket& bucket, std::string_view key) const {
  std::string_view at = top_of(bucket);
  for (int depth = 0; depth < kMaxDepth && has_flag(at, kBranchFlag); ++depth) {
    std::uint64_t below = branch_of(element(at, 0)).page;
    for (std::size_t i = 1; i < count_of(at); ++i) {
      const Branch branch = branch_of(element(at, i));
      if (branch.key > key) break;
      below = branch.page;
    }
    at = page(below);
  }
  if (!has_flag(at, kLeafFlag)) return std::nullopt;
  for (std::size_t i = 0; i < count_of(at); ++i) {
    const LeafElement leaf = leaf_of(element(at, i));
    if (leaf.key == key && !key.empty()) return Leaf{leaf.is_bucket, leaf.value};
  }
  return std::nullopt;
}

std::optional<BoltFile::Bucket> BoltFile::bucket(const Bucket& parent, std::string_view key) const {
  const std::optional<Leaf> leaf = find(parent, key);
  if (!leaf || !leaf->is_bucket || leaf->value.size() < kBucketHeaderBytes) return std::nullopt;
  return Bucket{number_at<std::uint64_t>(leaf->value, 0), leaf->value.substr(kBucketHeaderBytes)};
}

std::optional<std::string_view> BoltFile::value(const Bucket& parent, std::string_view key) const {
  const std::optional<Leaf> leaf = find(parent, key);
  return leaf && !leaf->is_bucket ? std::optional(leaf->value) : std::nullopt;
}

void BoltFile::each(const Bucket& bucket, const Visit& visit) const {
  std::size_t left = kMostVisited;
  visit_page(top_of(bucket), visit, 0, left);
}

bool BoltFile::visit_page(std::string_view page, const Visit& visit, int depth,
                          std::size_t& left) const {
  const bool branch = has_flag(page, kBranchFlag);
  if (depth == kMaxDepth || (!branch && !has_flag(page, kLeafFlag))) return true;
  for (std::size_t i = 0; i < count_of(page); ++i) {
    if (left == 0) return false;
    --left;
    const std::string_view at = element(page, i);
    if (branch) {
      if (!visit_page(this->page(branch_of(at).page), visit, depth + 1, left)) return false;
      continue;
    }
    const LeafElement leaf = leaf_of(at);
    if (!visit(leaf.key, leaf.is_bucket ? std::nullopt : std::optional(leaf.value))) return false;
  }
  return true;
}

}  // namespace cgphase
