// Guesses by an EAGLE-3 head: one layer that goes on from the residuals of its target, and then
// from its own.
#pragma once
#include <memory>
#include <unordered_map>

#include "core/host_array.h"
#include "engine/speculation/drafter.h"
#include "kernels/cpu/path_pages.h"
#include "model/eagle_head.h"

namespace gauntlet::engine::inline speculation {

/// A head's weights in the layout of the CPU kernels, and its arithmetic in float32.
class EagleLayer {
 public:
  /// Where a request stands: keys and values of the positions that it was shown.
  struct Cache {
    std::vector<float> keys;  // [pages, kv_heads, head_dim, 16]
    std::vector<float> values;
    std::int64_t first = 0;   // position, had none been left out since
    std::int64_t length = 0;  // positions it has
  };

  /// `embedding` is the target's; both files' bytes are kept.
  EagleLayer(const model::EagleHead& head, const model::Matrix& embedding,
             std::shared_ptr<model::WeightStorage> storage, kernels::cpu::SimdLevel simd);

  const model::EagleHeadConfig& config() const { return config_; }
  /// The target's residuals of tokens, [boundaries, tokens, hidden], from token `first` on as what
  /// the layer takes them for, [tokens - first, hidden].
  void fuse(std::span<const float> residuals, std::int64_t first, float* features) const;
  /// One position of each token: the token after it, and its feature. What comes out are features,
  /// too, [count, hidden].
  void run(Cache& cache, std::span<const std::int32_t> tokens, const float* features,
           float* out) const;
  /// The same of tokens at the ends of branches, each of which sees the first `known` positions of
  /// the cache and its own path: places in the cache behind those, which ascend. All are one deeper
  /// than their paths.
  void run_branches(Cache& cache, std::int64_t known, std::span<const std::int32_t> tokens,
                    std::span<const std::vector<std::int32_t>> paths, const float* features,
                    float* out) const;
  /// Of the draft vocabulary, after a feature that came out.
  std::vector<float> logits(const float* feature) const;
  /// The same after several features, [count, hidden].
  std::vector<std::vector<float>> logits(const float* features, std::int64_t count) const;
  std::int32_t target_id(std::int64_t draft_id) const { return head_.target_ids[draft_id]; }
  const kernels::cpu::KernelTable& kernels() const { return kernels_; }

 private:
  struct Packed {
    HostArray<std::uint8_t> memory;
    kernels::cpu::PackedMatrix matrix;
  };
  static Packed pack(const model::Matrix& matrix);
  void product(const Packed& weights, const float* x, std::int64_t count, float* out,
               kernels::cpu::Output output = kernels::cpu::Output::store,
               std::int64_t out_stride = 0) const;
  void norm(const float* x, const model::Vector& weight, float* out) const;
  /// A token's queries to what they attend to; its keys and values join the cache. `path`: places
  /// of what it sees of a tree, its own last; none where all of the cache comes before it.
  void attend(Cache& cache, const kernels::cpu::TreePath& path, float* q, float* k, const float* v,
              float* out) const;
  void rotate(float* heads, std::int64_t num_heads, std::int64_t position) const;

  model::EagleHead head_;
  const model::EagleHeadConfig config_;
  model::Matrix embedding_;
  std::shared_ptr<model::WeightStorage> storage_;
  const kernels::cpu::KernelTable& kernels_;
  Packed fc_, q_, k_, v_, o_, gate_, up_, down_, lm_head_;
};

class EagleDrafter final : public Drafter {
 public:
  explicit EagleDrafter(std::shared_ptr<const EagleLayer> layer) : layer_(std::move(layer)) {}
  std::string_view name() const override { return "eagle3"; }
  bool fans_out() const override { return true; }
  std::vector<int> residuals_after() const override { return layer_->config().export_layers(); }
  void computed(std::span<const ComputedTokens> tokens) override;
  std::vector<Draft> propose(std::span<const DraftWish> wishes) override;
  void end(std::int64_t id) override { requests_.erase(id); }

 private:
  struct Request {
    EagleLayer::Cache cache;
    std::vector<float> features;  // of positions behind the cache's, [.., hidden]
  };
  /// Brings the cache up to all positions whose next token is known; the last one's feature comes
  /// out, or nothing where residuals are missing.
  std::vector<float> catch_up(Request& request, std::span<const std::int32_t> tokens);

  /// The likeliest guesses, by the head's own probabilities of their paths, that go on from a
  /// feature.
  Draft tree(EagleLayer::Cache& cache, const DraftWish& wish, std::vector<float> feature) const;

  std::shared_ptr<const EagleLayer> layer_;
  std::unordered_map<std::int64_t, Request> requests_;
};

}  // namespace gauntlet::engine::inline speculation
