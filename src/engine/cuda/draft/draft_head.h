// An EAGLE-3 head on a GPU: its weights, the keys and values of what it has seen, and the launches
// that bring it up to a text's last token and guess on from there, a graph for each shape.
#pragma once
#include <cuda_bf16.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/cuda/memory.h"
#include "core/cuda/stream_place.h"
#include "engine/cuda/graphs.h"
#include "engine/steps/device_seam.h"
#include "kernels/cuda/attention/kv_cache.h"
#include "kernels/cuda/product/prefill_product.h"
#include "kernels/cuda/rows/draft_rows.h"
#include "kernels/cuda/sampling/sample.h"
#include "model/eagle_head.h"

namespace gauntlet::engine::cuda::inline draft {

/// Rows of one launch: positions that texts are brought up by, or texts that are guessed for.
inline constexpr int kMostHeadRows = 256;
inline constexpr int kMostGuesses = 31;
/// Positions of all texts together whose residuals wait on the device until they are read.
inline constexpr int kKeptRows = 1024;

/// One position of a text: what the target left at it, the token after it.
struct HeadRow {
  const std::uint16_t* residuals = nullptr;  // [features], bf16, joined; null: keep() has them
  int slot = -1;                             // there
  std::int32_t token = 0;
  std::int32_t position = 0;  // in the head's cache, whose first is 0
  int text = 0;               // of the launch
};

/// A text of a launch. Its pages reach to the last guess.
struct HeadText {
  std::span<const std::int32_t> pages;
  int last_row = 0;  // that of its last known position
};

class DraftHead {
 public:
  struct Config {
    int device = 0;
    std::int64_t num_pages = 0;  // of keys and values, 64 positions each, for all texts together
    std::int64_t longest = 0;    // positions of one text
    Graphs graphs = Graphs::on;
    DeviceSeam seam = {};  // of the target; without one, the head has a stream of its own
  };
  /// `embedding` is the target's, where the head has none of its own.
  DraftHead(const model::EagleHead& head, const model::Matrix& embedding, const Config& config);
  ~DraftHead();

  static Expected<void> check_shape(const model::EagleHeadConfig& config);
  static std::int64_t bytes_for(const model::EagleHeadConfig& head, const Config& config);

  const model::EagleHeadConfig& config() const { return head_.config; }
  /// What comes before the projection, where the head has a norm there.
  void norm_residuals(std::span<float> row) const;
  /// Puts rows in the cache, with nothing to guess from.
  void see(std::span<const HeadRow> rows, std::span<const HeadText> texts);
  /// With a seam: residuals that the target's last step left there, to rows that wait for see(),
  /// guess() or ask().
  void keep(std::span<const kernels::cuda::JoinResiduals::Row> rows);
  /// The same as see(), and then `count` guesses for each text, [count, texts], as the target's
  /// ids.
  std::vector<std::int32_t> guess(std::span<const HeadRow> rows, std::span<const HeadText> texts,
                                  int count);
  /// The same, but nobody waits: guess g of text t lies in place g * stride + t of the seam when
  /// the stream has come that far. Returns the stride.
  std::int64_t ask(std::span<const HeadRow> rows, std::span<const HeadText> texts, int count);
  /// What lies there, when it has, and how long it took since ask() returned.
  std::int32_t answered(std::int64_t place) const;
  double answer_s() const { return std::max(0.0, ended_.us_since(began_) * 1e-6 - asking_s_); }
  /// The logits that the last guesses came of, [texts, draft_vocab].
  std::vector<float> last_logits(int texts) const;

 private:
  /// Column parts of one matrix: the products of few tokens hold a row's inputs in shared memory.
  struct Part {
    kernels::cuda::FragmentMatrix weights;
    std::int64_t first_col = 0;
    kernels::cuda::PrefillInput tiles;
  };
  struct Weights {
    std::vector<Part> parts;
    const __nv_bfloat16* x = nullptr;
    std::int64_t x_stride = 0;
    std::int64_t rows() const { return parts[0].weights.rows; }
  };
  struct Inputs;  // of a launch, on the host or on the device

