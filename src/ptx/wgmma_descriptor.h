// The bits by which wgmma is told where a tile of an operand lies in shared memory (sm_90a); plain
// arithmetic, for host and device.
#pragma once
#include <cstdint>

namespace gauntlet::ptx {

/// The fields of a descriptor, in bytes but for the swizzle's code: 1 of 128 bytes, 2 of 64.
constexpr std::uint64_t wgmma_descriptor(std::uint32_t address, std::uint32_t leading,
                                         std::uint32_t stride, std::uint64_t swizzle) {
  return std::uint64_t{(address & 0x3FFFF) >> 4} | std::uint64_t{leading >> 4} << 16 |
         std::uint64_t{stride >> 4} << 32 | swizzle << 62;
}

/// A K-major tile of 64-byte rows in the 64-byte swizzle, 512-byte aligned; groups of 8 rows follow
/// each other. The next 32 bytes along K are at +2.
constexpr std::uint64_t wgmma_tile_64b(std::uint32_t address) {
  return wgmma_descriptor(address, 16, 512, 2);
}

/// An MN-major tile in the 128-byte swizzle, 1024-byte aligned: 128-byte rows of 64 columns for one
/// k each; the next 64 columns are `next_columns` bytes further. The next 16 along K are at +128.
constexpr std::uint64_t wgmma_rows_128b(std::uint32_t address, std::uint32_t next_columns) {
  return wgmma_descriptor(address, next_columns, 1024, 1);
}

}  // namespace gauntlet::ptx
