// Guesses by looking up: what followed the last few tokens when the request had them before, in its
// prompt or its output.
#pragma once
#include <unordered_map>

#include "engine/speculation/drafter.h"

namespace gauntlet::engine::inline speculation {

struct NgramConfig {
  int shortest = 2;  // tokens that must match
  int longest = 4;   // a longer match is believed first
};

class NgramDrafter final : public Drafter {
 public:
  explicit NgramDrafter(const NgramConfig& config = {});
  std::string_view name() const override { return "ngram"; }
  std::vector<Draft> propose(std::span<const DraftWish> wishes) override;
  void end(std::int64_t id) override { indices_.erase(id); }

 private:
  /// Where each run of tokens ended last and the time before that, by its hash.
  struct Places {
    std::int64_t last = 0;
    std::int64_t before = 0;
  };
  struct Index {
    std::int64_t size = 0;  // tokens that are in it
    std::unordered_map<std::uint64_t, Places> places;
  };

  void extend(Index& index, std::span<const std::int32_t> tokens) const;
  /// Where the text goes on after the longest run that it ends with and had before; 0: nowhere.
  std::int64_t find(const Index& index, std::span<const std::int32_t> tokens) const;

  const NgramConfig config_;
  std::unordered_map<std::int64_t, Index> indices_;  // by request
};

}  // namespace gauntlet::engine::inline speculation
