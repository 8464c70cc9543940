// What does it cost to feed a GPU from the node that is farthest from it?
#pragma once
#include <cstdint>

namespace gauntlet::ch03::gpu_numa_affinity {

constexpr std::int64_t kRowWords = 512;
/// Few enough rows for a core's second-level cache: wherever the table lies, hardly any of what is
/// gathered comes from there, and the sides differ by where it is gathered to.
constexpr std::int64_t kTableRows = 64;

struct Params {
  const std::uint64_t* table;  // [kTableRows, kRowWords], in pinned host memory
  const std::int32_t* order;   // [rows], in pinned host memory: which row of the table comes
  std::uint64_t* out;          // [rows, kRowWords], on the device
  std::int64_t rows;
  std::int64_t slot_rows;  // gathered before they are sent
  std::int64_t feeders;    // threads; each has two slots
};

}  // namespace gauntlet::ch03::gpu_numa_affinity
