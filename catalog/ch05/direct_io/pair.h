// What does the page cache cost, when data is read once and its copy is of no use?
#pragma once
#include <cstdint>
#include <memory>

#include "core/storage/stored_words.h"

namespace gauntlet::ch05::direct_io {

struct Params {
  std::shared_ptr<StoredWords> stored;
  const std::int32_t* start;  // [shards]: the page of the file where each begins
  unsigned char* out;         // [shards, shard_bytes]
  std::int64_t shards;
  std::int64_t shard_bytes;
};

}  // namespace gauntlet::ch05::direct_io
