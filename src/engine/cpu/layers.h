// The layers of one step, computed by all workers together, in one of two ways: fused (operations
// meet in registers and caches, few barriers) or op by op (each operation a pass over memory). Both
// round alike, so both give the same bits.
#pragma once
#include <exception>
#include <functional>

#include "engine/cpu/split.h"
#include "engine/cpu/step.h"

namespace gauntlet::engine::cpu {

class Layers {
 public:
  Layers(const Machine& machine, const Step& step, Buffers& buffers, SpinBarrier& barrier)
      : machine_(machine), step_(step), buffers_(buffers), barrier_(barrier) {}

  /// Called by each worker once: from token ids to the last residual.
  void run(int worker);

  /// out [rows, ...] = weights * x, this worker's share of the outputs.
  void share_product(kernels::cpu::Product product, int worker) const;
  kernels::cpu::Precision precision_for(const kernels::cpu::PackedMatrix& matrix) const;

  /// Worker 0 does this while the others wait or go on to a barrier. Once it has thrown, never
  /// again.
  void meet(int worker, const std::function<void()>& call);

  /// What a meeting with other ranks threw: the step is worth nothing; after run().
  std::exception_ptr failure() const { return failure_; }

  /// Weight bytes of the experts that this step used, summed over layers; after run().
  std::int64_t expert_bytes() const { return expert_bytes_; }
  /// Those, over all layers.
  std::int64_t active_experts() const { return active_experts_; }

 private:
  void embed(int worker);
  void fused_layer(std::int64_t layer, int worker);
  void layer_op_by_op(std::int64_t layer, int worker);
  /// Of a rank: outputs are divided and inputs gathered, so that every sum is one rank's own.
  void ordered_layer(std::int64_t layer, int worker);

  /// From a layer's input to what its heads attend to, rounded for the next product. Ends with a
  /// barrier.
  void fused_attention(std::int64_t layer, const Rows& normed, int worker);
  /// As far as what the heads attend to, as it is. Ends with a barrier.
  void attend_together(std::int64_t layer, const Rows& normed, int worker);
  /// The same by one worker for some heads from end to end, so that nobody waits for another.
  void attend_with_own_heads(std::int64_t layer, const Rows& normed, int worker);
  bool have_own_heads() const;
  /// With more tokens it was measured to cost up to 6% (docs/analyze.md).
  bool overlaps() const {
    return machine_.plan.stages == Stages::overlapped && step_.num_tokens() <= kRepeatedTokens;
  }

  /// Rotates queries and keys, and writes keys and values to their pages.
  void place_keys(std::int64_t layer, int worker);
  void place_head(std::int64_t layer, std::int64_t token, std::int64_t head);
  void attend(std::int64_t layer, int worker);
  void attend_rows(std::int64_t layer, const Branch& branch, std::int64_t head,
                   std::int64_t first_row, int num_rows, int worker);

  void fused_experts(const PackedLayer& layer, const Routing& routing, const Rows& normed,
                     int worker);
  void fused_gates(const PackedExpert& expert, const Routing& routing, std::int64_t e,
                   const Rows& normed, int worker);
  /// Where o and down put their outputs: into the residual, or to this rank's part of a sum.
  kernels::cpu::Output output() const {
    return machine_.rank_sum == nullptr ? kernels::cpu::Output::accumulate
                                        : kernels::cpu::Output::store;
  }
  float* sums() {
    return machine_.rank_sum == nullptr ? buffers_.x.data() : buffers_.partial.data();
  }
  /// Experts add to what is there: zeros, in the columns that this worker's products write.
  void clear_partial(int worker);
  /// After a barrier: adds the sum over ranks to the residual. Ends with a barrier, and does
  /// nothing where the model is whole.
  void add_up(SumOf of, int worker);
  /// Gates and ups of the experts that are held, to memory: a row per slot.
  void gate_up_rows(const PackedLayer& layer, const Routing& routing, const Rows& normed,
                    int worker);
  /// out [tokens, hidden] += an expert's rows by their weights, in some columns.
  void add_slots(const Routing& routing, std::int64_t expert, const Share& columns, float* out);
  void route(std::int64_t first, std::int64_t count, const PackedLayer& layer, const Rows& normed,
             float* logits, std::int32_t* chosen, float* weights) const;
  void count_experts(std::int64_t layer, const Routing& routing, int worker);

  std::int64_t experts_per_token() const {
    return step_.experts_per_token > 0 ? step_.experts_per_token
                                       : machine_.model.config.experts_per_token;
  }
  /// What is watched happens once.
  bool repeats() const {
    return step_.num_tokens() <= kRepeatedTokens && machine_.probe == nullptr;
  }
  /// After a layer; nobody writes to the residual before the next barrier.
  void export_residuals(std::int64_t layer, int worker);
  /// Between two barriers.
  void show_routing(std::int64_t layer, int worker);
  float* x(std::int64_t token) { return buffers_.x.data() + token * machine_.model.config.hidden; }

  const Machine& machine_;
  const Step& step_;
  Buffers& buffers_;
  SpinBarrier& barrier_;
  std::int64_t expert_bytes_ = 0;  // written by worker 0 alone
  std::int64_t active_experts_ = 0;
  std::exception_ptr failure_;
};

}  // namespace gauntlet::engine::cpu
