#include "tests/simulator/disk.h"

#include <sqlite3.h>

#include <new>

#include "base/check.h"

namespace cgphase::simulator {
namespace {

sqlite3_vfs* below = nullptr;  // SQLite's own
sqlite3_vfs layer;

// SQLite allocates layer.szOsFile bytes: this struct, followed by the file of the VFS below.
struct LayeredFile {
  sqlite3_file base;
  sqlite3_file* file() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

sqlite3_file* below_of(sqlite3_file* file) { return reinterpret_cast<LayeredFile*>(file)->file(); }

int close_file(sqlite3_file* file) { return below_of(file)->pMethods->xClose(below_of(file)); }

int read_from(sqlite3_file* file, void* bytes, int count, sqlite3_int64 offset) {
  return below_of(file)->pMethods->xRead(below_of(file), bytes, count, offset);
}

int write_to(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 offset) {
  if (const int failed = Disk::of_process().changes(SQLITE_IOERR_WRITE)) return failed;
  return below_of(file)->pMethods->xWrite(below_of(file), bytes, count, offset);
}

int truncate_file(sqlite3_file* file, sqlite3_int64 size) {
  if (const int failed = Disk::of_process().changes(SQLITE_IOERR_TRUNCATE)) return failed;
  return below_of(file)->pMethods->xTruncate(below_of(file), size);
}

int sync_file(sqlite3_file* file, int flags) {
  if (const int failed = Disk::of_process().changes(SQLITE_IOERR_FSYNC)) return failed;
  return below_of(file)->pMethods->xSync(below_of(file), flags);
}

int size_of_file(sqlite3_file* file, sqlite3_int64* size) {
  return below_of(file)->pMethods->xFileSize(below_of(file), size);
}

int lock_file(sqlite3_file* file, int level) {
  return below_of(file)->pMethods->xLock(below_of(file), level);
}

int unlock_file(sqlite3_file* file, int level) {
  return below_of(file)->pMethods->xUnlock(below_of(file), level);
}

int is_locked(sqlite3_file* file, int* locked) {
  return below_of(file)->pMethods->xCheckReservedLock(below_of(file), locked);
}

int control_file(sqlite3_file* file, int operation, void* argument) {
  return below_of(file)->pMethods->xFileControl(below_of(file), operation, argument);
}

int sector_size(sqlite3_file* file) {
  return below_of(file)->pMethods->xSectorSize(below_of(file));
}

int characteristics(sqlite3_file* file) {
  return below_of(file)->pMethods->xDeviceCharacteristics(below_of(file));
}

// Version 1: no shared memory and no mapping. An EXCLUSIVE database needs neither.
sqlite3_io_methods methods() {
  sqlite3_io_methods all{};
  all.iVersion = 1;
  all.xClose = close_file;
  all.xRead = read_from;
  all.xWrite = write_to;
  all.xTruncate = truncate_file;
  all.xSync = sync_file;
  all.xFileSize = size_of_file;
  all.xLock = lock_file;
  all.xUnlock = unlock_file;
  all.xCheckReservedLock = is_locked;
  all.xFileControl = control_file;
  all.xSectorSize = sector_size;
  all.xDeviceCharacteristics = characteristics;
  return all;
}

int open_file(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* given) {
  static const sqlite3_io_methods kMethods = methods();
  auto* const layered = new (file) LayeredFile{};
  const int code = below->xOpen(below, name, layered->file(), flags, given);
  // SQLite does not close a file without methods.
  if (code == SQLITE_OK) layered->base.pMethods = &kMethods;
  return code;
}

}  // namespace

Disk::Disk() {
  below = sqlite3_vfs_find(nullptr);
  CHECK_INVARIANT(below != nullptr);
  layer = *below;
  layer.pNext = nullptr;
  layer.zName = "simulated-disk";
  layer.szOsFile = static_cast<int>(sizeof(LayeredFile)) + below->szOsFile;
  layer.xOpen = open_file;
  CHECK_INVARIANT(sqlite3_vfs_register(&layer, 1) == SQLITE_OK);
}

Disk& Disk::of_process() {
  static Disk disk;
  return disk;
}

int Disk::changes(int broken) {
  const State state = state_.load();
  if (state == State::works) return SQLITE_OK;
  ++failures_;
  return state == State::full ? SQLITE_FULL : broken;
}

}  // namespace cgphase::simulator
