// The bytes of every token, and the token of given bytes: one hash probe per piece of text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gauntlet::model::inline tokens {

/// Ids below this, so that a merge's two ids and its rank fit into 64 bits together.
inline constexpr std::int32_t kMaxTokens = (1 << 21) - 1;
inline constexpr std::int32_t kNoToken = -1;

class TokenTable {
 public:
  /// What is to come: tokens, and bytes of all of them.
  void reserve(std::size_t num_tokens, std::size_t num_bytes);

  /// Gives an id its bytes; false when it has some already.
  bool define(std::int32_t id, std::string_view bytes);
  /// Makes a defined token findable by its bytes; false when they are another's already.
  bool make_findable(std::int32_t id);
  /// No token can be found any more; all keep their bytes.
  void forget_findable();

  /// kNoToken when there is none.
  std::int32_t find(std::string_view bytes) const;
  /// Empty for an id that is not defined, whatever its value.
  std::string_view bytes(std::int32_t id) const {
    if (id < 0 || id >= size()) return {};
    const Span& span = spans_[static_cast<std::size_t>(id)];
    return {arena_.data() + span.begin, span.size};
  }
  bool defined(std::int32_t id) const { return !bytes(id).empty(); }
  /// One more than the largest id.
  std::int32_t size() const { return static_cast<std::int32_t>(spans_.size()); }

 private:
  struct Span {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
  };
  // Up to seven bytes are their own key; of longer ones it is a hash, and equal keys are compared.
  struct Slot {
    std::uint64_t key = 0;  // no bytes have this one
    std::int32_t id = kNoToken;
  };

  static std::uint64_t key_of(std::string_view bytes);
  /// Of these bytes, or the empty one where they would go.
  std::size_t slot_of(std::uint64_t key, std::string_view bytes) const;
  void grow();

  std::string arena_;
  std::vector<Span> spans_;  // by id
  std::vector<Slot> slots_ = std::vector<Slot>(16);
  std::size_t num_findable_ = 0;
};

}  // namespace gauntlet::model::inline tokens
