// Compresses text with gzip, piece by piece.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct z_stream_s;

namespace cgphase {

// The same text gives the same bytes, because no time and no file name is stored. Owned and used by
// one thread.
class GzipText {
 public:
  GzipText();
  GzipText(GzipText&&) noexcept;
  GzipText& operator=(GzipText&&) noexcept;
  ~GzipText();

  // Append the compressed bytes that are ready to `out`. Call finish() once, after all text.
  void add(std::string_view text, std::string& out);
  void finish(std::string& out);

 private:
  void run(std::string_view text, bool last, std::string& out);

  struct Close {
    void operator()(z_stream_s* stream) const;
  };
  std::unique_ptr<z_stream_s, Close> stream_;
};

}  // namespace cgphase
