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
  bool fans_out() const override { return true; }
  std::vector<Draft> propose(std::span<const DraftWish> wishes) override;
  void end(std::int64_t id) override { indices_.erase(id); }

 private:
  struct Index {
    std::int64_t size = 0;                                 // tokens that are in it
    std::unordered_map<std::uint64_t, std::int64_t> last;  // where a run ended last, by its hash
    /// Of the runs that end at each place, by their lengths: where they did before; 0: nowhere.
    std::vector<std::vector<std::int64_t>> before;
  };

  void extend(Index& index, std::span<const std::int32_t> tokens) const;
  /// Up to `most` places where the text goes on after a run that it ends with and had before: after
  /// longer runs first, after equal ones the latest.
  std::vector<std::int64_t> find(const Index& index, std::span<const std::int32_t> tokens,
                                 std::int64_t most) const;

  const NgramConfig config_;
  std::unordered_map<std::int64_t, Index> indices_;  // by request
};

}  // namespace gauntlet::engine::inline speculation
