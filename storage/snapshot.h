// A database of plain tables that any SQL client reads: what `cgphase export` writes
// (docs/internals/storage.md, "Export").
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/table_page.h"

namespace cgphase {

// Owned and used by one thread. Its file is whole after finish() and worthless before: whoever
// makes one gives it its name afterwards.
class Snapshot {
 public:
  // In a new file. Errors: denied, io.
  static Result<Snapshot> create(const std::string& path);
  Snapshot(Snapshot&&) noexcept;
  Snapshot& operator=(Snapshot&&) noexcept;
  ~Snapshot();

  // Makes a table; the first column of one with `numbered` is the number of its rows. Errors:
  // invalid (a name that is no plain word, a type that SQLite's are not, too many columns), io.
  Status add_table(const std::string& name, std::span<const TableColumn> columns, bool numbered);
  // Appends to a table that was made; a row of too many or too few values is invalid.
  Status add_row(const std::string& table, std::span<const SqlValue> values);
  // Before finish(): makes finding by these columns quick.
  Status add_index(const std::string& table, const std::string& columns);
  // Everything is in the file, which is closed. Nothing may be added any more.
  Status finish();

 private:
  class Impl;
  explicit Snapshot(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
