// One step on the device, from ids to chosen tokens, as a sequence of launches that depends on the
// step's shape alone.
#pragma once
#include "engine/cuda/buffers.h"
#include "engine/cuda/device_model.h"
#include "engine/cuda/kv_memory.h"
#include "engine/cuda/products.h"
#include "engine/cuda/step.h"
#include "engine/steps/rank_sum.h"
#include "kernels/cuda/routing/router.h"

namespace gauntlet::engine::cuda {

/// A step on the device.
struct DeviceStep {
  const StepShape& shape;
  StepPointers inputs;
  const kernels::cuda::RowChoice* late = nullptr;  // what late ids are places of
  kernels::cuda::RowChoice* choices = nullptr;     // [logit_rows]; may be the same memory
};

class Forward {
 public:
  struct Extras {
    RankSum* rank_sum = nullptr;     // null: the model is whole
    std::vector<int> export_layers;  // whose residuals go to a buffer
    std::int64_t first_logit = 0;    // where the vocabulary is divided: of this rank's part
  };
  Forward(const DeviceModel& model, const CudaPlan& plan, const Buffers& buffers,
          const BufferSizes& sizes, const KvMemory& kv, Extras extras);

  /// Launches everything; choices are set when the stream has come that far. With more rows than
  /// kLogitRows, the logits of the last kLogitRows at most remain.
  void run(const DeviceStep& work, cudaStream_t stream, LayerProbe* probe = nullptr);

  /// Scratch that the attention of such steps needs.
  static std::int64_t attention_bytes(const model::ModelConfig& config, const CudaPlan& plan,
                                      std::int64_t sequences, std::int64_t max_context);

 private:
  bool is_fused() const { return plan_.fusion == Fusion::fused; }
  bool is_whole() const { return extras_.rank_sum == nullptr; }
  /// What a layer leaves to be added to the residual by the norm after it.
  struct Addend {
    const float* rows = nullptr;  // [tokens * per_token, hidden]; null: nothing
    int per_token = 0;
  };
  Addend left_to_add(std::int64_t layers_before) const;
  bool exports(std::int64_t layer) const;
  /// Where the residual after it goes, which the next norm reads whole; null: nowhere.
  float* exported(std::int64_t layer) const;
  /// Adds what the last layer left, where its residual is exported: the last norm is of some rows.
  void settle(const Step& step);
  /// Rows that went to `projected` are this rank's part: from here on they are the sum.
  void add_up(const Step& step, SumOf of);
  void add_projected(const Step& step);
  void layer(const Step& step, std::size_t index);
  void attention(const Step& step, std::size_t index);
  void rotate_and_store(const Step& step, std::size_t index,
                        const kernels::cuda::AttentionBatch& batch);
  void experts(const Step& step, std::size_t index);
  /// From x to normed, chosen experts and their slots.
  void route(const Step& step, std::size_t index);
  void route_op_by_op(const Step& step, const kernels::cuda::Router& router);
  void logits(const Step& step);
  bool divides_vocabulary() const { return model_.lm_head.rows() < model_.config.vocab; }
  void show_routing(const Step& step, std::size_t index) const;
  void show_layer(const Step& step, std::size_t index) const;
  std::int32_t* first_slot(std::size_t index) const {
    return buffers_.first_slot + static_cast<std::int64_t>(index) * (model_.config.num_experts + 1);
  }

  const DeviceModel& model_;
  const CudaPlan& plan_;
  const Buffers& buffers_;
  const KvMemory& kv_;
  const Extras extras_;
  const std::int64_t num_tokens_;  // that buffers have room for
  Products products_;
};

}  // namespace gauntlet::engine::cuda
