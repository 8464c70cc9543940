// Where a text stands in a grammar: a small set of heads, each with its stack of rules to return
// to. Bytes move the heads; a copy costs a few hundred bytes.
#pragma once
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "engine/grammar/grammar.h"

namespace gauntlet::engine::grammar {

/// Stacks as lists that share their lower ends. Number 0 is the empty stack.
class Stacks {
 public:
  using Id = std::uint32_t;
  struct Frame {
    Grammar::Node then = 0;
    Id below = 0;
  };
  static constexpr Id kEmpty = 0;

  Id push(Grammar::Node then, Id below) {
    frames_.push_back({.then = then, .below = below});
    return static_cast<Id>(frames_.size());
  }
  Frame top(Id stack) const { return frames_[stack - 1]; }
  bool same(Id a, Id b) const;
  /// Frames pushed since size() was `size` are gone.
  void truncate(std::size_t size) { frames_.resize(size); }
  std::size_t size() const { return frames_.size(); }

 private:
  std::vector<Frame> frames_;
};

struct Head {
  Grammar::Node node = 0;
  Stacks::Id stack = Stacks::kEmpty;
};

/// Heads that wait for a byte; `ended` when the last byte could also have been the last of all.
struct Heads {
  std::vector<Head> list;
  std::vector<Head> callers;  // entered since the last byte for the rules they call
  bool ended = false;
};

/// Ambiguous schemas can need more heads than this; those beyond are dropped, which narrows what
/// may be written but never lets a wrong text through, for each head alone leads to an end.
inline constexpr std::size_t kMaxHeads = 128;

/// Adds the heads that wait for a byte when `node` is reached: its own, those of the rules it calls
/// and, where it ends its rule, those it returns to.
void enter(const Grammar& grammar, Stacks& stacks, Head reached, Heads& heads);

/// The heads after one more byte, in `after`.
void step(const Grammar& grammar, Stacks& stacks, const Heads& before, std::uint8_t byte,
          Heads& after);

class Matcher {
 public:
  /// The grammar outlives the matcher.
  explicit Matcher(const Grammar& grammar);

  /// False, and nothing changes, when no text of the grammar goes on with this byte.
  bool advance(std::uint8_t byte);
  /// All bytes or none.
  bool advance(std::string_view bytes);
  bool can_end() const { return heads_.ended; }
  const Heads& heads() const { return heads_; }
  const Stacks& stacks() const { return stacks_; }
  /// Equal for two states of the same grammar only if the same texts, of up to so many bytes, may
  /// follow.
  std::vector<std::uint32_t> key(
      std::size_t horizon = std::numeric_limits<std::uint32_t>::max()) const;

 private:
  /// Drops the frames no head stands on.
  void compact();

  static constexpr std::size_t kCompactAbove = 512;  // frames
  const Grammar* grammar_;
  Stacks stacks_;
  Heads heads_;
  std::size_t compact_above_ = kCompactAbove;
};

}  // namespace gauntlet::engine::grammar
