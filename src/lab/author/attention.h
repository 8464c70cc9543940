// What attention must give without computing all of it: some of its rows, and a weighted sum of
// every row.
#pragma once
#include <cstdint>
#include <string>

#include "lab/author/reference.h"

namespace gauntlet::lab::inline author {

/// softmax(scale · q·k)·v of each head, every query seeing all keys.
struct Attention {
  const float* q = nullptr;  // [heads, queries, head_dim]
  const float* k = nullptr;  // [heads, head_dim, keys]: a key is a column
  const float* v = nullptr;  // [heads, keys, head_dim]
  std::int64_t heads = 0;
  std::int64_t queries = 0;  // of a head
  std::int64_t keys = 0;
  std::int64_t head_dim = 0;
  double scale = 1;
};

/// Expects it in output `name`, [heads, queries, head_dim]: one row out of `stride`, and sums over
/// all.
void expect_attention(Reference& reference, const std::string& name, const Attention& attention,
                      std::int64_t stride);

}  // namespace gauntlet::lab::inline author
