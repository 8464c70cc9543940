// What does a GPU gain that reads the CPU's memory over NVLink-C2C as if it were its own?
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <span>

#include "core/os/pages.h"
#include "core/os/threads.h"
#include "core/random.h"

namespace gauntlet::ch02::coherent_c2c {

/// A table of random words in ordinary memory of the host, as any program has it, which anybody can
/// compute. Made when a side first asks for it.
class HostTable {
 public:
  explicit HostTable(std::int64_t bytes) : bytes_(bytes), words_(std::random_device{}()) {}

  std::int64_t bytes() const { return bytes_; }
  /// Written by the CPU, which puts the pages into its own memory.
  const unsigned char* data() {
    std::call_once(made_, [&] {
      pages_ = std::make_unique<HugePages>(bytes_);
      auto* words = reinterpret_cast<std::uint64_t*>(pages_->data());
      parallel_for(bytes_ / 8, [&](std::int64_t begin, std::int64_t end) {
        recompute({words + begin, static_cast<std::size_t>(end - begin)}, begin);
      });
    });
    return pages_->data();
  }
  /// The words from `first` on.
  void recompute(std::span<std::uint64_t> out, std::int64_t first) const {
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = words_.bits(static_cast<std::uint64_t>(first) + i);
    }
  }

 private:
  std::int64_t bytes_;
  Random words_;
  std::once_flag made_;
  std::unique_ptr<HugePages> pages_;
};

struct Params {
  std::shared_ptr<HostTable> table;  // of blocks of block_bytes
  const std::int32_t* pick;          // [blocks], in pinned host memory: which blocks of the table
  unsigned char* out;                // [blocks, block_bytes], in the GPU's own memory
  std::int64_t blocks;
  std::int64_t block_bytes;
};

}  // namespace gauntlet::ch02::coherent_c2c
