#include "collectors/memory_lines.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <string>
#include <vector>

using namespace cgphase;

namespace {

// A kernel that prints line i of memory.stat from place `at[i]` of its raw numbers.
struct Kernel {
  std::vector<std::uint32_t> at;
  std::vector<std::uint64_t> raw = std::vector<std::uint64_t>(PULL_RAW);

  Kernel() {
    for (std::uint32_t i = 0; i < kMemoryLineCount; ++i) at.push_back((i * 37 + 5) % PULL_RAW);
    raw[0] = 77;  // of no line that is asked for
  }
  static std::uint64_t unit(std::size_t line) {
    const std::string_view name = memory_line_name(line);
    const bool bytes = name.starts_with("slab") || name.starts_with("pg") ||
                       name.starts_with("workingset");
    return bytes ? 1 : static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }
  void set(std::string_view name, std::uint64_t value) {
    for (std::size_t line = 0; line < kMemoryLineCount; ++line)
      if (name == memory_line_name(line)) raw[at[line]] = value;
  }
  MemoryLineValues file() const {
    std::string text;
    for (std::size_t line = 0; line < kMemoryLineCount; ++line)
      text += std::string(memory_line_name(line)) + " " +
              std::to_string(raw[at[line]] * unit(line)) + "\n";
    return scan_memory_lines(text);
  }
  pull_record walk(const MemoryLines& lines) const {
    pull_record record{};
    record.parts = PULL_MEMORY;
    const MemoryChoice choice = lines.choice();
    for (std::size_t i = 0; i < choice.lines.size(); ++i)
      record.memory[i] = raw[choice.lines[i]];
    for (std::size_t i = 0; i < choice.same.size(); ++i)
      if (raw[i] != raw[choice.same[i]]) record.parts |= PULL_MISMATCH;
    return record;
  }
};

struct Learned : Kernel {
  MemoryLines lines;

  Learned() {
    set("anon", 1000);
    set("file", 500);
    set("kernel", 40);
    set("pgfault", 12345);
    for (int i = 0; i < MemoryLines::kNeededComparisons; ++i) compare();
  }
  void compare() { lines.record(file(), file(), raw); }
};

}  // namespace

TEST_CASE("lines are used after the first comparisons, at any position") {
  Kernel kernel;
  kernel.set("anon", 3);
  kernel.set("kernel", 2);
  kernel.set("sock", 1);
  kernel.set("pgfault", 99);
  MemoryLines lines;
  for (int i = 0; i < MemoryLines::kNeededComparisons; ++i) {
    CHECK_FALSE(lines.decode(kernel.walk(lines)).has_value());
    lines.record(kernel.file(), kernel.file(), kernel.raw);
  }
  const auto decoded = lines.decode(kernel.walk(lines));
  REQUIRE(decoded.has_value());
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  CHECK(decoded->anon_bytes == 3 * page);
  CHECK(decoded->kernel_bytes == 3 * page);  // with sockets, as from the file
  CHECK(decoded->pgfault == 99);
  CHECK(decoded->pgscan == 0);
}

TEST_CASE("a line that changed during a walk changes no calibration") {
  Learned learned;
  const MemoryLineValues before = learned.file();
  learned.set("anon", 2000);
  const std::vector<std::uint64_t> raw = learned.raw;
  learned.set("anon", 3000);
  learned.lines.record(before, learned.file(), raw);
  CHECK(learned.lines.usable());
  const auto decoded = learned.lines.decode(learned.walk(learned.lines));
  REQUIRE(decoded.has_value());
  CHECK(decoded->anon_bytes == *learned.file()[0]);
}

TEST_CASE("a line that was always zero causes a mismatch when it changes, and is then known") {
  Learned learned;
  learned.set("pgmajfault", 7);
  CHECK_FALSE(learned.lines.decode(learned.walk(learned.lines)).has_value());
  learned.compare();
  const auto decoded = learned.lines.decode(learned.walk(learned.lines));
  REQUIRE(decoded.has_value());
  CHECK(decoded->pgmajfault == 7);
}

TEST_CASE("two lines that were always equal may be exchanged") {
  Learned learned;
  learned.set("pgsteal_direct", 60);
  learned.set("pgscan_direct", 60);
  learned.compare();
  const auto alike = learned.lines.decode(learned.walk(learned.lines));
  REQUIRE(alike.has_value());
  CHECK(alike->pgscan == 60);
  CHECK(alike->pgsteal == 60);
  learned.set("pgscan_direct", 90);
  CHECK_FALSE(learned.lines.decode(learned.walk(learned.lines)).has_value());
  learned.compare();
  const auto decoded = learned.lines.decode(learned.walk(learned.lines));
  REQUIRE(decoded.has_value());
  CHECK(decoded->pgscan == 90);
  CHECK(decoded->pgscan_direct == 90);
  CHECK(decoded->pgsteal == 60);
}

TEST_CASE("a gauge below zero is zero, as in the file") {
  Learned learned;
  learned.raw[learned.at[5]] = ~std::uint64_t{0};  // sock
  MemoryLineValues file = learned.file();
  file[5] = 0;
  learned.lines.record(file, file, learned.raw);
  CHECK(learned.lines.usable());
}

TEST_CASE("a mismatch restarts the calibration, and too many end it for good") {
  Learned learned;
  for (int i = 0; i < MemoryLines::kMostMismatches; ++i) {
    CHECK_FALSE(learned.lines.unsupported());
    for (int i = 0; i < MemoryLines::kNeededComparisons; ++i) learned.compare();
    CHECK(learned.lines.usable());
    MemoryLineValues wrong = learned.file();
    wrong[0] = *wrong[0] + 4096 * 1000;
    learned.lines.record(wrong, wrong, learned.raw);
    CHECK_FALSE(learned.lines.usable());
  }
  CHECK(learned.lines.unsupported());
  learned.compare();
  CHECK_FALSE(learned.lines.decode(learned.walk(learned.lines)).has_value());
}

TEST_CASE("without the kernel line need is unknown, so nothing is decoded") {
  Learned learned;
  MemoryLines lines;
  MemoryLineValues file = learned.file();
  file[4].reset();
  for (int i = 0; i < MemoryLines::kNeededComparisons; ++i) lines.record(file, file, learned.raw);
  CHECK(lines.usable());
  CHECK_FALSE(lines.decode(learned.walk(lines)).has_value());
}
