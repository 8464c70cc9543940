// LZ4 blocks by liblz4. A build without it has these functions, too, and lz4_compiled() says so.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/expected.h"

namespace gauntlet {

/// Why this build has no liblz4; no error where it has it.
Expected<void> lz4_compiled();

std::vector<unsigned char> compress_lz4_block(std::span<const unsigned char> raw);
/// How many bytes the block came to, or kLz4Corrupt.
std::int64_t inflate_lz4_block(std::span<const unsigned char> in, std::span<unsigned char> out);

}  // namespace gauntlet
