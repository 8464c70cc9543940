// A body that comes in chunks (RFC 9112, 7.1), read strictly and within limits.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace gauntlet::server::inline http {

class ChunkedBody {
 public:
  struct Limits {
    std::uint64_t body_bytes = 0;
    std::uint64_t extra_bytes = 0;  // extensions and trailers, all together
  };
  explicit ChunkedBody(Limits limits) : limits_(limits) {}

  enum class State { more, done, malformed, body_too_large, extra_too_large };
  /// Appends to `body` what these bytes hold of it and counts them off: what follows a body that is
  /// done stays.
  State read(std::string_view& bytes, std::string& body);

 private:
  enum class Stage { size, data, data_end, trailer };
  State read_size_line();
  State read_trailer_line();
  State take_data(std::string_view& bytes, std::string& body);

  const Limits limits_;
  Stage stage_ = Stage::size;
  std::string line_;        // as far as it has come
  std::uint64_t left_ = 0;  // of the chunk and, at data_end, of the end of its line
  std::uint64_t body_bytes_ = 0;
  std::uint64_t extra_bytes_ = 0;
};

}  // namespace gauntlet::server::inline http
