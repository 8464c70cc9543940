#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "core/check.h"
#include "engine/cuda/decode_shapes.h"
#include "engine/cuda/forward.h"
#include "engine/cuda/graphs.h"
#include "engine/cuda/sizing.h"
#include "engine/cuda_executor.h"

namespace gauntlet::engine {
namespace {

using kernels::cuda::kPageTokens;
using kernels::cuda::RowChoice;

/// A token whose logits somebody wants.
struct LogitRow {
  std::size_t item;
  std::int64_t target;  // index into the item's targets; -1: none
  bool last;            // the item's result comes from this row
};

/// Items that run together, and the rows wanted of them.
struct Part {
  std::vector<std::size_t> items;
  StepShape shape;
  int real_tokens = 0;
  std::vector<LogitRow> rows;
};

class CudaExecutor final : public Executor {
 public:
  CudaExecutor(Plan plan, DeviceModel model, const KvPoolConfig& pool, const BufferSizes& sizes,
               std::span<const StepShape> largest)
      : plan_(std::move(plan)),
        model_(std::move(model)),
        pool_(pool),
        kv_(model_.config, pool, plan_.cuda->kv),
        sizes_(sizes),
        buffers_(model_.config, sizes),
        inputs_(largest, variants().host_memory),
        choices_(sizes.tokens * static_cast<std::int64_t>(sizeof(RowChoice)),
                 variants().host_memory),
        slots_(slot_bytes(), variants().host_memory),
        expert_tokens_(
            static_cast<std::size_t>(model_.config.num_layers * model_.config.num_experts)),
        forward_(model_, *plan_.cuda, buffers_, sizes, kv_) {
    cuda_check(cudaDeviceSynchronize());
    if (variants().graphs == Graphs::on) capture_ahead();
  }

  const model::ModelConfig& config() const override { return model_.config; }
  const Plan& plan() const override { return plan_; }
  KvPool& kv() override { return pool_; }
  std::int64_t max_batch_tokens() const override { return sizes_.tokens; }
  std::int64_t weight_bytes() const override { return model_.memory.bytes(); }
  StepTraffic last_traffic() const override;
  std::span<const std::int64_t> expert_tokens() const override { return expert_tokens_; }
  void watch(LayerProbe* probe) override { probe_ = probe; }

  Ticket submit(std::vector<BatchItem> items) override {
    check(!pending_, "a step was submitted before the last one was collected");
    pending_ = std::move(items);
    try {
      begin();
    } catch (...) {
      pending_.reset();  // a faulty step is not under way: the next one can come
      throw;
    }
    return ++ticket_;
  }

  std::vector<ItemResult> collect(Ticket ticket) override {
    check(pending_ && ticket == ticket_, "no such step to collect");
    finish(parts_.back());
    for (const BatchItem& item : *pending_) pool_.commit(item.sequence, std::ssize(item.tokens));
    pending_.reset();
    return std::move(results_);
  }

 private:
  const CudaOptions& variants() const { return plan_.cuda->variants; }
  DecodeLimits decode_limits() const {
    return {.sequences = static_cast<int>(sizes_.sequences),
            .pages = static_cast<int>(pages_of(model_.config.max_positions))};
  }
  std::int64_t slot_bytes() const {
    return model_.config.num_layers * (model_.config.num_experts + 1) *
           static_cast<std::int64_t>(sizeof(std::int32_t));
  }
  /// Starts the pending step. All parts but the last are waited for: they share buffers with the
  /// next.
  void begin() {
    kv_.copy(pool_.take_copies(), stream_);
    parts_ = cut(*pending_);
    results_.assign(pending_->size(), {});
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      start(parts_[p]);
      if (p + 1 < parts_.size()) finish(parts_[p]);
    }
  }
  std::vector<Part> cut(const std::vector<BatchItem>& items) const;
  void describe(Part& part) const;
  void fill(const Part& part);
  void start(const Part& part);
  void finish(const Part& part);
  /// Decode steps as the pool can hold them, while there is room for their graphs.
  void capture_ahead();
  /// What a graph holds: a whole step. Copies from and to pageable memory stay outside of it.
  void launch(const StepShape& shape, cudaStream_t stream);
  void bring_results(const StepShape& shape, cudaStream_t stream);
  void count_experts();

