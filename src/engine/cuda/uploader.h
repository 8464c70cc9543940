// Brings a model's matrices to the device: rows are read into a ring of pinned memory, copied, and
// put in their order there, each while the next is read.
#pragma once
#include <array>
#include <functional>
#include <vector>

#include "core/cuda/memory.h"
#include "kernels/cuda/product/pack.h"
#include "kernels/cuda/product/plain_matrix.h"
#include "model/weights.h"

namespace gauntlet::engine::cuda {

class Uploader {
 public:
  /// `all_bytes`: of the model on the device, for progress.
  Uploader(const model::ModelWeights& weights, std::int64_t all_bytes,
           std::function<void(double)> progress);

  void numbers(const std::vector<float>& values, float* to);
  /// The sources joined into one matrix.
  using Sources = std::vector<const model::Matrix*>;
  void fragments(const Sources& sources, kernels::cuda::RowOrder order,
                 const kernels::cuda::FragmentMatrix& shape, std::uint8_t* to);
  void plain(const Sources& sources, const kernels::cuda::PlainMatrix& shape, std::uint8_t* to,
             std::uint8_t* scales_to);
  /// Waits for everything.
  void finish();

 private:
  struct Slot {
    PinnedMemory host;
    DeviceMemory device;
    CudaEvent free;
    bool used = false;
  };
  static constexpr int kSlots = 3;

  Slot& next_slot();
  /// Copies rows [first, first + count) into a slot at `offset`; returns what they are to a kernel.
  kernels::cuda::RowSource stage(const model::Matrix& from, std::int64_t first, std::int64_t count,
                                 Slot& slot, std::int64_t& offset);
  void send(Slot& slot, std::int64_t bytes);
  void done(std::int64_t bytes);
  /// Calls `put` with rows of the sources that are under way to the device: all of several, or
  /// whole blocks of rows of one. `put` launches what makes `rows` of them, from row `first` on.
  using Put = std::function<void(kernels::cuda::Pack& work, std::int64_t first, std::int64_t rows)>;
  void in_pieces(const Sources& sources, const Put& put);

  const model::ModelWeights& weights_;
  std::int64_t all_bytes_;
  std::function<void(double)> progress_;
  CudaStream stream_;
  std::array<Slot, kSlots> slots_;
  std::size_t turn_ = 0;
  std::int64_t done_bytes_ = 0;
};

}  // namespace gauntlet::engine::cuda
