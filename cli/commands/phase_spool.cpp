#include "cli/commands/phase_spool.h"

#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/temporary_file.h"

namespace cgphase {
namespace {

static_assert(std::is_trivially_copyable_v<PhaseSpool::Row>);

template <class Value>
void append(std::vector<char>& out, std::span<const Value> values) {
  const char* const bytes = reinterpret_cast<const char*>(values.data());
  out.insert(out.end(), bytes, bytes + values.size_bytes());
}

Error named(const Error& error) {
  return {error.kind, temporary_folder() + ": phases cannot be kept in a temporary file: " +
                          error.text};
}

template <class Value>
Status read_at(int fd, std::int64_t at, std::span<Value> values) {
  char* to = reinterpret_cast<char*>(values.data());
  for (std::size_t left = values.size_bytes(); left > 0;) {
    const ssize_t count = ::pread(fd, to, left, at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      return std::unexpected(named(errno_failure("pread", count < 0 ? errno : EIO).error()));
    to += count, at += count, left -= static_cast<std::size_t>(count);
  }
  return {};
}

}  // namespace

Status PhaseSpool::add(std::size_t execution, const Row& row) {
  if (chains_.size() <= execution) chains_.resize(execution + 1);
  if (chains_[execution].waiting.empty()) with_waiting_.push_back(execution);
  chains_[execution].waiting.push_back(row);
  return ++waiting_ < kRowsInMemory ? Status() : write_waiting();
}

// Appends the waiting rows to `out` as a run. `out` will be written at the end of the file.
Status PhaseSpool::append_run(Chain& chain, std::vector<char>& out) {
  const std::int64_t at = file_bytes_ + static_cast<std::int64_t>(out.size());
  if (chain.first < 0) {
    chain.first = at;
  } else if (::pwrite(file_.get(), &at, sizeof at, chain.last) != sizeof at) {
    return std::unexpected(named(errno_failure("pwrite", errno).error()));
  }
  chain.last = at;
  const Run run{.next = -1, .rows = chain.waiting.size()};
  append(out, std::span(&run, 1));
  append(out, std::span<const Row>(chain.waiting));
  chain.waiting = std::vector<Row>();  // frees the memory, which {} would not
  return {};
}

Status PhaseSpool::write_waiting() {
  if (!file_.valid()) {
    Result<Fd> file = unlinked_file();
    if (!file) return std::unexpected(named(file.error()));
    file_ = *std::move(file);
  }
  std::vector<char> out;
  out.reserve(waiting_ * sizeof(Row) + with_waiting_.size() * sizeof(Run));
  for (const std::size_t execution : with_waiting_)
    if (Status status = append_run(chains_[execution], out); !status) return status;
  if (Status written = write_all(file_.get(), {out.data(), out.size()}); !written)
    return std::unexpected(named(written.error()));
  file_bytes_ += static_cast<std::int64_t>(out.size());
  with_waiting_.clear();
  waiting_ = 0;
  return {};
}

Status PhaseSpool::read(std::size_t execution,
                        const std::function<Status(std::span<const Row>)>& take) const {
  if (execution >= chains_.size()) return {};
  const Chain& chain = chains_[execution];
  std::vector<Row> rows;
  for (std::int64_t at = chain.first; at >= 0;) {
    Run run;
    if (Status status = read_at(file_.get(), at, std::span(&run, 1)); !status) return status;
    rows.resize(run.rows);
    const std::int64_t behind = at + static_cast<std::int64_t>(sizeof run);
    if (Status status = read_at(file_.get(), behind, std::span(rows)); !status) return status;
    if (Status status = take(rows); !status) return status;
    at = run.next;
  }
  return chain.waiting.empty() ? Status() : take(chain.waiting);
}

}  // namespace cgphase
