#include "model/tokens/merge_table.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/check.h"
#include "core/random.h"
#include "model/tokens/token_table.h"

namespace gauntlet::model::inline tokens {
namespace {

constexpr unsigned kRankBits = 22;
constexpr unsigned kIdBits = 21;
constexpr std::uint64_t kRankMask = (std::uint64_t{1} << kRankBits) - 1;
constexpr std::uint64_t kEmpty = ~std::uint64_t{0};  // its ids would be kMaxTokens
static_assert(kMaxMerges == kRankMask && kMaxTokens == (1 << kIdBits) - 1);

/// Up to here, looking at all neighbours for each merge beats keeping them in a heap.
constexpr std::size_t kShortPiece = 64;

constexpr std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(left) << kIdBits | static_cast<std::uint64_t>(right);
}

}  // namespace

void MergeTable::reserve(std::size_t num_merges) {
  merged_.reserve(num_merges);
  while (slots_.size() < num_merges * 2) grow();
}

void MergeTable::add(std::int32_t left, std::int32_t right, std::int32_t merged) {
  check(std::min({left, right, merged}) >= 0 && std::max({left, right, merged}) < kMaxTokens &&
            merged_.size() < kMaxMerges,
        "a merge is out of range");
  if ((num_pairs_ + 1) * 2 > slots_.size()) grow();
  std::uint64_t& slot = slot_of(pair_of(left, right));
  if (slot == kEmpty) ++num_pairs_;
  slot = pair_of(left, right) << kRankBits | merged_.size();
  merged_.push_back(merged);
}

std::uint64_t& MergeTable::slot_of(std::uint64_t pair) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t i = mix64(pair) & mask;
  while (slots_[i] != kEmpty && slots_[i] >> kRankBits != pair) i = (i + 1) & mask;
  return slots_[i];
}

std::uint32_t MergeTable::rank(std::int32_t left, std::int32_t right) const {
  const std::uint64_t pair = pair_of(left, right);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = mix64(pair) & mask;; i = (i + 1) & mask) {
    if (slots_[i] >> kRankBits == pair) return static_cast<std::uint32_t>(slots_[i] & kRankMask);
    if (slots_[i] == kEmpty) return kNoRank;
  }
}

void MergeTable::grow() {
  const std::vector<std::uint64_t> old =
      std::exchange(slots_, std::vector<std::uint64_t>(slots_.size() * 2, kEmpty));
  for (const std::uint64_t slot : old) {
    if (slot != kEmpty) slot_of(slot >> kRankBits) = slot;
  }
}

void MergeTable::encode(std::string_view piece, std::vector<std::int32_t>& ids) const {
  if (piece.size() <= kShortPiece) {
    encode_short(piece, ids);
  } else {
    encode_long(piece, ids);
  }
}

void MergeTable::encode_short(std::string_view piece, std::vector<std::int32_t>& ids) const {
  std::array<std::int32_t, kShortPiece> tokens;
  std::array<std::uint32_t, kShortPiece> ranks;  // of a token and its right neighbour
  std::size_t size = piece.size();
  for (std::size_t i = 0; i < size; ++i) {
    tokens[i] = byte_tokens_[static_cast<unsigned char>(piece[i])];
  }
  for (std::size_t i = 0; i + 1 < size; ++i) ranks[i] = rank(tokens[i], tokens[i + 1]);
  while (size > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < size; ++i) {
      if (ranks[i] < ranks[best]) best = i;
    }
    if (ranks[best] == kNoRank) break;
    tokens[best] = merged_[ranks[best]];
    --size;
    for (std::size_t i = best + 1; i < size; ++i) {
      tokens[i] = tokens[i + 1];
      ranks[i - 1] = ranks[i];
    }
    if (best + 1 < size) ranks[best] = rank(tokens[best], tokens[best + 1]);
    if (best > 0) ranks[best - 1] = rank(tokens[best - 1], tokens[best]);
  }
  ids.insert(ids.end(), tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(size));
}

void MergeTable::encode_long(std::string_view piece, std::vector<std::int32_t>& ids) const {
  check(piece.size() < std::uint32_t(-1), "a piece of text exceeds 4 GiB");
  const auto size = static_cast<std::uint32_t>(piece.size());
  struct Symbol {
    std::int32_t token;
    std::uint32_t rank;  // with the right neighbour; kNoRank also once merged away
    std::uint32_t previous;
    std::uint32_t next;  // size at the end
    bool queued = false;
  };
  std::vector<Symbol> symbols(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    symbols[i] = {.token = byte_tokens_[static_cast<unsigned char>(piece[i])],
                  .rank = kNoRank,
                  .previous = i - 1,
                  .next = i + 1};
  }
  const auto rate = [&](std::uint32_t at) {
    Symbol& symbol = symbols[at];
    symbol.rank = symbol.next == size ? kNoRank : rank(symbol.token, symbols[symbol.next].token);
    symbol.queued = false;
  };
  // Rank, then place. Only pairs that go before both their neighbours are queued: the next to merge
  // is among them, and they are a third of all. An entry whose rank is no longer that of its place
  // is stale and is passed over.
  std::vector<std::uint64_t> heap;
  heap.reserve(size / 2);
  const auto queue = [&](std::uint32_t at) {
    Symbol& symbol = symbols[at];
    if (symbol.queued || symbol.rank == kNoRank) return false;
    if (at > 0 && symbols[symbol.previous].rank <= symbol.rank) return false;
    if (symbols[symbol.next].rank < symbol.rank) return false;
    symbol.queued = true;
    heap.push_back(std::uint64_t{symbol.rank} << 32 | at);
    return true;
  };
  for (std::uint32_t i = 0; i < size; ++i) rate(i);
  for (std::uint32_t i = 0; i < size; ++i) queue(i);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto push = [&](std::uint32_t at) {
    if (queue(at)) std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    const std::uint64_t best = heap.front();
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    const auto at = static_cast<std::uint32_t>(best);
    Symbol& left = symbols[at];
    if (left.rank != best >> 32) continue;
    Symbol& right = symbols[left.next];
    left.token = merged_[left.rank];
    left.next = right.next;
    right.rank = kNoRank;
    rate(at);
    if (left.next != size) {
      symbols[left.next].previous = at;
      push(left.next);
    }
    if (at > 0) {
      const std::uint32_t before = left.previous;
      rate(before);
      push(before);
      if (before > 0) push(symbols[before].previous);
    }
    push(at);
  }
  for (std::uint32_t i = 0; i < size; i = symbols[i].next) ids.push_back(symbols[i].token);
}

}  // namespace gauntlet::model::inline tokens
