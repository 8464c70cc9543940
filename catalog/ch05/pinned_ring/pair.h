// What does it buy to read files into memory that the copy engine reads by itself?
#pragma once
#include <cstdint>
#include <memory>

#include "core/storage/stored_words.h"

namespace gauntlet::ch05::pinned_ring {

struct Params {
  std::shared_ptr<StoredWords> stored;
  const std::int32_t* start;  // [parts], in pinned host memory: the page where each begins
  unsigned char* out;         // [parts, part_bytes], on the device
  std::int64_t parts;
  std::int64_t part_bytes;
};

}  // namespace gauntlet::ch05::pinned_ring
