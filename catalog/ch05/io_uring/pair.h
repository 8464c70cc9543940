// What do many reads in flight buy over one after the other, when records lie anywhere on a disk?
#pragma once
#include <cstdint>
#include <memory>

#include "core/storage/stored_words.h"

namespace gauntlet::ch05::io_uring {

struct Params {
  std::shared_ptr<StoredWords> stored;
  const std::int32_t* start;  // [records]: the page of the file where each begins
  unsigned char* out;         // [records, record_bytes]
  std::int64_t records;
  std::int64_t record_bytes;
};

}  // namespace gauntlet::ch05::io_uring
