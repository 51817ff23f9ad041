#include "storage/catalog.h"

#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/crc32.h"
#include "base/text.h"

namespace cgphase {
namespace {

constexpr std::array<std::pair<Engine, std::string_view>, 13> kEngines = {{
    {Engine::docker, "docker"},
    {Engine::podman, "podman"},
    {Engine::containerd, "containerd"},
    {Engine::crio, "crio"},
    {Engine::lxc, "lxc"},
    {Engine::incus, "incus"},
    {Engine::nspawn, "nspawn"},
    {Engine::slurm, "slurm"},
    {Engine::kubernetes, "kubernetes"},
    {Engine::service, "service"},
    {Engine::cgroup, "cgroup"},
    {Engine::qemu, "qemu"},
    {Engine::nomad, "nomad"},
}};

std::string_view engine_word(Engine engine) {
  for (const auto& [known, word] : kEngines)
    if (known == engine) return word;
  return "cgroup";
}

Engine engine_of(std::string_view word) {
  for (const auto& [engine, known] : kEngines)
    if (known == word) return engine;
  return Engine::cgroup;
}

std::string label_text(const std::map<std::string, std::string>& labels) {
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [key, value] : labels) object[escape_name(key)] = escape_name(value);
  return object.dump();
}

std::map<std::string, std::string> labels_in(std::string_view text) {
  std::map<std::string, std::string> labels;
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, false);
  if (!object.is_object()) return labels;
  for (const auto& [key, value] : object.items())
    if (value.is_string()) labels[unescape_name(key)] = unescape_name(value.get<std::string>());
  return labels;
}

constexpr const char* kColumns =
    "device,inode,path,engine,engine_id,name,image,labels,systemd_unit,hands_off,first_seen_ns,"
    "container";

StoredRecord record_in(const Statement& row) {
  StoredRecord record;
  record.record = row.integer(11);
  ContainerInfo& container = record.stored.container;
  container.id = {std::bit_cast<std::uint64_t>(row.integer(0)),
                  std::bit_cast<std::uint64_t>(row.integer(1))};
  container.path = unescape_name(row.text(2));
  container.engine = engine_of(row.text(3));
  container.engine_id = unescape_name(row.text(4));
  container.name = unescape_name(row.text(5));
  container.image = unescape_name(row.text(6));
  container.labels = labels_in(row.text(7));
  container.systemd_unit = row.integer(8) != 0;
  container.hands_off = unescape_name(row.text(9));
  record.stored.first_seen = WallTime(std::chrono::nanoseconds(row.integer(10)));
  return record;
}

}  // namespace

Result<Catalog> Catalog::prepare(Connection& connection, std::string boot_id) {
  Catalog catalog;
  catalog.boot_id_ = std::move(boot_id);
  const std::string columns = kColumns;
  std::string unused = "DELETE FROM container WHERE first_seen_ns < ?";
  for (const std::string table :
       {"block", "medium", "coarse", "decision", "refusal", "outcome"})
    unused += " AND NOT EXISTS (SELECT 1 FROM " + table + " WHERE " + table +
              ".container = container.container)";
  const Status prepared = connection.prepare_all(
      {{&catalog.add_,
        "INSERT INTO container (boot_id,device,inode,path,engine,engine_id,name,image,labels,"
        "systemd_unit,hands_off,first_seen_ns) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)"
        " ON CONFLICT (boot_id,device,inode) DO UPDATE SET path=excluded.path,"
        "engine=excluded.engine,engine_id=excluded.engine_id,name=excluded.name,"
        "image=excluded.image,labels=excluded.labels,systemd_unit=excluded.systemd_unit,"
        "hands_off=excluded.hands_off"},
       {&catalog.find_, "SELECT container FROM container WHERE boot_id=? AND device=? AND inode=?"},
       {&catalog.records_,
        "SELECT " + columns + " FROM container WHERE container > ? ORDER BY container LIMIT ?"},
       {&catalog.named_,
        "SELECT container FROM container WHERE name=?1 AND name<>'' AND engine=?2"
        " AND container<?3 ORDER BY container DESC LIMIT ?4"},
       {&catalog.last_,
        "SELECT " + columns + " FROM container WHERE ?1<>'' AND (name IN (?1,?2) OR path IN (?1,?2)"
        " OR engine_id IN (?1,?2) OR (length(?1)>=4 AND substr(engine_id,1,length(?1))=?1))"
        " ORDER BY name IN (?1,?2) DESC, path IN (?1,?2) DESC, engine_id IN (?1,?2) DESC,"
        " container DESC LIMIT 1"},
       {&catalog.drop_unused_, unused},
       {&catalog.load_, "SELECT crc32c,json FROM learned WHERE image=?"},
       {&catalog.save_, "INSERT OR REPLACE INTO learned (image,crc32c,json) VALUES (?,?,?)"},
       {&catalog.drop_learned_,
        "DELETE FROM learned WHERE saved IN (SELECT saved FROM learned WHERE image<>?"
        " ORDER BY saved DESC LIMIT -1 OFFSET ?)"}});
  if (!prepared) return std::unexpected(prepared.error());
  return catalog;
}

