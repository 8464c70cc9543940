// What does the size of a request do, when the same bytes of a disk are wanted?
#pragma once
#include <cstdint>
#include <memory>

#include "core/storage/stored_words.h"

namespace gauntlet::ch05::sequential_reads {

struct Params {
  std::shared_ptr<StoredWords> stored;
  const std::int32_t* start;  // [shards]: the page of the file where each begins
  const std::int32_t* order;  // [shards * shard_pages]: in which pages come up, of all shards
  unsigned char* out;         // [shards, shard_bytes]
  std::int64_t shards;
  std::int64_t shard_bytes;
};

}  // namespace gauntlet::ch05::sequential_reads
