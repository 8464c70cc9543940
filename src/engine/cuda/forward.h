// One step on the device, from ids to chosen tokens, as a sequence of launches that depends on the
// step's shape alone.
#pragma once
#include "engine/cuda/buffers.h"
#include "engine/cuda/device_model.h"
#include "engine/cuda/kv_memory.h"
#include "engine/cuda/step_inputs.h"
#include "engine/layer_probe.h"
#include "kernels/cuda/launch_how.h"
#include "kernels/cuda/product.h"
#include "kernels/cuda/wide_product.h"

namespace gauntlet::engine {

class Forward {
 public:
  Forward(const DeviceModel& model, const CudaPlan& plan, const Buffers& buffers,
          const BufferSizes& sizes, const KvMemory& kv);

  /// Launches everything; choices[0 .. logit_rows) are set when the stream has come that far. With
  /// more rows than kLogitRows, the logits of the last kLogitRows at most remain.
  void run(const StepShape& shape, const StepPointers& inputs, cudaStream_t stream,
           LayerProbe* probe = nullptr);

  /// Scratch that the attention of such steps needs.
  static std::int64_t attention_bytes(const model::ModelConfig& config, const CudaPlan& plan,
                                      std::int64_t sequences, std::int64_t max_context);

 private:
  struct Step {
    const StepShape& shape;
    const StepPointers& inputs;
    kernels::cuda::Launch how;
    LayerProbe* probe = nullptr;  // null: nobody watches, nothing waits
  };

  void layer(const Step& step, std::size_t index);
  void attention(const Step& step, std::size_t index);
  void experts(const Step& step, std::size_t index);
  void logits(const Step& step);
  void show_routing(const Step& step, std::size_t index) const;
  void show_layer(const Step& step, std::size_t index) const;
  /// `input` describes product.x to the wide kernel.
  void product(const Step& step, const kernels::cuda::Product& product,
               const kernels::cuda::WideInput& input);
  bool takes_wide(const Step& step, const kernels::cuda::Product& product) const;

  const DeviceModel& model_;
  const CudaPlan& plan_;
  const Buffers& buffers_;
  const KvMemory& kv_;
  bool wide_ = false;
  kernels::cuda::WideInput normed_, attended_, permuted_, activated_, final_rows_;
};

}  // namespace gauntlet::engine