Status Catalog::add(const ContainerInfo& info, WallTime first_seen) {
  return add_.run(boot_id_, as_signed(info.id.device), as_signed(info.id.inode),
                  escape_name(info.path), engine_word(info.engine), escape_name(info.engine_id),
                  escape_name(info.name), escape_name(info.image), label_text(info.labels),
                  info.systemd_unit ? 1 : 0, escape_name(info.hands_off), ns_of(first_seen));
}

Result<std::optional<std::int64_t>> Catalog::find(CgroupId id) {
  return find_.first_integer(boot_id_, as_signed(id.device), as_signed(id.inode));
}

Result<std::int64_t> Catalog::find_or_add(CgroupId id, WallTime first_seen) {
  Result<std::optional<std::int64_t>> found = find(id);
  if (found && !*found) {
    ContainerInfo bare;
    bare.id = id;
    if (Status added = add(bare, first_seen); !added) return std::unexpected(added.error());
    found = find(id);
  }
  if (!found) return std::unexpected(found.error());
  if (!*found) return failure(ErrorKind::io, "history: a container just added is not there");
  return **found;
}

Result<std::vector<StoredRecord>> Catalog::records(std::int64_t after, int limit) {
  std::vector<StoredRecord> records;
  records_.begin(after, limit);
  const Status read = records_.each([&] { records.push_back(record_in(records_)); });
  if (!read) return std::unexpected(read.error());
  return records;
}

Result<std::vector<std::int64_t>> Catalog::named(const std::string& name, Engine engine,
                                                 std::int64_t before) {
  std::vector<std::int64_t> rows;
  named_.begin(escape_name(name), engine_word(engine), before, kMostNamed);
  const Status read = named_.each([&] { rows.push_back(named_.integer(0)); });
  if (!read) return std::unexpected(read.error());
  return rows;
}

Result<std::optional<StoredRecord>> Catalog::last(const std::string& text) {
  last_.begin(escape_name(text), escape_name(unescape_name(text)));
  const Result<bool> row = last_.next();
  if (!row) return std::unexpected(row.error());
  if (!*row) return std::nullopt;
  const StoredRecord found = record_in(last_);
  last_.stop();
  return found;
}

Result<std::vector<std::int64_t>> Catalog::rows_of(const Store::Subject& subject) {
  std::optional<std::int64_t> own = subject.record;
  if (!own) {
    const Result<std::optional<std::int64_t>> found = find(subject.id);
    if (!found) return std::unexpected(found.error());
    own = *found;
  }
  if (!own) return std::vector<std::int64_t>{};
  Result<std::vector<std::int64_t>> rows = named(subject.name, subject.engine, *own);
  if (!rows) return rows;
  for (const CgroupId& other : subject.others) {
    const Result<std::optional<std::int64_t>> row = find(other);
    if (!row) return std::unexpected(row.error());
    if (*row) std::erase(*rows, **row);
  }
  rows->insert(rows->begin(), *own);
  return rows;
}

Status Catalog::drop_unused(WallTime before) { return drop_unused_.run(ns_of(before)); }

Result<nlohmann::json> Catalog::load_learned(const std::string& image) {
  const std::string name = escape_name(image);
  load_.begin(name);
  const Result<bool> row = load_.next();
  if (!row) return std::unexpected(row.error());
  if (!*row) return failure(ErrorKind::not_found, "nothing learned of image " + name);
  const std::string text(load_.text(1));
  const std::int64_t expected = load_.integer(0);
  load_.stop();
  nlohmann::json learned = nlohmann::json::parse(text, nullptr, false);
  if (std::int64_t{crc32c(text)} != expected || learned.is_discarded())
    return failure(ErrorKind::invalid,
                   "the learned statistics of image " + name + " are damaged in the file");
  return learned;
}

Status Catalog::save_learned(const std::string& image, const nlohmann::json& learned) {
  // Invalid UTF-8 is replaced, because dump() would throw.
  const std::string text = learned.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::string name = escape_name(image);
  if (text.size() > kMaxLearnedBytes)
    return failure(ErrorKind::invalid, "learned statistics of image " + name + ": " +
                                           std::to_string(text.size()) + " bytes, more than " +
                                           std::to_string(kMaxLearnedBytes));
  if (Status saved = save_.run(name, std::int64_t{crc32c(text)}, text); !saved) return saved;
  return drop_learned_.run(std::string_view(kSafetyMemoryName), kMaxLearnedImages);
}

}  // namespace cgphase
