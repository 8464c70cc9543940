// The blocks of a batch, read through a queue: as soon as one is there another is asked for.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "catalog/labs/input_pipeline/lab.h"
#include "core/os/pages.h"
#include "core/storage/io_ring.h"

namespace gauntlet::labs::input_pipeline {

/// Into memory of that kind, where the blocks of a batch lie one behind the other, each padded to
/// what a disk is read by.
template <class Memory = HugePages>
class QueuedBlocks {
 public:
  explicit QueuedBlocks(const Params& p)
      : p_(p),
        file_(p.shard->file().direct()),
        most_bytes_(p.blocks * p.shard->index().most_padded_bytes()),
        buffer_(most_bytes_),
        begins_(static_cast<std::size_t>(p.blocks + 1)),
        there_(static_cast<std::size_t>(p.blocks)) {
    auto opened = IoRing::open(kDepth);
    if (!opened) fail(opened.error().message);
    ring_ = std::move(*opened);
  }

  /// Once the batch is known.
  void start() {
    asked_ = taken_ = 0;
    for (std::int64_t i = 0; i < p_.blocks; ++i) {
      begins_[static_cast<std::size_t>(i + 1)] = begin(i) + block_of(p_, i).padded_bytes();
    }
    std::ranges::fill(there_, char{0});
  }
  /// The number of a block that is there, in the order in which the disk brought them; -1 after the
  /// last.
  std::int64_t next() {
    if (taken_ == p_.blocks) return -1;
    for (; asked_ < p_.blocks && asked_ - taken_ < kDepth; ++asked_) {
      const ShardBlock& block = block_of(p_, asked_);
      ring_->prepare({.file = file_,
                      .to = buffer_.data() + begin(asked_),
                      .bytes = block.padded_bytes(),
                      .offset = block.offset,
                      .tag = static_cast<std::uint64_t>(asked_)});
    }
    RingCompletion completion;
    check(bool(ring_->submit_and_wait(1)), "reads can be handed over");
    check(ring_->take(completion), "a read that was waited for is there");
    const auto block = static_cast<std::int64_t>(completion.tag);
    check(completion.result == block_of(p_, block).padded_bytes(), "a block can be read");
    ++taken_;
    return block;
  }
  /// Reads on until that block is there, whatever comes before it.
  void wait_for(std::int64_t block) {
    while (there_[static_cast<std::size_t>(block)] == 0) {
      there_[static_cast<std::size_t>(next())] = 1;
    }
  }

  const unsigned char* compressed(std::int64_t block) const {
    return buffer_.data() + begin(block);
  }
  /// Where a block lies in the memory, and where the one before it ended.
  std::int64_t begin(std::int64_t block) const { return begins_[static_cast<std::size_t>(block)]; }
  std::int64_t most_bytes() const { return most_bytes_; }

 private:
  static constexpr unsigned kDepth = 32;

  Params p_;
  int file_;
  std::int64_t most_bytes_;
  Memory buffer_;
  std::vector<std::int64_t> begins_;  // [blocks + 1]
  std::vector<char> there_;           // [blocks]: found there by wait_for()
  std::unique_ptr<IoRing> ring_;
  std::int64_t asked_ = 0, taken_ = 0;
};

}  // namespace gauntlet::labs::input_pipeline
