#include "tests/serving/replay.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <utility>

namespace gauntlet::tests {
namespace {

constexpr auto kTogether = std::chrono::microseconds(200);

/// A request without pipelining, whole or until its end; its body is small.
std::string read_request(int socket) {
  std::string text;
  char bytes[4096];
  while (true) {
    const std::size_t head = text.find("\r\n\r\n");
    const std::size_t length = text.find("Content-Length: ");
    if (head != std::string::npos && length < head) {
      const auto body = std::strtoul(text.c_str() + length + 16, nullptr, 10);
      if (text.size() >= head + 4 + body) return text;
    }
    const ssize_t got = read(socket, bytes, sizeof(bytes));
    if (got <= 0) return text;
    text.append(bytes, static_cast<std::size_t>(got));
  }
}

bool send_all(int socket, const std::string& bytes) {
  return send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) == std::ssize(bytes);
}

bool serve(int listener, const std::vector<Piece>& pieces, std::size_t num_streams) {
  std::vector<int> sockets(num_streams, -1);
  for (std::size_t i = 0; i < num_streams; ++i) {
    const int socket = accept(listener, nullptr, nullptr);
    if (socket < 0) return false;
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    const std::string request = read_request(socket);
    const std::size_t seed = request.find("\"seed\":");
    if (seed == std::string::npos) return false;
    const auto stream = std::strtoul(request.c_str() + seed + 7, nullptr, 10);
    if (stream >= num_streams || sockets[stream] >= 0) return false;
    sockets[stream] = socket;
  }
  const auto begin = std::chrono::steady_clock::now();
  for (const Piece& piece : pieces) {
    // Pieces that came together go together: a server at its cheapest wakes up once for them.
    const auto due = begin + std::chrono::nanoseconds(static_cast<std::int64_t>(piece.at_s * 1e9));
    if (due - std::chrono::steady_clock::now() > kTogether) std::this_thread::sleep_until(due);
    if (!send_all(sockets[piece.stream], piece.bytes)) return false;
  }
  return true;
}

}  // namespace

Replay::Replay(const std::vector<Piece>& pieces, std::size_t num_streams) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener, 128) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("no port to say it again");
  }
  port_ = ntohs(address.sin_port);
  pid_ = fork();
  if (pid_ == 0) _exit(serve(listener, pieces, num_streams) ? 0 : 1);
  close(listener);
  if (pid_ < 0) throw std::runtime_error("no process to say it again");
}

Replay::~Replay() {
  if (pid_ > 0) cpu_s();
}

double Replay::cpu_s() {
  int status = 0;
  rusage usage{};
  if (wait4(std::exchange(pid_, -1), &status, 0, &usage) < 0) return -1;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return -1;
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace gauntlet::tests
