// The blocks of a batch, read through a queue: as soon as one is there another is asked for.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "catalog/labs/input_pipeline/lab.h"
#include "core/os/pages.h"
#include "core/storage/io_ring.h"

namespace gauntlet::labs::input_pipeline {

class QueuedBlocks {
 public:
  explicit QueuedBlocks(const Params& p)
      : p_(p),
        file_(p.shard->file().direct()),
        slot_bytes_(p.shard->index().most_padded_bytes()),
        buffer_(p.blocks * slot_bytes_) {
    auto opened = IoRing::open(kDepth);
    if (!opened) fail(opened.error().message);
    ring_ = std::move(*opened);
  }

  void start() { asked_ = taken_ = 0; }
  /// The number of a block that is there, in the order in which the disk brought them; -1 after the
  /// last.
  std::int64_t next() {
    if (taken_ == p_.blocks) return -1;
    for (; asked_ < p_.blocks && asked_ - taken_ < kDepth; ++asked_) {
      const ShardBlock& block = block_of(p_, asked_);
      ring_->prepare({.file = file_,
                      .to = buffer_.data() + asked_ * slot_bytes_,
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
  const unsigned char* compressed(std::int64_t block) const {
    return buffer_.data() + block * slot_bytes_;
  }

 private:
  static constexpr unsigned kDepth = 32;

  Params p_;
  int file_;
  std::int64_t slot_bytes_;
  HugePages buffer_;  // [blocks, slot_bytes_]
  std::unique_ptr<IoRing> ring_;
  std::int64_t asked_ = 0, taken_ = 0;
};

}  // namespace gauntlet::labs::input_pipeline
