#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "base/crc32.h"
#include "base/fd.h"
#include "tests/workloads/far_end.h"
#include "tests/workloads/pace.h"
#include "tests/workloads/plan.h"
#include "tests/workloads/random.h"
#include "tests/workloads/run.h"

namespace cgphase::workloads {

namespace {

struct Record {
  std::uint64_t key = 0;
  double value = 0;
};

constexpr std::size_t kChunkRecords = 65'536;  // 1 MiB
constexpr double kChunksAtSizeOne = 28;
constexpr std::size_t kPartsPerChunk = kChunkRecords / kLinesPerPart;
constexpr std::uint64_t kOrders = 4;  // group-by queries over each round's records
constexpr std::uint64_t kGroups = 512;
constexpr double kResultMiBAtSizeOne = 6;
constexpr std::uint64_t kSlotsPerSync = 4;

using Chunk = std::vector<Record>;

struct Group {
  double sum = 0, median_sum = 0;
  std::uint64_t count = 0;
};

class BatchJob {
 public:
  BatchJob(const RunOptions& options, LabelFile& labels) : options_(options), labels_(labels) {}

  Status run();
  std::uint64_t records() const { return records_; }
  std::uint32_t checksum() const { return checksum_; }

 private:
  Status stage(const Stage& stage);
  Status ingest(Milliseconds length);
  void sort(Milliseconds length);
  Status write(Milliseconds length);
  std::size_t chunk_count() const {
    return static_cast<std::size_t>(std::max(1.0, kChunksAtSizeOne * options_.size));
  }

  const RunOptions& options_;
  LabelFile& labels_;
  std::vector<Chunk> chunks_;
  std::vector<Group> groups_;
  std::uint64_t records_ = 0, round_ = 0;
  std::uint32_t checksum_ = 0;
};

Status parse_lines(std::string_view text, Chunk& chunk) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    Record record;
    std::uint64_t value = 0;
    const auto key = std::from_chars(at, end, record.key);
    if (key.ec != std::errc{} || key.ptr == end) return failure(ErrorKind::invalid, "no key");
    const auto rest = std::from_chars(key.ptr + 1, end, value);
    if (rest.ec != std::errc{}) return failure(ErrorKind::invalid, "no value");
    record.value = static_cast<double>(value);
    chunk.push_back(record);
    at = rest.ptr + 1;
  }
  return {};
}

Status BatchJob::ingest(Milliseconds length) {
  const std::uint64_t seed = derive_seed(options_.seed, 100 + round_);
  const std::uint64_t parts = chunk_count() * kPartsPerChunk;
  Fd exporter;
  if (!options_.far_end.empty()) {
    auto socket = ask_far_end(options_.far_end, ask_parts(seed, parts, length));
    if (!socket) return std::unexpected(socket.error());
    exporter = std::move(*socket);
  }
  Random random(seed);
  Spread spread(length, parts, Pace::Late::slip);
  std::string text;
  chunks_.reserve(chunk_count());
  for (std::uint64_t part = 0, end = 0; spread.next(part, end);)
    for (; part < end; ++part) {
      if (part % kPartsPerChunk == 0) chunks_.emplace_back().reserve(kChunkRecords);
      if (!exporter.valid())
        make_lines(random, text);
      else if (auto status = read_part(exporter.get(), text); !status)
        return status;
      if (auto status = parse_lines(text, chunks_.back()); !status) return status;
      records_ += kLinesPerPart;
    }
  return {};
}

// Another order of the keys for each query: a projection that mixes all bits.
std::uint64_t projected(std::uint64_t key, std::uint64_t order) {
  return (key ^ (order * 0xD6E8FEB86659FD93ULL)) * (2 * order + 0x9E3779B97F4A7C15ULL);
}

void aggregate(Chunk& chunk, std::uint64_t order, std::vector<Group>& groups) {
  std::sort(chunk.begin(), chunk.end(), [order](const Record& a, const Record& b) {
    return projected(a.key, order) < projected(b.key, order);
  });
  const auto group_of = [order](const Record& record) {
    return projected(record.key, order) / (~std::uint64_t{0} / kGroups + 1);
  };
  for (std::size_t begin = 0; begin < chunk.size();) {
    const std::uint64_t number = group_of(chunk[begin]);
    Group& group = groups[order * kGroups + number];
    std::size_t end = begin;
    for (; end < chunk.size() && group_of(chunk[end]) == number; ++end)
      group.sum += chunk[end].value;
    group.median_sum += chunk[begin + (end - begin) / 2].value;
    group.count += end - begin;
    begin = end;
  }
}

void BatchJob::sort(Milliseconds length) {
  groups_.assign(kOrders * kGroups, {});
  Spread spread(length, kOrders * chunks_.size(), Pace::Late::slip);
  for (std::uint64_t next = 0, end = 0; spread.next(next, end);)
    for (; next < end; ++next)
      aggregate(chunks_[next % chunks_.size()], next / chunks_.size(), groups_);
}

// Writes the groups and a sample of the sorted records to a file of fixed size.
Status BatchJob::write(Milliseconds length) {
  std::string result;
  for (const Group& group : groups_)
    fmt::format_to(std::back_inserter(result), "{} {} {}\n", group.count, group.sum,
                   group.median_sum);
  checksum_ = crc32c(result, checksum_);
  const std::string path = options_.work_dir + "/result";
  auto file = open_path(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (!file) return std::unexpected(file.error());
  if (auto status = write_all(file->get(), result); !status) return status;

  const auto bytes = static_cast<std::uint64_t>(kResultMiBAtSizeOne * options_.size * 1048576);
  Spread spread(length, bytes, Pace::Late::slip);
  for (std::uint64_t begin = 0, end = 0, turn = 0; spread.next(begin, end); ++turn) {
    const Chunk& chunk = chunks_[turn % chunks_.size()];
    const std::size_t part = std::min(end - begin, chunk.size() * sizeof(Record));
    const std::string_view view(reinterpret_cast<const char*>(chunk.data()), part);
    if (auto status = write_all(file->get(), view); !status) return status;
    if (turn % kSlotsPerSync == 0 && fsync(file->get()) != 0)
      return errno_failure("fsync " + path, errno);
  }
  if (fsync(file->get()) != 0) return errno_failure("fsync " + path, errno);
  return {};
}

Status BatchJob::stage(const Stage& stage) {
  labels_.enter(stage.phase, fmt::format("round {}", round_));
  if (stage.phase == "ingest") return ingest(stage.length);
  if (stage.phase == "write") return write(stage.length);
  if (stage.phase == "sort") sort(stage.length);
  if (stage.phase == "idle") {
    ++round_;
    chunks_ = {};
    std::this_thread::sleep_for(stage.length);
  }
  return {};
}

Status BatchJob::run() {
  for (const Stage& next : batch_plan(options_.seed, options_.seconds, options_.wait))
    if (auto status = stage(next); !status) return status;
  labels_.enter("end");
  return {};
}

}  // namespace

Result<RunReport> run_batch(const RunOptions& options, LabelFile& labels) {
  BatchJob job(options, labels);
  if (auto status = job.run(); !status) return std::unexpected(status.error());
  return RunReport{"records", job.records(), {{"checksum", job.checksum()}}};
}

}  // namespace cgphase::workloads
