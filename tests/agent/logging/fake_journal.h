// Stands where systemd's journal would: a datagram socket, and a file that JOURNAL_STREAM names.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <string>

#include "agent/logging/systemd_journal.h"
#include "base/fd.h"
#include "tests/agent/temporary_directory.h"

namespace cgphase::test {

class FakeJournal {
 public:
  FakeJournal()
      : stream_(::open((directory_ / "stderr").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)),
        socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    struct stat status{};
    REQUIRE(::fstat(stream_.get(), &status) == 0);
    stream_name_ = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path().data(), path().size());
    REQUIRE(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }

  std::string path() const { return directory_ / "socket"; }
  int stream() const { return stream_.get(); }
  const std::string& stream_name() const { return stream_name_; }
  std::optional<SystemdJournal> open() const {
    return SystemdJournal::behind(stream(), stream_name_.c_str(), path());
  }

  // The next entry, as it came; "(nothing)" where there is none.
  std::string received() const {
    char buffer[64 * 1024];
    const ssize_t got = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    return got < 0 ? "(nothing)" : std::string(buffer, static_cast<std::size_t>(got));
  }
  // Nobody reads any more.
  void close() {
    socket_.reset();
    ::unlink(path().c_str());
  }

 private:
  TemporaryDirectory directory_;
  Fd stream_;
  Fd socket_;
  std::string stream_name_;
};

}  // namespace cgphase::test
