#include "engine/cpu/runner.h"

#include <algorithm>
#include <optional>

#include "core/check.h"
#include "engine/cpu/layers.h"
#include "engine/cpu/screened_head.h"
#include "engine/cpu/split.h"

namespace gauntlet::engine::cpu {
namespace {

/// Rows of logits computed together: enough to reuse each weight, few enough to keep in memory
/// for a vocabulary of 200,000.
constexpr std::int64_t kLogitRows = 32;

class CpuRunner final : public Runner {
 public:
  explicit CpuRunner(RunnerParts parts)
      : plan_(std::move(parts.plan)),
        threads_(std::move(parts.threads)),
        model_(std::move(parts.model)),
        rope_(model_.config),
        store_(model_.config, parts.pool, plan_.kv),
        buffers_(model_.config,
                 {.attended = model_.layers.front().o.cols,
                  .activated = model_.layers.front().held_expert().down.cols},
                 parts.max_tokens, threads_->size()),
        barrier_(threads_->size()),
        machine_{model_, plan_, kernels::cpu::kernels(plan_.simd), rope_, store_, threads_->size()},
        screened_(machine_, barrier_),
        max_tokens_(parts.max_tokens),
        rank_sum_(std::move(parts.rank_sum)),
        parts_(std::move(parts.parts)),
        final_(kLogitRows, model_.config.hidden),
        logits_(static_cast<std::size_t>(kLogitRows * logit_stride())) {
    machine_.rank_sum = rank_sum_.get();
    machine_.parts = parts_.get();
    if (parts_ != nullptr && parts_->is_ordered()) {
      machine_.attended_begin = parts_->slice().heads.begin * model_.config.head_dim;
    }
    machine_.export_layers = std::move(parts.export_layers);
  }

  const model::ModelConfig& config() const override { return model_.config; }
  const Plan& plan() const override { return plan_; }
  StepLimits limits() const override {
    return {.tokens = max_tokens_,
            .items = max_tokens_,
            .vocab = model_.config.vocab,
            .page_tokens = kernels::cpu::kPageTokens,
            .export_layers = std::ssize(machine_.export_layers),
            .experts_per_token = model_.config.experts_per_token,
            .takes_trees = true};
  }
  int most_in_flight() const override { return 1; }
  StepTraffic last_traffic() const override { return traffic_; }
  std::span<const std::int64_t> expert_tokens() const override { return buffers_.expert_tokens; }
  std::span<const float> last_residuals() const override { return buffers_.residuals; }
  std::int64_t weight_bytes() const override {
    return static_cast<std::int64_t>(model_.memory.size());
  }

  void watch(LayerProbe* probe) override { machine_.probe = probe; }

  Ticket start(StepData step) override {
    check(!pending_, "a step was started before the last one was finished");
    pending_ = std::move(step);
    return ++ticket_;
  }

  std::vector<RowResult> finish(Ticket ticket) override {
    check(pending_ && ticket == ticket_, "no such step to finish");
    const StepData data = std::move(*pending_);
    pending_.reset();
    for (const RowMove& move : data.moves) store_.move(move);
    for (const PageCopy& copy : data.copies) store_.copy(copy);
    const Step step(data);
    buffers_.residuals.resize(static_cast<std::size_t>(
        std::ssize(machine_.export_layers) * std::ssize(step.exported) * model_.config.hidden));
    // The last stage of a pipeline alone has logits.
    const bool has_rows = parts_ == nullptr || parts_->is_last_stage();
    const std::span<const StepRow> rows(data.rows.data(), has_rows ? data.rows.size() : 0);
    const HeadKind head = head_for(rows);
    std::vector<RowResult> results(data.rows.size());
    Layers layers(machine_, step, buffers_, barrier_);
    threads_->run([&](int worker) {
      machine_.kernels.begin_work();
      layers.run(worker);
      for (std::size_t first = 0; first < rows.size(); first += kLogitRows) {
        const std::size_t count = std::min<std::size_t>(kLogitRows, rows.size() - first);
        const std::span<const StepRow> some = rows.subspan(first, count);
        normalise(layers, some, head, worker);
        bring_normed(some, {results.data() + first, count}, worker);
        if (screens(head, std::ssize(some))) {
          screened_.run({.rows = final_,
                         .precision = layers.precision_for(model_.lm_head),
                         .num_rows = std::ssize(some),
                         .logits = logits_.data(),
                         .stride = logit_stride()},
                        worker);
        } else {
          logits(layers, some, worker);
          judge(data, some, {results.data() + first, count}, worker);
        }
      }
      machine_.kernels.end_work();
    });
    if (layers.failure()) std::rethrow_exception(layers.failure());
    const bool screened = screens(head, std::ssize(rows));
    for (std::size_t r = 0; screened && r < rows.size(); ++r) {
      results[r].token = screened_.token(static_cast<std::int64_t>(r));
    }
    account(layers, data);
    count_head(std::ssize(rows), screened ? HeadKind::screened : HeadKind::full);
    return results;
  }

 private:
  std::int64_t logit_stride() const {
    constexpr std::int64_t kRows = kernels::cpu::kGroupRows;
    return (model_.config.vocab + kRows - 1) / kRows * kRows;
  }

  /// Screened where nothing but greedy tokens is wanted, and of few sequences.
  HeadKind head_for(std::span<const StepRow> rows) const {
    if (!plan_.screens(std::ssize(rows))) return HeadKind::full;
    const bool greedy = std::ranges::all_of(rows, [](const StepRow& row) {
      return row.want == Want::token && row.target < 0 && row.is_greedy();
    });
    return greedy ? HeadKind::screened : HeadKind::full;
  }

