// The other end of a workload's network: the server of a data set, the system that exports records,
// the clients of a service. It runs in the workload's process, or over TCP in another one. That may
// be in its own network namespace, so that the workload's traffic is real.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"
#include "tests/workloads/plan.h"

namespace cgphase::workloads {

class Random;

inline constexpr std::uint16_t kFarEndPort = 7070;
inline constexpr std::size_t kRequestBytes = 4096;
inline constexpr std::size_t kLinesPerPart = 2048;

// Makes images, packs them and sends them at an even rate, until the reader is gone.
void send_images(int socket, std::uint64_t seed, std::uint64_t images, Milliseconds length);
// A part of an export: "KEY VALUE\n" lines, as another system would send them.
void make_lines(Random& random, std::string& text);

// A workload's requests to the far end, one line each. This one asks for the images of
// send_images() and then the end.
std::string ask_images(std::uint64_t seed, std::uint64_t images, Milliseconds length);
// Asks for `parts` parts of make_lines(), at an even rate, each after its length (4 bytes, in host
// byte order).
std::string ask_parts(std::uint64_t seed, std::uint64_t parts, Milliseconds length);
// Asks for kRequestBytes for each arrival of this plan, at its time. The answers are read.
std::string ask_requests(std::uint64_t seed, double seconds);

// Connects to the far end at `address` (IPv4) and sends the request. The answer is read from the
// socket.
Result<Fd> ask_far_end(const std::string& address, std::string_view what);
// Fills `into` from a socket. An early end is io.
Status read_exactly(int socket, std::span<char> into);
// Replaces `text` by the next part.
Status read_part(int socket, std::string& text);

// Serves clients at `address` until the process is killed. Errors: io.
Status run_far_end(const std::string& address);

}  // namespace cgphase::workloads
