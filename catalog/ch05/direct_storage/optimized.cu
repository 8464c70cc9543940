// cuFile has the disk write each part to where it belongs on the device.
#include <cuda_runtime.h>

#include <memory>

#include "catalog/ch05/direct_storage/pair.h"
#include "lab/author/counted.h"
#include "lab/author/stored.h"

namespace gauntlet::ch05::direct_storage::cuda {
namespace {

/// The output, shown to the disk as long as the side lives.
class Pinned {
 public:
  explicit Pinned(const Params& p) : direct_(p.direct), stored_(p.stored), out_(p.out) {
    const auto pinned = file().pin(out_, p.parts * p.part_bytes);
    if (!pinned) fail(pinned.error().message);
  }
  ~Pinned() { file().unpin(out_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

  DirectFile& file() const { return direct_->of(*stored_); }

 private:
  std::shared_ptr<SharedDirectFile> direct_;
  std::shared_ptr<StoredWords> stored_;
  void* out_;
};

}  // namespace

lab::Side optimized(const Params& p, const lab::Cuda&) {
  const auto pinned = std::make_shared<Pinned>(p);
  lab::Side side = lab::counted(lab::copied_bytes(), [p, pinned] {
    for (std::int64_t i = 0; i < p.parts; ++i) {
      const auto read = pinned->file().read({.memory = p.out,
                                             .at = i * p.part_bytes,
                                             .bytes = p.part_bytes,
                                             .offset = p.start[i] * kDirectBytes});
      if (!read) fail(read.error().message);
    }
  });
  // cuFile divides large reads among threads of its own.
  side.helpers = lab::Helpers::threads;
  return lab::reading_cold(p.stored, std::move(side));
}

}  // namespace gauntlet::ch05::direct_storage::cuda