  class Layout;
  class Loader;
  Inputs inputs_at(std::uint8_t* base, const StepShape& shape) const;
  /// Rows of the embedding, as bf16.
  void embeddings_of(std::span<const std::int32_t> rows, std::uint16_t* out) const;
  void upload(std::span<const HeadRow> rows, std::span<const HeadText> texts,
              const StepShape& shape);
  void start(const StepShape& shape);
  /// The graphs of one text's usual steps: captured when it first comes, a shape takes the time of
  /// many tokens, and whoever measures whether guessing pays would believe that.
  void capture_ahead();
  void compute(const StepShape& shape, cudaStream_t stream);
  enum class RowsOf { texts_apart, any_text };
  /// What a position's features come together with: the embedding of the token after it.
  struct Tokens {
    const __nv_bfloat16* table = nullptr;
    const std::int32_t* ids = nullptr;
    const kernels::cuda::RowChoice* late = nullptr;
  };
  /// One position of each row: features come in and go out. Returns where they went.
  float* layer(const Tokens& tokens, float* features, RowsOf rows_of,
               const kernels::cuda::AttentionBatch& batch, cudaStream_t stream);
  void attend(RowsOf rows_of, const kernels::cuda::AttentionBatch& batch,
              const kernels::cuda::Launch& how);
  /// From these rows of features, all in order where there are none, which are kept as `last_`.
  void choose(float* features, const std::int32_t* rows, int count, kernels::cuda::RowChoice* out,
              cudaStream_t stream);
  void multiply(const Weights& weights, int rows, kernels::cuda::Epilogue epilogue, float* out,
                const kernels::cuda::Launch& how) const;

  void wait() const { cuda_check(cudaStreamSynchronize(stream_)); }

  const model::EagleHead head_;
  const model::Matrix embedding_;
  const Config config_;
  const int num_sms_;
  const std::unique_ptr<CudaStream> own_stream_;
  cudaStream_t stream_;  // that, or the target's
  DeviceMemory memory_;
  PinnedMemory host_inputs_, host_guesses_;
  StreamPlace uploaded_;  // the last inputs have left the host's memory
  CudaEvent began_{CudaEvent::Clock::runs}, ended_{CudaEvent::Clock::runs};
  double asking_s_ = 0;  // of the host, since `began_`: to capture and to launch

  Weights fc_, qkv_, o_, gate_up_, down_, lm_head_;
  const float *input_norm_ = nullptr, *hidden_norm_ = nullptr, *mlp_norm_ = nullptr,
              *final_norm_ = nullptr, *sinks_ = nullptr, *fc_norm_ = nullptr;
  const float2* rope_ = nullptr;
  const __nv_bfloat16* draft_embedding_ = nullptr;   // [draft_vocab, hidden]
  const __nv_bfloat16* target_embedding_ = nullptr;  // the target's; null: rows come along
  const std::int32_t* target_ids_ = nullptr;         // [draft_vocab]
  const std::int32_t *ascending_ = nullptr, *late_ = nullptr;  // 0, 1, ..; -1, -2, ..
  kernels::cuda::KvCache cache_;

  std::uint8_t* inputs_ = nullptr;
  __nv_bfloat16* kept_ = nullptr;  // [kKeptRows, stride(features)]
  __nv_bfloat16 *joined_ = nullptr, *normed_ = nullptr, *attended_ = nullptr, *activated_ = nullptr,
                *final_ = nullptr, *q_ = nullptr;
  float *features_ = nullptr, *plain_ = nullptr, *last_ = nullptr, *qkv_out_ = nullptr,
        *gate_up_out_ = nullptr, *logits_ = nullptr;
  kernels::cuda::RowChoice* choices_ = nullptr;  // [guesses, texts]
  std::uint8_t* partials_ = nullptr;
  std::uint32_t* arrived_ = nullptr;
  GraphCache graphs_;
};

}  // namespace gauntlet::engine::cuda::inline draft