  /// The last norm, and what a screened head needs of it.
  void normalise(const Layers& layers, std::span<const StepRow> rows, HeadKind head, int worker) {
    const auto precision = layers.precision_for(model_.lm_head);
    const std::int64_t hidden = model_.config.hidden;
    const Share share = share_of(std::ssize(rows), 1, worker, threads_->size());
    for (std::int64_t r = share.begin; r < share.end; ++r) {
      machine_.kernels.rms_norm(
          buffers_.x.data() + rows[r].token * hidden, model_.final_norm.data(),
          static_cast<float>(model_.config.rms_epsilon), hidden, final_.row(r));
      final_.round(machine_.kernels, precision, r, 0, final_.stride());
      if (head == HeadKind::screened) screened_.prepare(final_, precision, r);
    }
    barrier_.wait();
  }

  /// The rows that are multiplied next, before the next ones take their place.
  void bring_normed(std::span<const StepRow> rows, std::span<RowResult> results, int worker) {
    for (std::int64_t r = worker; r < std::ssize(rows); r += threads_->size()) {
      if (!rows[r].wants_normed) continue;
      results[r].normed.assign(final_.row(r), final_.row(r) + model_.config.hidden);
    }
  }

  /// Once these rows are normalised.
  bool screens(HeadKind head, std::int64_t rows) const {
    return head == HeadKind::screened && screened_.holds(rows);
  }

  void logits(Layers& layers, std::span<const StepRow> rows, int worker) {
    const std::int64_t first = parts_ == nullptr ? 0 : parts_->slice().vocab.begin;
    layers.share_product({.weights = model_.lm_head,
                          .precision = layers.precision_for(model_.lm_head),
                          .group_end = model_.lm_head.num_groups(),
                          .num_tokens = std::ssize(rows),
                          .x = final_.view(),
                          .out = logits_.data() + first,
                          .out_stride = logit_stride()},
                         worker);
    barrier_.wait();
    if (parts_ == nullptr) return;
    layers.meet(worker, [&] {
      parts_->gather(PartsOf::logits, logits_.data(), std::ssize(rows), logit_stride());
    });
    barrier_.wait();
  }

  /// From logits to what was asked for; rows are shared out, each is one worker's.
  void judge(const StepData& step, std::span<const StepRow> rows, std::span<RowResult> results,
             int worker) {
    const std::int64_t vocab = model_.config.vocab;
    for (std::int64_t r = worker; r < std::ssize(rows); r += threads_->size()) {
      const StepRow& row = rows[r];
      const float* values = logits_.data() + r * logit_stride();
      RowResult& result = results[r];
      const bool is_scored = row.target >= 0 || row.want >= Want::log_probability;
      const double normaliser = is_scored ? machine_.kernels.log_sum_exp(values, vocab) : 0;
      if (row.target >= 0) result.target_log_probability = values[row.target] - normaliser;
      if (row.want == Want::nothing) continue;
      const std::span<const float> all(values, static_cast<std::size_t>(vocab));
      const std::span<const std::uint32_t> allowed =
          row.mask < 0 ? std::span<const std::uint32_t>() : step.masks[row.mask];
      result.token = row.is_greedy()
                         ? static_cast<std::int32_t>(machine_.kernels.argmax(values, vocab))
                         : sample(all, row.sampling, allowed);
      if (result.token >= 0 && row.want >= Want::log_probability) {
        result.log_probability = static_cast<float>(values[result.token] - normaliser);
      }
      if (row.want == Want::logits) result.logits.assign(all.begin(), all.end());
    }
    barrier_.wait();
  }

  void account(const Layers& layers, const StepData& step) {
    traffic_ = {.expert_bytes = layers.expert_bytes(),
                .kv_bytes = kv_bytes_seen(step, model_.config, store_.position_bytes()),
                .active_experts = layers.active_experts()};
    for (const PackedLayer& layer : model_.layers) {
      traffic_.dense_bytes += layer.qkv.bytes() + layer.o.bytes() + layer.router.bytes();
    }
  }

  void count_head(std::int64_t rows, HeadKind head) {
    if (rows == 0) return;
    const std::int64_t groups =
        head == HeadKind::screened ? screened_.exact_groups() : model_.lm_head.num_groups();
    traffic_.dense_bytes +=
        groups * (model_.lm_head.group_bytes() + model_.lm_head.group_scale_bytes());
    if (head == HeadKind::screened) traffic_.dense_bytes += model_.screen.bytes();
    traffic_.exact_logits = rows * std::min(groups * kernels::cpu::kGroupRows, model_.lm_head.rows);
  }

  const Plan plan_;
  std::unique_ptr<ThreadPool> threads_;
  PackedModel model_;
  Rope rope_;
  KvStore store_;
  Buffers buffers_;
  SpinBarrier barrier_;
  Machine machine_;
  ScreenedHead screened_;
  std::int64_t max_tokens_;
  std::shared_ptr<RankSum> rank_sum_;
  std::shared_ptr<RankParts> parts_;
  Rows final_;
  HostArray<float> logits_;
  std::optional<StepData> pending_;
  Ticket ticket_ = 0;
  StepTraffic traffic_;
};

}  // namespace

std::unique_ptr<Runner> make_runner(RunnerParts parts) {
  return std::make_unique<CpuRunner>(std::move(parts));
}

}  // namespace gauntlet::engine::cpu
