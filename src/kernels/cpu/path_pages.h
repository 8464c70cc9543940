// A path through a tree of guesses as pages that attention reads: its keys and values, which lie
// among those of other branches, each copied to the lane of its position. So its arithmetic is that
// of the same tokens without a tree, bit by bit, at every level.
#pragma once
#include <cstdint>
#include <span>

#include "kernels/cpu/kernels.h"

namespace gauntlet::kernels::cpu {

/// Keys and values of one KV head in one page.
struct ConstPage {
  const std::uint8_t* keys = nullptr;
  const std::uint8_t* values = nullptr;
};
struct Page {
  std::uint8_t* keys = nullptr;
  std::uint8_t* values = nullptr;
};
/// How a head's part of a page is laid out.
struct PageLayout {
  int head_dim = 0;
  KvType type = KvType::f32;

  std::int64_t bytes() const {
    return std::int64_t{head_dim} * kPageTokens * (type == KvType::f32 ? 4 : 2);
  }
};

/// Key and value of place `from_slot` of one page to place `to_slot` of another, or of the same.
void copy_slot(const PageLayout& layout, ConstPage from, int from_slot, Page to, int to_slot);

/// Where the tokens of a path lie: `slots` are those of positions `first` and up. What is before
/// them, and the same for all branches, lies at its position.
struct TreePath {
  std::int64_t first = 0;
  std::span<const std::int32_t> slots;
};

/// Bytes of keys, and as many of values, that a path gathered up to position `last` takes.
std::int64_t path_bytes(const TreePath& path, std::int64_t last, const PageLayout& layout);
/// Gathers a path up to position `last` out of the task's pages, which then reads it from `room`.
void gather_path(const TreePath& path, std::int64_t last, Page room, AttentionTask& task);

}  // namespace gauntlet::kernels::cpu
