#include "engine/speculation/ngram.h"

#include <algorithm>

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

}  // namespace

NgramDrafter::NgramDrafter(const NgramConfig& config) : config_(config) {
  check(config.shortest > 0 && config.longest >= config.shortest, "runs of tokens have a length");
}

void NgramDrafter::extend(Index& index, std::span<const std::int32_t> tokens) const {
  for (std::int64_t end = index.size + 1; end <= std::ssize(tokens); ++end) {
    for (int length = config_.shortest; length <= std::min<std::int64_t>(config_.longest, end);
         ++length) {
      Places& places = index.places[hash_of(tokens, end, length)];
      places = {.last = end, .before = places.last};
    }
  }
  index.size = std::ssize(tokens);
}

std::int64_t NgramDrafter::find(const Index& index, std::span<const std::int32_t> tokens) const {
  const std::int64_t size = std::ssize(tokens);
  for (int length = config_.longest; length >= config_.shortest; --length) {
    if (length > size) continue;
    const auto found = index.places.find(hash_of(tokens, size, length));
    if (found == index.places.end()) continue;
    const std::int64_t end = found->second.before;
    // A hash may be another run's.
    if (end >= length && std::ranges::equal(tokens.subspan(end - length, length),
                                            tokens.subspan(size - length, length))) {
      return end;
    }
  }
  return 0;
}

std::vector<Draft> NgramDrafter::propose(std::span<const DraftWish> wishes) {
  std::vector<Draft> drafts;
  for (const DraftWish& wish : wishes) {
    Index& index = indices_[wish.id];
    extend(index, wish.tokens);
    Draft draft;
    const std::int64_t size = std::ssize(wish.tokens);
    if (const std::int64_t end = find(index, wish.tokens); end > 0) {
      // Past the text's own end, a text with a short period goes on with its guesses.
      for (std::int64_t i = 0; i < wish.most; ++i) {
        const std::int64_t at = end + i;
        draft.push_back(at < size ? wish.tokens[at] : draft[static_cast<std::size_t>(at - size)]);
      }
    }
    drafts.push_back(std::move(draft));
  }
  return drafts;
}

}  // namespace gauntlet::engine::inline speculation
