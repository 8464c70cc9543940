// A batch is read, then used, then the next one is read.
#include <memory>

#include "catalog/ch05/prefetch_loader/pair.h"
#include "core/check.h"
#include "core/os/pages.h"
#include "lab/author/counted.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::prefetch_loader::cpu {

lab::Side baseline(const Params& p, const lab::Cpu&) {
  const int file = p.stored->file().direct();
  const std::int64_t bytes = p.samples * kFeatures;
  const auto buffer = std::make_shared<HugePages>(bytes);
  return lab::reading_cold(
      p.stored, lab::counted(lab::waiting_ms(), [p, file, bytes, buffer] {
        for (std::int64_t i = 0; i < p.batches; ++i) {
          check(bool(read_fully(file, {buffer->data(), static_cast<std::size_t>(bytes)},
                                p.start[i] * kDirectBytes)),
                "a batch can be read");
          use_batch(p, reinterpret_cast<const std::int8_t*>(buffer->data()),
                    p.out + i * p.samples * kOutputs);
        }
      }));
}

}  // namespace gauntlet::ch05::prefetch_loader::cpu
