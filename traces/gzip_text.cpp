#include "traces/gzip_text.h"

#include <zlib.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace cgphase {
namespace {

constexpr int kGzip = 16 + MAX_WBITS;
constexpr std::size_t kPieceBytes = 1U << 20;  // the most that one deflate() call gets

}  // namespace

void GzipText::Close::operator()(z_stream_s* stream) const {
  ::deflateEnd(stream);
  delete stream;
}

GzipText::GzipText() : stream_(new z_stream_s{}) {
  CHECK_INVARIANT(::deflateInit2(stream_.get(), Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8,
                                 Z_DEFAULT_STRATEGY) == Z_OK);
}
GzipText::GzipText(GzipText&&) noexcept = default;
GzipText& GzipText::operator=(GzipText&&) noexcept = default;
GzipText::~GzipText() = default;

void GzipText::run(std::string_view text, bool last, std::string& out) {
  std::array<Bytef, 16 * 1024> buffer;
  // zlib only reads from next_in; its type is not const.
  stream_->next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
  stream_->avail_in = static_cast<uInt>(text.size());
  do {
    stream_->next_out = buffer.data();
    stream_->avail_out = static_cast<uInt>(buffer.size());
    CHECK_INVARIANT(::deflate(stream_.get(), last ? Z_FINISH : Z_NO_FLUSH) != Z_STREAM_ERROR);
    out.append(reinterpret_cast<const char*>(buffer.data()), buffer.size() - stream_->avail_out);
  } while (stream_->avail_out == 0);
}

void GzipText::add(std::string_view text, std::string& out) {
  for (; !text.empty(); text.remove_prefix(std::min(text.size(), kPieceBytes)))
    run(text.substr(0, kPieceBytes), false, out);
}

void GzipText::finish(std::string& out) { run({}, true, out); }

}  // namespace cgphase
