// Who carries the bytes of an all-gather between GPUs: SMs that compute meanwhile, or copy engines?
#pragma once
#include <cstdint>
#include <vector>

namespace gauntlet::ch04::copy_engine_collectives {

constexpr std::int64_t kChunks = 8;         // of a shard; one is folded while the next ones come
constexpr std::int64_t kBlockWords = 1024;  // that a block of the fold works on
constexpr int kRounds = 64;                 // of the fold, on each word

/// Each GPU has a shard and needs all of them: it folds what it gathered, word by word, into
/// Σ rounds(shard). Everything begins and ends on the first GPU, which hands out the shards and
/// collects what each GPU made of all of them.
struct Params {
  const std::uint32_t* in;      // [devices, words]
  const std::uint32_t* factor;  // [kRounds]
  std::uint32_t* out;           // [devices, words]: alike, of each GPU
  std::int64_t words;           // of a shard
  std::vector<int> devices;     // the first is the lab's
};

}  // namespace gauntlet::ch04::copy_engine_collectives
