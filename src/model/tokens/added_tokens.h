// Tokens that are found in text before it is split: special ones, and words added to a vocabulary.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gauntlet::model::inline tokens {

class AddedTokens {
 public:
  enum class Kind { special, plain };
  /// Which of them a text's spelling is taken for.
  enum class Seek { all, plain_only };

  /// False when the text has a token already.
  bool add(std::string_view text, std::int32_t id, Kind kind);

  struct Match {
    std::size_t begin = std::string_view::npos;  // npos: none
    std::size_t size = 0;
    std::int32_t id = -1;
  };
  /// The leftmost in `text` at or after `from`; of those that begin there, the longest.
  Match find(std::string_view text, std::size_t from, Seek seek) const;

  /// kNoToken when this text is no special token.
  std::int32_t special(std::string_view text) const;
  bool is_special(std::int32_t id) const;
  std::vector<std::int32_t> specials() const { return specials_; }

 private:
  struct Entry {
    std::int32_t id;
    Kind kind;
  };
  /// The next byte at or after `from` that begins one; npos when there is none.
  std::size_t find_first_byte(std::string_view text, std::size_t from) const;

  std::map<std::string, Entry, std::less<>> entries_;
  std::array<std::vector<std::size_t>, 256>
      sizes_;                           // by first byte: sizes that occur, longest first
  std::string first_bytes_;             // those that begin any
  std::vector<std::int32_t> specials_;  // sorted
};

}  // namespace gauntlet::model::inline tokens
