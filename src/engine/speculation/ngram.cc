#include "engine/speculation/ngram.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/random.h"

namespace gauntlet::engine::inline speculation {
namespace {

/// Of the `length` tokens that end at `end`.
std::uint64_t hash_of(std::span<const std::int32_t> tokens, std::int64_t end, int length) {
  std::uint64_t hash = static_cast<std::uint64_t>(length);
  for (const std::int32_t token : tokens.subspan(end - length, length)) {
    hash = mix64(hash ^ static_cast<std::uint32_t>(token));
  }
  return hash;
}

/// Earlier places of one run that are looked at.
constexpr int kMostLooks = 64;

}  // namespace

NgramDrafter::NgramDrafter(const NgramConfig& config) : config_(config) {
  check(config.shortest > 0 && config.longest >= config.shortest, "runs of tokens have a length");
}

void NgramDrafter::extend(Index& index, std::span<const std::int32_t> tokens) const {
  index.before.resize(static_cast<std::size_t>(config_.longest - config_.shortest) + 1);
  for (auto& before : index.before) before.resize(tokens.size() + 1);
  for (std::int64_t end = index.size + 1; end <= std::ssize(tokens); ++end) {
    for (int length = config_.shortest; length <= std::min<std::int64_t>(config_.longest, end);
         ++length) {
      std::int64_t& last = index.last[hash_of(tokens, end, length)];
      index.before[length - config_.shortest][end] = std::exchange(last, end);
    }
  }
  index.size = std::ssize(tokens);
}

std::vector<std::int64_t> NgramDrafter::find(const Index& index,
                                             std::span<const std::int32_t> tokens,
                                             std::int64_t most) const {
  const std::int64_t size = std::ssize(tokens);
  std::vector<std::int64_t> ends;
  for (int length = config_.longest; length >= config_.shortest; --length) {
    const auto& before = index.before[length - config_.shortest];
    std::int64_t end = before[size];
    for (int looked = 0; end > 0 && looked < kMostLooks; end = before[end], ++looked) {
      if (std::ssize(ends) == most) return ends;
      // A hash may be another run's. After the same token a longer run is believed.
      const bool is_same =
          end >= length && std::ranges::equal(tokens.subspan(end - length, length),
                                              tokens.subspan(size - length, length));
      const bool is_new = std::ranges::none_of(
          ends, [&](std::int64_t known) { return tokens[known] == tokens[end]; });
      if (is_same && is_new) ends.push_back(end);
    }
  }
  return ends;
}

std::vector<Draft> NgramDrafter::propose(std::span<const DraftWish> wishes) {
  std::vector<Draft> drafts;
  for (const DraftWish& wish : wishes) {
    Index& index = indices_[wish.id];
    extend(index, wish.tokens);
    const std::vector<std::int64_t> ends = find(index, wish.tokens, wish.tree.width);
    const std::int64_t size = std::ssize(wish.tokens);
    // A branch for each place, all of them a level further in turn.
    Draft& draft = drafts.emplace_back();
    std::vector<std::vector<std::int32_t>> guesses(ends.size());
    std::vector<std::int32_t> last(ends.size(), -1);
    const std::int64_t depth = std::min(wish.tree.depth, wish.most);
    for (std::int64_t level = 0; level < depth; ++level) {
      for (std::size_t b = 0; b < ends.size() && std::ssize(draft) < wish.most; ++b) {
        // Past the text's own end, a text with a short period goes on with its guesses.
        const std::int64_t at = ends[b] + level;
        guesses[b].push_back(at < size ? wish.tokens[at]
                                       : guesses[b][static_cast<std::size_t>(at - size)]);
        draft.add(guesses[b].back(),
                  std::exchange(last[b], static_cast<std::int32_t>(draft.size())));
      }
    }
    draft.simplify();
  }
  return drafts;
}

}  // namespace gauntlet::engine::inline speculation
