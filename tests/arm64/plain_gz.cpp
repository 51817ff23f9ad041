// The part of zlib that the trace reader calls, for files that are not compressed. There is no zlib
// for the processor of the twin.
#include <zlib.h>

#include <cstdio>

namespace {

struct PlainFile : gzFile_s {
  std::FILE* file;
};

PlainFile* plain(gzFile file) { return static_cast<PlainFile*>(file); }

}  // namespace

gzFile gzdopen(int file, const char*) {
  std::FILE* opened = fdopen(file, "rb");
  return opened == nullptr ? nullptr : new PlainFile{{}, opened};
}

int gzread(gzFile file, voidp buffer, unsigned length) {
  std::FILE* opened = plain(file)->file;
  const std::size_t count = std::fread(buffer, 1, length, opened);
  return std::ferror(opened) != 0 ? -1 : static_cast<int>(count);
}

const char* gzerror(gzFile file, int* code) {
  *code = std::ferror(plain(file)->file) != 0 ? Z_ERRNO : Z_OK;
  return "";
}

int gzclose(gzFile file) {
  const int result = std::fclose(plain(file)->file);
  delete plain(file);
  return result;
}

// Nothing is compressed here; the writer of compressed traces is only linked.
int deflateInit2_(z_streamp, int, int, int, int, int, const char*, int) { return Z_VERSION_ERROR; }
int deflate(z_streamp, int) { return Z_STREAM_ERROR; }
int deflateEnd(z_streamp) { return Z_STREAM_ERROR; }
