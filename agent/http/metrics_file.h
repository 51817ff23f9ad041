// Metrics as a file, for node_exporter's textfile collector. A thread of its own writes it, and
// removes it in the end: a disk that never answers holds nobody up.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace cgphase {

class MetricsFile {
 public:
  explicit MetricsFile(std::string path);
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  // Removes the file: what it tells holds no longer. A disk that does not answer soon is left to
  // the thread.
  ~MetricsFile();

  // To be written soon; one that still waits is dropped for it. Never blocks.
  void put(std::string text);
  // Why the newest is not in the file; empty when it is, or when none was put yet.
  std::string failure() const;

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable wake;
    std::optional<std::string> text;
    bool stopping = false, removed = false;
    std::string failure;
  };
  static void run(Shared& shared, const std::string& path);

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::thread thread_;
};

}  // namespace cgphase
