// A block is read, then inflated, then the next one is read.
#include <memory>

#include "catalog/labs/input_pipeline/lab.h"
#include "core/os/pages.h"
#include "lab/author/counted.h"
#include "lab/author/side.h"

namespace gauntlet::labs::input_pipeline::cpu {

lab::Side read_inflate(const Params& p, const lab::Cpu&) {
  const int file = p.shard->file().direct();
  const auto buffer = std::make_shared<HugePages>(p.shard->index().most_padded_bytes());
  return lab::counted({lab::waiting_ms(), lab::working_threads()}, [p, file, buffer] {
    for (std::int64_t i = 0; i < p.blocks; ++i) {
      const ShardBlock& block = block_of(p, i);
      check(bool(read_fully(file, {buffer->data(), static_cast<std::size_t>(block.padded_bytes())},
                            block.offset)),
            "a block can be read");
      inflate(p, i, buffer->data(), p.out + i * p.block_tokens);
    }
  });
}

}  // namespace gauntlet::labs::input_pipeline::cpu
