// The database that `cgphase export` writes: plain tables for any SQL client
// (docs/internals/storage.md, "Export").
#pragma once

#include <map>
#include <span>
#include <string>

#include "base/result.h"
#include "storage/sqlite.h"

namespace cgphase {

// Owned and used by one thread. Its file is complete after finish() only, so the caller renames it
// into place afterwards.
class Snapshot {
 public:
  // Creates a new file. Errors: denied, io.
  static Result<Snapshot> create(const std::string& path);

  // Creates a table. With `numbered`, the first column is the row number. Errors: invalid (a name
  // that is not a plain word, a type that SQLite does not have, too many columns), io.
  Status add_table(const std::string& name, std::span<const TableColumn> columns, bool numbered);
  // Appends a row. Error: invalid (unknown table, wrong number of values), io.
  Status add_row(const std::string& table, std::span<const SqlValue> values);
  // Precondition: before finish().
  Status add_index(const std::string& table, const std::string& columns);
  // Writes and closes the file. Nothing may be added afterwards.
  Status finish();

 private:
  struct Table {
    Statement add;
    std::size_t columns = 0;
  };
  Connection connection_;
  std::map<std::string, Table> tables_;
};

}  // namespace cgphase
