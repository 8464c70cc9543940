// Where a word of a K-major tile lies in the 128-byte swizzle that wgmma and tensor maps share.
#pragma once

namespace gauntlet::ch09::wgmma_matmul {

/// In words from the tile's start, which is a multiple of 1024 bytes: rows are 32 words, and the
/// eight chunks of 16 bytes in a row change places with the row's number modulo 8.
constexpr int swizzled(int row, int column) {
  return row * 32 + ((column / 4) ^ (row % 8)) * 4 + column % 4;
}

}  // namespace gauntlet::ch09::wgmma_matmul
