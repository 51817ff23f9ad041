#include "tests/workloads/far_end.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <thread>
#include <utility>

#include "base/parse.h"
#include "tests/workloads/pace.h"
#include "tests/workloads/packing.h"
#include "tests/workloads/random.h"

namespace cgphase::workloads {

namespace {

constexpr std::size_t kMaxQuestionBytes = 128;
constexpr std::uint32_t kMaxPartBytes = 1U << 20;
constexpr int kWaiting = 16;

Result<sockaddr_in> far_end_address(const std::string& text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kFarEndPort);
  if (inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1)
    return failure(ErrorKind::invalid, text + ": not an IPv4 address");
  return address;
}

const sockaddr* plain_address(const sockaddr_in& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

void send_parts(int socket, std::uint64_t seed, std::uint64_t parts, Milliseconds length) {
  Random random(seed);
  std::string text, sent;
  Spread spread(length, parts, Pace::Late::catch_up);
  for (std::uint64_t part = 0, end = 0; spread.next(part, end);)
    for (; part < end; ++part) {
      make_lines(random, text);
      const auto bytes = static_cast<std::uint32_t>(text.size());
      sent.assign(reinterpret_cast<const char*>(&bytes), sizeof bytes);
      sent += text;
      if (!write_all(socket, sent)) return;
    }
}

void drain(int socket) {
  std::array<char, 65536> part;
  while (read(socket, part.data(), part.size()) > 0) continue;
}

// The answers are read in another thread; else both ends would wait for the other to read.
void send_requests(int socket, std::uint64_t seed, Milliseconds length) {
  const double seconds = std::chrono::duration<double>(length).count();
  const auto begin = std::chrono::steady_clock::now();
  std::thread answers(drain, socket);
  const std::string request(kRequestBytes, 'q');
  for (const Arrival& arrival : arrivals(seed, serve_plan(seed, seconds))) {
    std::this_thread::sleep_until(begin + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                              std::chrono::duration<double>(
                                                  arrival.offset_seconds)));
    if (!write_all(socket, request)) break;
  }
  answers.join();  // ends when the service has closed its end
}

void answer_question(Fd socket) {
  std::string question;
  for (char c = 0; question.size() < kMaxQuestionBytes && read(socket.get(), &c, 1) == 1;) {
    if (c == '\n') break;
    question += c;
  }
  std::string_view rest = question, what, word;
  next_word(rest, what);
  std::array<std::uint64_t, 3> numbers{};
  for (std::uint64_t& number : numbers)
    if (next_word(rest, word)) number = parse_u64(word).value_or(0);
  const auto [seed, count, length] = numbers;
  if (what == "images") send_images(socket.get(), seed, count, Milliseconds(length));
  if (what == "parts") send_parts(socket.get(), seed, count, Milliseconds(length));
  if (what == "requests") send_requests(socket.get(), seed, Milliseconds(length));
}

}  // namespace

void send_images(int socket, std::uint64_t seed, std::uint64_t images, Milliseconds length) {
  std::array<std::uint8_t, kImageBytes> image;
  std::string part;
  Spread spread(length, images, Pace::Late::catch_up);
  for (std::uint64_t next = 0, end = 0; spread.next(next, end);) {
    part.clear();
    for (; next < end; ++next) pack_image(image, make_image(seed, next, image), part);
    if (!write_all(socket, part)) return;  // the reader detects the early end
  }
}

void make_lines(Random& random, std::string& text) {
  text.clear();
  char line[64];
  for (std::size_t i = 0; i < kLinesPerPart; ++i) {
    char* at = std::to_chars(line, line + 24, random.next()).ptr;
    *at++ = ' ';
    at = std::to_chars(at, line + sizeof line - 1, random.below(1'000'000)).ptr;
    *at++ = '\n';
    text.append(line, at);
  }
}

std::string ask_images(std::uint64_t seed, std::uint64_t images, Milliseconds length) {
  return fmt::format("images {} {} {}\n", seed, images, length.count());
}

std::string ask_parts(std::uint64_t seed, std::uint64_t parts, Milliseconds length) {
  return fmt::format("parts {} {} {}\n", seed, parts, length.count());
}

std::string ask_requests(std::uint64_t seed, double seconds) {
  return fmt::format("requests {} 0 {:.0f}\n", seed, seconds * 1000);
}

Result<Fd> ask_far_end(const std::string& address, std::string_view what) {
  const auto to = far_end_address(address);
  if (!to) return std::unexpected(to.error());
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid() || connect(socket.get(), plain_address(*to), sizeof *to) != 0)
    return errno_failure("connect to the far end at " + address, errno);
  if (auto status = write_all(socket.get(), what); !status) return std::unexpected(status.error());
  return socket;
}

Status read_exactly(int socket, std::span<char> into) {
  while (!into.empty()) {
    const ssize_t got = read(socket, into.data(), into.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_failure("read from the far end", errno);
    if (got == 0) return failure(ErrorKind::io, "the far end ended early");
    into = into.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Status read_part(int socket, std::string& text) {
  std::array<char, sizeof(std::uint32_t)> head;
  if (auto status = read_exactly(socket, head); !status) return status;
  const auto bytes = std::bit_cast<std::uint32_t>(head);
  if (bytes > kMaxPartBytes) return failure(ErrorKind::invalid, "a part is too long");
  text.resize(bytes);
  return read_exactly(socket, text);
}

Status run_far_end(const std::string& address) {
  const auto own = far_end_address(address);
  if (!own) return std::unexpected(own.error());
  std::signal(SIGPIPE, SIG_IGN);  // the client may be gone
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int again = 1;  // the address can be reused right after another process ended
  if (!listener.valid() ||
      setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &again, sizeof again) != 0 ||
      bind(listener.get(), plain_address(*own), sizeof *own) != 0 ||
      listen(listener.get(), kWaiting) != 0)
    return errno_failure("listen at " + address, errno);
  while (true) {
    Fd socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket.valid()) return errno_failure("accept at " + address, errno);
    std::thread(answer_question, std::move(socket)).detach();
  }
}

}  // namespace cgphase::workloads
