// The bits by which tcgen05.mma is told what it multiplies (sm_100a); plain arithmetic, for host
// and device.
#pragma once
#include <cstdint>

namespace gauntlet::ptx {

/// Of dense tf32 operands, both K-major, with fp32 sums: m rows (of one SM 128, of a pair 256) by n
/// columns.
constexpr std::uint32_t tcgen05_tf32(std::uint32_t m, std::uint32_t n) {
  constexpr std::uint32_t kSumsF32 = 1, kTf32 = 2;
  return kSumsF32 << 4 | kTf32 << 7 | kTf32 << 10 | (n / 8) << 17 | (m / 16) << 24;
}

/// The same of bf16 operands.
constexpr std::uint32_t tcgen05_bf16(std::uint32_t m, std::uint32_t n) {
  constexpr std::uint32_t kSumsF32 = 1, kBf16 = 1;
  return kSumsF32 << 4 | kBf16 << 7 | kBf16 << 10 | (n / 8) << 17 | (m / 16) << 24;
}

/// A K-major tile of 128-byte rows in the 128-byte swizzle, at a shared address that is a multiple
/// of 1024; groups of 8 rows are 1024 bytes apart. The next 32 bytes along K are at +2.
constexpr std::uint64_t tcgen05_tile_128b(std::uint32_t address) {
  constexpr std::uint64_t kVersion = 1, kSwizzle128 = 2;
  return std::uint64_t{(address & 0x3FFFF) >> 4} | std::uint64_t{1} << 16 |
         std::uint64_t{1024 >> 4} << 32 | kVersion << 46 | kSwizzle128 << 61;
}

/// Where a warp finds its 32 rows of sums: lanes in the upper half of an address, columns in the
/// lower.
constexpr std::uint32_t tensor_memory_at(std::uint32_t base, std::uint32_t lane,
                                         std::uint32_t column) {
  return base + (lane << 16) + column;
}

}  // namespace gauntlet::ptx
