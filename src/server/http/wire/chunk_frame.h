// What is around a piece of a reply on the wire: nothing in HTTP/1.0, a chunk's size and end
// in 1.1.
#pragma once
#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>

#include "server/http/http.h"

namespace gauntlet::server::inline http {

class ChunkFrame {
 public:
  ChunkFrame(const Piece& piece, unsigned version) {
    if (version < 11) return;
    if (piece.body.empty()) {
      // A chunk of nothing ends the reply.
      after_ = piece.is_last ? "0\r\n\r\n" : "";
      return;
    }
    char* const end =
        std::to_chars(size_.data(), size_.data() + kMostDigits, piece.body.size(), 16).ptr;
    end[0] = '\r';
    end[1] = '\n';
    size_bytes_ = static_cast<std::size_t>(end + 2 - size_.data());
    after_ = piece.is_last ? "\r\n0\r\n\r\n" : "\r\n";
  }

  /// Within this object.
  std::string_view before() const { return {size_.data(), size_bytes_}; }
  std::string_view after() const { return after_; }

 private:
  static constexpr std::size_t kMostDigits = 2 * sizeof(std::size_t);

  std::array<char, kMostDigits + 2> size_;
  std::size_t size_bytes_ = 0;
  std::string_view after_;
};

}  // namespace gauntlet::server::inline http
