// Byte-pair merging: of all neighbours that may merge, the pair of the lowest rank does, leftmost
// first, until none may.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace gauntlet::model::inline tokens {

/// Ranks below this, so that two ids and a rank fit into 64 bits together.
inline constexpr std::uint32_t kMaxMerges = (1u << 22) - 1;

class MergeTable {
 public:
  /// The tokens that single bytes begin as.
  void set_byte_tokens(const std::array<std::int32_t, 256>& ids) { byte_tokens_ = ids; }
  void reserve(std::size_t num_merges);
  /// Adds the next merge, whose rank is the number of those before it. A pair that has a rank
  /// already takes the new one.
  void add(std::int32_t left, std::int32_t right, std::int32_t merged);
  std::size_t size() const { return merged_.size(); }

  /// Appends the tokens of a piece. Time grows as n log n.
  void encode(std::string_view piece, std::vector<std::int32_t>& ids) const;

 private:
  static constexpr std::uint32_t kNoRank = kMaxMerges;

  std::uint32_t rank(std::int32_t left, std::int32_t right) const;
  void encode_short(std::string_view piece, std::vector<std::int32_t>& ids) const;
  void encode_long(std::string_view piece, std::vector<std::int32_t>& ids) const;
  std::uint64_t& slot_of(std::uint64_t pair);
  void grow();

  std::array<std::int32_t, 256> byte_tokens_{};
  std::vector<std::int32_t> merged_;  // by rank
  // Left id (21 bits), right id (21), rank (22): eight bytes, so that eight slots share a cache
  // line.
  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(16, ~std::uint64_t{0});
  std::size_t num_pairs_ = 0;
};

}  // namespace gauntlet::model::inline tokens