  const Plan plan_;
  CudaStream stream_;
  DeviceModel model_;
  KvPool pool_;
  KvMemory kv_;
  BufferSizes sizes_;
  Buffers buffers_;
  StepInputs inputs_;
  HostBuffer choices_;
  HostBuffer slots_;                         // a copy of the step's first_slot
  std::vector<std::int64_t> expert_tokens_;  // [layers, experts]: of all steps
  Forward forward_;
  GraphCache graphs_;
  LayerProbe* probe_ = nullptr;
  std::optional<std::vector<BatchItem>> pending_;
  std::vector<Part> parts_;
  std::vector<ItemResult> results_;
  StepShape last_shape_;
  std::int64_t last_kv_bytes_ = 0;
  Ticket ticket_ = 0;
};

/// One part; where bits must not depend on the batch, single tokens and prompts apart.
std::vector<Part> CudaExecutor::cut(const std::vector<BatchItem>& items) const {
  std::vector<Part> parts(1);
  const bool apart = variants().determinism == Determinism::per_request;
  for (std::size_t i = 0; i < items.size(); ++i) {
    check(!items[i].tokens.empty(), "a batch item has no tokens");
    check(items[i].targets.empty() || items[i].targets.size() == items[i].tokens.size(),
          "a batch item has as many targets as tokens, or none");
    const bool prompt = items[i].tokens.size() > 1;
    if (apart && prompt && parts.size() < 2) parts.emplace_back();
    parts[apart && prompt ? 1 : 0].items.push_back(i);
  }
  std::erase_if(parts, [](const Part& part) { return part.items.empty(); });
  check(!parts.empty(), "a step has no items");
  for (Part& part : parts) describe(part);
  return parts;
}

void CudaExecutor::describe(Part& part) const {
  StepShape& shape = part.shape;
  int pages = 1;
  for (const std::size_t i : part.items) {
    const BatchItem& item = (*pending_)[i];
    const auto count = static_cast<int>(item.tokens.size());
    const std::int64_t end = pool_.length(item.sequence) + count;
    check(end <= std::ssize(pool_.table(item.sequence, KvGroup::full)) * kPageTokens,
          "a batch item's positions were not reserved");
    pages = std::max(pages, static_cast<int>(pages_of(end)));
    shape.max_query = std::max(shape.max_query, count);
    shape.greedy = shape.greedy && item.sampling.temperature == 0 && item.allowed.empty();
    shape.targets = shape.targets || !item.targets.empty();
    if (!item.allowed.empty()) {
      shape.mask_words = static_cast<int>((model_.config.vocab + 31) / 32);
    }
    for (int t = 0; t < count; ++t) {
      const bool scored = !item.targets.empty();
      const bool ends = t == count - 1 && item.want != Want::nothing;
      if (scored || ends) part.rows.push_back({i, scored ? t : -1, ends});
    }
    part.real_tokens += count;
  }
  shape.tokens = part.real_tokens;
  shape.sequences = static_cast<int>(part.items.size());
  shape.logit_rows = static_cast<int>(part.rows.size());
  shape.table_stride = pages;
  check(shape.tokens <= sizes_.tokens && shape.sequences <= sizes_.sequences,
        "a step has more tokens or sequences than the executor was made for");
  if (shape.max_query > 1) return;
  shape.table_stride = padded_table(pages, decode_limits());
  if (shape.logit_rows == shape.tokens) {
    shape.tokens = padded_batch(shape.tokens, decode_limits());
    shape.sequences = shape.logit_rows = shape.tokens;
  }
}

void CudaExecutor::fill(const Part& part) {
  const StepShape& shape = part.shape;
  const StepPointers at = inputs_.on_host(shape);
  int token = 0, row = 0;
  *at.real_tokens = part.real_tokens;
  last_kv_bytes_ = 0;
  const std::int64_t position_bytes = KvMemory::position_bytes(model_.config, plan_.cuda->kv);
  for (int s = 0; s < shape.sequences; ++s) {
    const bool real = s < static_cast<int>(part.items.size());
    const BatchItem* item = real ? &(*pending_)[part.items[static_cast<std::size_t>(s)]] : nullptr;
    at.first_token[s] = token;
    at.context[s] = real ? static_cast<std::int32_t>(pool_.length(item->sequence)) : 0;
    const int count = real ? static_cast<int>(item->tokens.size()) : 1;
    for (const KvGroup group : {KvGroup::full, KvGroup::sliding}) {
      std::int32_t* table = at.tables[static_cast<int>(group)] + s * shape.table_stride;
      std::fill(table, table + shape.table_stride, real ? kNoPage : kv_.padding_page(group));
      if (!real) continue;
      const auto pages = pool_.table(item->sequence, group);
      std::copy_n(pages.begin(), std::min<std::size_t>(pages.size(), shape.table_stride), table);
    }
    for (int t = 0; t < count; ++t, ++token) {
      const std::int32_t id = real ? item->tokens[static_cast<std::size_t>(t)] : 0;
      check(id >= 0 && id < model_.config.vocab, "a token id is outside the vocabulary");
      at.ids[token] = id;
      at.token_sequence[token] = s;
      const bool wanted =
          !real || !item->targets.empty() || (t == count - 1 && item->want != Want::nothing);
      if (!wanted) continue;
      at.logit_rows[row] = token;
      at.targets[row] =
          real && !item->targets.empty() ? item->targets[static_cast<std::size_t>(t)] : -1;
      at.params[row] = {};
      if (real && item->sampling.temperature > 0) {
        at.params[row] = {.temperature = item->sampling.temperature,
                          .top_p = item->sampling.top_p,
                          .min_p = item->sampling.min_p,
                          .top_k = item->sampling.top_k,
                          .point = draw_point(item->sampling)};
      }
      if (shape.mask_words > 0) {
        std::uint32_t* mask = at.allowed + std::int64_t{row} * shape.mask_words;
        if (real && !item->allowed.empty()) {
          check(std::ssize(item->allowed) >= shape.mask_words, "a mask has a bit per logit");
          std::copy_n(item->allowed.begin(), shape.mask_words, mask);
        } else {
          std::fill(mask, mask + shape.mask_words, ~0u);
        }
      }
      ++row;
    }
    if (!real) continue;
    const std::int64_t end = at.context[s] + count;
    for (std::size_t l = 0; l < model_.layers.size(); ++l) {
      const std::int64_t seen =
          kv_.group_of(l) == KvGroup::sliding
              ? std::min<std::int64_t>(end, model_.config.sliding_window + count - 1)
              : end;
      last_kv_bytes_ += seen * position_bytes;
    }
  }
  at.first_token[shape.sequences] = token;
}

void CudaExecutor::capture_ahead() {
  const auto longest = static_cast<int>(pages_of(pool_.config().longest()));
  for (const StepShape& shape : decode_shapes(decode_limits())) {
    if (shape.table_stride > padded_table(longest, decode_limits())) break;
    const auto work = [&](cudaStream_t stream) { launch(shape, stream); };
    if (!graphs_.prepare(shape, stream_, work)) break;
  }
  stream_.wait();
}

void CudaExecutor::launch(const StepShape& shape, cudaStream_t stream) {
  const bool pinned = variants().host_memory == HostMemory::pinned;
  if (pinned) inputs_.upload(shape, stream);
  forward_.run(shape, inputs_.on_device(shape), stream, probe_);
  if (pinned) bring_results(shape, stream);
}

void CudaExecutor::bring_results(const StepShape& shape, cudaStream_t stream) {
  cuda_check(cudaMemcpyAsync(slots_.data(), buffers_.first_slot,
                             static_cast<std::size_t>(slot_bytes()), cudaMemcpyDeviceToHost,
                             stream));
  if (shape.logit_rows == 0) return;
  cuda_check(cudaMemcpyAsync(choices_.data(), buffers_.choices,
                             static_cast<std::size_t>(shape.logit_rows) * sizeof(RowChoice),
                             cudaMemcpyDeviceToHost, stream));
}

void CudaExecutor::start(const Part& part) {
  fill(part);
  const StepShape& shape = part.shape;
  last_shape_ = shape;
  const bool pageable = variants().host_memory == HostMemory::pageable;
  if (pageable) inputs_.upload(shape, stream_);
  if (variants().graphs == Graphs::on && shape.max_query == 1 && probe_ == nullptr) {
    graphs_.launch(shape, stream_, [&](cudaStream_t stream) { launch(shape, stream); });
  } else {
    launch(shape, stream_);
  }
  if (pageable) bring_results(shape, stream_);
}

void CudaExecutor::finish(const Part& part) {
  stream_.wait();
  const auto* choices = reinterpret_cast<const RowChoice*>(choices_.data());
  for (std::size_t r = 0; r < part.rows.size(); ++r) {
    const LogitRow& row = part.rows[r];
    ItemResult& result = results_[row.item];
    if (row.target >= 0) {
      result.target_log_probs.resize((*pending_)[row.item].targets.size());
      result.target_log_probs[static_cast<std::size_t>(row.target)] =
          choices[r].target_log_probability;
    }
    if (!row.last) continue;
    result.token = choices[r].token;
    result.log_probability = choices[r].log_probability;
    if ((*pending_)[row.item].want != Want::logits) continue;
    // The last piece of rows is what is left in the buffer.
    const std::size_t first = (part.rows.size() - 1) / kLogitRows * kLogitRows;
    check(r >= first, "logits of too many rows are wanted at once");
    const auto vocab = static_cast<std::size_t>(model_.config.vocab);
    result.logits.resize(vocab);
    cuda_check(cudaMemcpyAsync(result.logits.data(), buffers_.logits + (r - first) * vocab,
                               vocab * sizeof(float), cudaMemcpyDeviceToHost, stream_));
  }
  stream_.wait();
  count_experts();
}

void CudaExecutor::count_experts() {
  const auto num_experts = static_cast<std::size_t>(model_.config.num_experts);
  const auto* first = reinterpret_cast<const std::int32_t*>(slots_.data());
  for (std::size_t i = 0; i < expert_tokens_.size(); ++i) {
    const std::size_t at = i / num_experts * (num_experts + 1) + i % num_experts;
    expert_tokens_[i] += first[at + 1] - first[at];
  }
}

StepTraffic CudaExecutor::last_traffic() const {
  const model::ModelConfig& config = model_.config;
  const std::int64_t per_layer = config.num_experts + 1;
  const auto* first = reinterpret_cast<const std::int32_t*>(slots_.data());
  StepTraffic traffic{.kv_bytes = last_kv_bytes_};
  for (std::size_t l = 0; l < model_.layers.size(); ++l) {
    const DeviceLayer& layer = model_.layers[l];
    traffic.dense_bytes +=
        layer.qkv.bytes() + layer.o.bytes() + 2 * config.num_experts * config.hidden;
    for (std::int64_t e = 0; e < config.num_experts; ++e) {
      const std::int64_t at = static_cast<std::int64_t>(l) * per_layer + e;
      if (first[at + 1] > first[at]) {
        traffic.expert_bytes += layer.gate_up.bytes() + layer.down.bytes();
        ++traffic.active_experts;
      }
    }
  }
  if (last_shape_.logit_rows > 0) traffic.dense_bytes += model_.lm_head.bytes();
  return traffic;
}

}  // namespace

Expected<std::unique_ptr<Executor>> make_cuda_executor(const model::ModelWeights& weights,
                                                       const CudaExecutorConfig& config) {
  const auto sizing = size_cuda_executor(weights, config);
  if (!sizing) return sizing.error();
  const model::ModelConfig& shape = weights.config;
  const StepShape largest{.tokens = static_cast<int>(sizing->buffers.tokens),
                          .sequences = static_cast<int>(sizing->buffers.sequences),
                          .table_stride = static_cast<int>(pages_of(shape.max_positions)),
                          .logit_rows = static_cast<int>(sizing->buffers.tokens)};
  StepShape masked = largest;
  masked.logit_rows = masked.sequences;
  masked.mask_words = static_cast<int>((shape.vocab + 31) / 32);
  Plan plan{
      .expert_weights = sizing->plan.expert_weights, .kv = sizing->plan.kv, .cuda = sizing->plan};
  DeviceModel model = load_device_model(weights, sizing->plan, config.progress);
  return std::unique_ptr<Executor>(std::make_unique<CudaExecutor>(std::move(plan), std::move(model),
                                                                  sizing->pool, sizing->buffers,
                                                                  std::array{largest, masked}));
}

}  // namespace gauntlet::engine
