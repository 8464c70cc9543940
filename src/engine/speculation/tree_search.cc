#include "engine/speculation/tree_search.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace gauntlet::engine::inline speculation {

TreeSearch::TreeSearch(const TreeShape& shape, std::int64_t most) : shape_(shape), most_(most) {}

void TreeSearch::add(std::size_t index, std::span<const float> logits, double normaliser,
                     const IdOf& id_of) {
  const std::int32_t parent = followed_[index];
  const double before = parent < 0 ? 0 : guesses_[parent].log_probability;
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto width = std::min<std::int64_t>(shape_.width, std::ssize(order));
  std::ranges::partial_sort(order, order.begin() + width, [&](std::int32_t a, std::int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  for (const std::int32_t i : std::span(order).first(static_cast<std::size_t>(width))) {
    guesses_.push_back({.token = id_of ? id_of(i) : i,
                        .parent = parent,
                        .log_probability = before + std::min(0.0, logits[i] - normaliser)});
  }
}

std::vector<std::int32_t> TreeSearch::likeliest(std::int32_t begin, std::int64_t most) const {
  std::vector<std::int32_t> order(guesses_.size() - static_cast<std::size_t>(begin));
  std::iota(order.begin(), order.end(), begin);
  std::ranges::sort(order, {},
                    [&](std::int32_t i) { return std::pair(-guesses_[i].log_probability, i); });
  if (std::ssize(order) > most) order.resize(static_cast<std::size_t>(most));
  return order;
}

bool TreeSearch::descend() {
  const std::int32_t begin = level_begin_;
  // Nothing that follows is likelier than the best of this level.
  const bool has_any =
      std::ranges::any_of(likeliest(0, most_), [&](std::int32_t i) { return i >= begin; });
  if (!has_any || ++level_ >= std::min(shape_.depth, most_)) return false;
  level_begin_ = static_cast<std::int32_t>(guesses_.size());
  followed_ = likeliest(begin, shape_.width);
  std::ranges::sort(followed_);
  return true;
}

std::vector<std::int32_t> TreeSearch::path_to(std::int32_t guess) const {
  std::vector<std::int32_t> path;
  for (; guess >= 0; guess = guesses_[guess].parent) path.push_back(guess);
  std::ranges::reverse(path);
  return path;
}

/// A guess is never likelier than the one it follows, and comes later: what is handed in is a tree.
Draft TreeSearch::draft() const {
  std::vector<std::int32_t> kept = likeliest(0, most_);
  std::ranges::sort(kept);
  Draft draft;
  for (const std::int32_t i : kept) {
    const std::int32_t parent = guesses_[i].parent;
    const auto place = std::ranges::lower_bound(kept, parent) - kept.begin();
    draft.add(guesses_[i].token, parent < 0 ? -1 : static_cast<std::int32_t>(place));
  }
  draft.simplify();
  return draft;
}

}  // namespace gauntlet::engine::inline speculation
