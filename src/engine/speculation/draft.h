// Guesses as a drafter hands them in: a chain, each after the one before it, or a tree.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace gauntlet::engine::inline speculation {

/// How far guesses may branch.
struct TreeShape {
  std::int64_t width = 1;  // guesses of one level that others follow, and how many follow each
  std::int64_t depth = std::numeric_limits<std::int64_t>::max();  // guesses on one path

  bool is_chain() const { return width == 1; }
  /// "a tree of width 3, depth 5".
  std::string describe() const {
    return "a tree of width " + std::to_string(width) + ", depth " + std::to_string(depth);
  }
};

/// Guesses that one step can take of a request: its known token and they have a bit each.
inline constexpr std::int64_t kMostGuesses = 63;

/// The ids, in an order in which each comes after the one it follows.
struct Draft : std::vector<std::int32_t> {
  using std::vector<std::int32_t>::vector;

  /// Which guess each one follows, an earlier one; -1: the last token that is known. Empty: a
  /// chain.
  std::vector<std::int32_t> parents;

  bool operator==(const Draft&) const = default;
  bool is_tree() const { return !parents.empty(); }
  std::int32_t parent(std::size_t i) const {
    return is_tree() ? parents[i] : static_cast<std::int32_t>(i) - 1;
  }
  void add(std::int32_t token, std::int32_t parent) {
    push_back(token);
    parents.push_back(parent);
  }
  /// A tree without branches is a chain.
  void simplify() {
    for (std::size_t i = 0; i < parents.size(); ++i) {
      if (parents[i] != static_cast<std::int32_t>(i) - 1) return;
    }
    parents.clear();
  }
  /// Guesses on the longest path.
  std::int64_t num_levels() const {
    if (!is_tree()) return std::ssize(*this);
    std::vector<std::int64_t> levels(size(), 1);
    for (std::size_t i = 0; i < size(); ++i) {
      if (parents[i] >= 0) levels[i] = levels[static_cast<std::size_t>(parents[i])] + 1;
    }
    return levels.empty() ? 0 : std::ranges::max(levels);
  }
  /// Keeps the first so many: of a tree, a tree.
  void shorten(std::int64_t most) {
    if (std::ssize(*this) <= most) return;
    resize(static_cast<std::size_t>(most));
    if (is_tree()) parents.resize(static_cast<std::size_t>(most));
  }
  /// Every guess has a parent that comes before it.
  bool is_well_formed() const {
    if (is_tree() && parents.size() != size()) return false;
    for (std::size_t i = 0; i < parents.size(); ++i) {
      if (parents[i] < -1 || parents[i] >= static_cast<std::int32_t>(i)) return false;
    }
    return true;
  }
};

/// The guesses that are what the model drew, one after the other: from each row to a guess that
/// follows it and is its token. `drawn` has the token after the last known one and after each
/// guess.
inline std::vector<std::int32_t> accepted_path(const Draft& draft,
                                               std::span<const std::int32_t> drawn) {
  std::vector<std::int32_t> path;
  std::int32_t last = -1;
  for (std::size_t i = 0; i < draft.size(); ++i) {
    if (draft.parent(i) != last ||
        draft[i] != drawn[static_cast<std::size_t>(std::int64_t{last} + 1)])
      continue;
    path.push_back(last = static_cast<std::int32_t>(i));
  }
  return path;
}

}  // namespace gauntlet::engine::inline speculation
