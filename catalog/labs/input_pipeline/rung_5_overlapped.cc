// Whoever is free takes the next block that is there: one thread at a time waits for the disk.
#include <mutex>

#include "catalog/labs/input_pipeline/queued_blocks.h"
#include "core/os/threads.h"
#include "lab/author/counted.h"
#include "lab/author/side.h"

namespace gauntlet::labs::input_pipeline::cpu {

lab::Side overlapped(const Params& p, const lab::Cpu& cpu) {
  const auto queue = std::make_shared<QueuedBlocks<>>(p);
  const auto turn = std::make_shared<std::mutex>();
  return lab::counted({lab::waiting_ms(), lab::working_threads()},
                      [p, queue, turn, pool = cpu.pool] {
                        queue->start();
                        const auto take = [&] {
                          const std::lock_guard lock(*turn);
                          return queue->next();
                        };
                        pool->run([&](int) {
                          for (std::int64_t i = take(); i >= 0; i = take()) {
                            inflate(p, i, queue->compressed(i), p.out + i * p.block_tokens);
                          }
                        });
                      });
}

}  // namespace gauntlet::labs::input_pipeline::cpu
