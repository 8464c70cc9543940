#include "model/tokens/token_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/random.h"

namespace gauntlet::model::inline tokens {
namespace {

std::uint64_t load_word(const char* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

constexpr std::uint64_t kLongMark = std::uint64_t{0xFF} << 56;

}  // namespace

void TokenTable::reserve(std::size_t num_tokens, std::size_t num_bytes) {
  arena_.reserve(num_bytes);
  spans_.reserve(num_tokens);
  while (slots_.size() * 3 < num_tokens * 4) grow();
}

bool TokenTable::define(std::int32_t id, std::string_view token_bytes) {
  check(id >= 0 && id < kMaxTokens && !token_bytes.empty(), "a token needs an id and bytes");
  check(arena_.size() + token_bytes.size() < std::uint32_t(-1), "the tokens exceed 4 GiB");
  if (defined(id)) return false;
  if (id >= size()) spans_.resize(static_cast<std::size_t>(id) + 1);
  spans_[static_cast<std::size_t>(id)] = {static_cast<std::uint32_t>(arena_.size()),
                                          static_cast<std::uint32_t>(token_bytes.size())};
  arena_ += token_bytes;
  return true;
}

bool TokenTable::make_findable(std::int32_t id) {
  const std::string_view wanted = bytes(id);
  check(!wanted.empty(), "only a defined token can be found");
  if ((num_findable_ + 1) * 4 > slots_.size() * 3) grow();
  const std::uint64_t key = key_of(wanted);
  Slot& slot = slots_[slot_of(key, wanted)];
  if (slot.id != kNoToken) return false;
  slot = {key, id};
  ++num_findable_;
  return true;
}

void TokenTable::forget_findable() {
  std::fill(slots_.begin(), slots_.end(), Slot{});
  num_findable_ = 0;
}

std::int32_t TokenTable::find(std::string_view wanted) const {
  return slots_[slot_of(key_of(wanted), wanted)].id;
}

std::uint64_t TokenTable::key_of(std::string_view bytes) {
  std::size_t size = bytes.size();
  const char* at = bytes.data();
  if (size < 8) {
    std::uint64_t key = size << 56;
    for (std::size_t i = 0; i < size; ++i) {
      key |= std::uint64_t{static_cast<unsigned char>(at[i])} << (8 * i);
    }
    return key;
  }
  std::uint64_t hash = size;
  for (; size > 8; size -= 8, at += 8) hash = mix64(hash ^ load_word(at));
  return mix64(hash ^ load_word(bytes.data() + bytes.size() - 8)) | kLongMark;
}

std::size_t TokenTable::slot_of(std::uint64_t key, std::string_view wanted) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = mix64(key) & mask;; i = (i + 1) & mask) {
    const Slot& slot = slots_[i];
    if (slot.id == kNoToken) return i;
    if (slot.key == key && (key < kLongMark || bytes(slot.id) == wanted)) return i;
  }
}

void TokenTable::grow() {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
  const std::size_t mask = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.id == kNoToken) continue;
    std::size_t i = mix64(slot.key) & mask;
    while (slots_[i].id != kNoToken) i = (i + 1) & mask;
    slots_[i] = slot;
  }
}

}  // namespace gauntlet::model::inline tokens
