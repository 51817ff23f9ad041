// Writes bbolt databases, as Podman 4 and containerd do, and the SQLite database of Podman 5.
#pragma once

#include <doctest/doctest.h>
#include <sqlite3.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/collectors/fake_tree.h"

namespace cgphase {

inline constexpr std::size_t kBoltPage = 4096;

template <class Number>
void put(std::string& bytes, std::size_t at, Number value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// A page of keys with their values. A value is text, or the bytes of bolt_bucket().
struct BoltEntry {
  std::string key, value;
  bool is_bucket = false;
};
inline std::string bolt_leaf(const std::vector<BoltEntry>& entries, std::uint64_t number = 0) {
  std::string page(16 + entries.size() * 16, '\0');
  put(page, 0, number);
  put(page, 8, std::uint16_t{2});
  put(page, 10, static_cast<std::uint16_t>(entries.size()));
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::size_t at = 16 + i * 16;
    put(page, at, std::uint32_t{entries[i].is_bucket});
    put(page, at + 4, static_cast<std::uint32_t>(page.size() - at));
    put(page, at + 8, static_cast<std::uint32_t>(entries[i].key.size()));
    put(page, at + 12, static_cast<std::uint32_t>(entries[i].value.size()));
    page += entries[i].key + entries[i].value;
  }
  return page;
}
inline BoltEntry bolt_bucket(const std::string& key, const std::vector<BoltEntry>& entries) {
  return {key, std::string(16, '\0') + bolt_leaf(entries), true};
}
// A branch: the first key of each page, and the page.
inline std::string bolt_branch(const std::vector<std::pair<std::string, std::uint64_t>>& below,
                               std::uint64_t number) {
  std::string page(16 + below.size() * 16, '\0');
  put(page, 0, number);
  put(page, 8, std::uint16_t{1});
  put(page, 10, static_cast<std::uint16_t>(below.size()));
  for (std::size_t i = 0; i < below.size(); ++i) {
    const std::size_t at = 16 + i * 16;
    put(page, at, static_cast<std::uint32_t>(page.size() - at));
    put(page, at + 4, static_cast<std::uint32_t>(below[i].first.size()));
    put(page, at + 8, below[i].second);
    page += below[i].first;
  }
  return page;
}

inline std::string bolt_meta(std::uint64_t number, std::uint64_t root, std::uint64_t transaction) {
  std::string page(kBoltPage, '\0');
  put(page, 0, number);
  put(page, 8, std::uint16_t{4});
  put(page, 16, std::uint32_t{0xED0CDAED});
  put(page, 20, std::uint32_t{2});
  put(page, 24, static_cast<std::uint32_t>(kBoltPage));
  put(page, 32, root);
  put(page, 64, transaction);
  std::uint64_t hash = 14695981039346656037ULL;
  for (std::size_t i = 16; i < 72; ++i)
    hash = (hash ^ static_cast<unsigned char>(page[i])) * 1099511628211ULL;
  put(page, 72, hash);
  return page;
}

// Two states, of which the newer one has its root at page `root`, and pages from number 2 on. A
// long page takes several numbers.
inline std::string bolt_file(const std::vector<std::string>& pages, std::uint64_t root = 2) {
  std::string file = bolt_meta(0, 99, 6) + bolt_meta(1, root, 7);
  for (std::string page : pages) {
    const std::size_t more = (page.size() - 1) / kBoltPage;
    put(page, 12, static_cast<std::uint32_t>(more));
    page.resize((more + 1) * kBoltPage);
    file += page;
  }
  return file;
}

// Podman 4's database with these containers: the id, and the JSON text of its configuration.
inline std::string podman_bolt(const std::map<std::string, std::string>& containers) {
  std::vector<BoltEntry> entries;
  for (const auto& [id, json] : containers)
    entries.push_back(bolt_bucket(id, {{"config", json}, {"state", "{}"}}));
  return bolt_file({bolt_leaf({bolt_bucket("ctr", entries)}, 2)});
}

// containerd's metadata with one container.
inline std::string containerd_bolt(const std::string& space, const std::string& id,
                                   const std::string& image,
                                   const std::map<std::string, std::string>& labels) {
  std::vector<BoltEntry> entries;
  for (const auto& [key, value] : labels) entries.push_back({key, value});
  const BoltEntry container =
      bolt_bucket(id, {{"image", image}, bolt_bucket("labels", entries)});
  return bolt_file({bolt_leaf(
      {bolt_bucket("v1", {bolt_bucket(space, {bolt_bucket("containers", {container})})})}, 2)});
}

// Podman 5's database, with other SQL after its table.
inline std::string podman_sqlite(const std::map<std::string, std::string>& containers,
                                 const std::string& more = "") {
  const FakeTree place;
  sqlite3* opened = nullptr;
  REQUIRE(sqlite3_open((place.root() + "/db.sql").c_str(), &opened) == SQLITE_OK);
  std::string sql =
      "CREATE TABLE ContainerConfig(ID TEXT PRIMARY KEY NOT NULL, Name TEXT UNIQUE NOT NULL, "
      "PodID TEXT, JSON TEXT NOT NULL);";
  for (const auto& [id, json] : containers)
    sql += "INSERT INTO ContainerConfig VALUES('" + id + "','" + id + "',NULL,'" + json + "');";
  CHECK(sqlite3_exec(opened, (sql + more).c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(opened);
  return place.read("/db.sql");
}

}  // namespace cgphase
