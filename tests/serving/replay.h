// A server that computes nothing: it says again what another one said, piece by piece, when that one said it.
#pragma once
#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace gauntlet::tests {

struct Piece {
  double at_s = 0;  // after all requests had come
  std::size_t stream = 0;
  std::string bytes;
};

/// A process of its own with one thread, which writes each piece by one call.
class Replay {
 public:
  /// Pieces in the order of their time. Listens when this returns; a request says which stream it wants by its
  /// seed.
  Replay(const std::vector<Piece>& pieces, std::size_t num_streams);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  std::uint16_t port() const { return port_; }
  /// Waits for its end: the CPU time of it, or below 0 where it failed.
  double cpu_s();

 private:
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace gauntlet::tests
