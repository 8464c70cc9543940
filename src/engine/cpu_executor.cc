#include "engine/cpu_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/check.h"
#include "core/machine.h"
#include "engine/cpu/layers.h"
#include "engine/cpu/screened_head.h"
#include "engine/cpu/split.h"

namespace gauntlet::engine {
namespace {

/// Of the machine's memory: a system grants what is not touched yet.
constexpr std::int64_t kMemoryShareOfKv = 4;

/// Rows of logits computed together: enough to reuse each weight, few enough to keep in memory
/// for a vocabulary of 200,000.
constexpr std::int64_t kLogitRows = 32;

/// A head smaller than this stays in a cache, where reading it costs little.
constexpr std::int64_t kScreenedHeadBytes = 8 << 20;

/// The bounds are those of dense weights; and bytes are no less than MXFP4.
bool is_worth_screening(const model::Matrix& head) {
  return head.type != model::WeightType::mxfp4 &&
         head.rows * head.row_bytes() >= kScreenedHeadBytes;
}

/// A token whose logits somebody wants.
struct LogitRow {
  std::int64_t token;
  std::size_t item;
  std::int64_t target;  // index into the item's targets; -1: none
  bool last;            // the item's result comes from this row
};

class CpuExecutor final : public Executor {
 public:
  CpuExecutor(Plan plan, KvPoolConfig pool_config, std::int64_t max_batch_tokens,
              std::unique_ptr<ThreadPool> threads, PackedModel packed)
      : plan_(std::move(plan)),
        threads_(std::move(threads)),
        model_(std::move(packed)),
        rope_(model_.config),
        pool_(pool_config),
        store_(model_.config, pool_config, plan_.kv),
        buffers_(model_.config, max_batch_tokens, threads_->size()),
        barrier_(threads_->size()),
        machine_{model_, plan_, kernels::cpu::kernels(plan_.simd), rope_, store_, threads_->size()},
        screened_(machine_, barrier_),
        max_batch_tokens_(max_batch_tokens),
        final_(kLogitRows, model_.config.hidden),
        logits_(static_cast<std::size_t>(kLogitRows * logit_stride())) {}

  const model::ModelConfig& config() const override { return model_.config; }
  const Plan& plan() const override { return plan_; }
  KvPool& kv() override { return pool_; }
  std::int64_t max_batch_tokens() const override { return max_batch_tokens_; }
  StepTraffic last_traffic() const override { return traffic_; }
  std::span<const std::int64_t> expert_tokens() const override { return buffers_.expert_tokens; }
  std::int64_t weight_bytes() const override {
    return static_cast<std::int64_t>(model_.memory.size());
  }

  void watch(LayerProbe* probe) override { machine_.probe = probe; }

  Ticket submit(std::vector<BatchItem> items) override {
    check(!pending_, "a step was submitted before the last one was collected");
    pending_ = std::move(items);
    return ++ticket_;
  }

  std::vector<ItemResult> collect(Ticket ticket) override {
    check(pending_ && ticket == ticket_, "no such step to collect");
    const std::vector<BatchItem> items = std::move(*pending_);
    pending_.reset();
    const Step step = flatten(items);
    for (const PageCopy& copy : pool_.take_copies()) store_.copy(copy);
    const std::vector<LogitRow> rows = wanted_rows(items, step);
    const HeadKind head = head_for(items, rows);
    std::vector<ItemResult> results(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) {
      results[i].target_log_probs.resize(items[i].targets.size());
    }
    Layers layers(machine_, step, buffers_, barrier_);
    threads_->run([&](int worker) {
      machine_.kernels.begin_work();
      layers.run(worker);
      for (std::size_t first = 0; first < rows.size(); first += kLogitRows) {
        const std::span<const LogitRow> some(
            rows.data() + first, std::min<std::size_t>(kLogitRows, rows.size() - first));
        normalise(layers, some, head, worker);
        if (screens(head, some)) {
          screened_.run({.rows = final_,
                         .precision = layers.precision_for(model_.lm_head),
                         .num_rows = std::ssize(some),
                         .logits = logits_.data(),
                         .stride = logit_stride()},
                        worker);
        } else {
          logits(layers, some, worker);
          judge(items, some, results, worker);
        }
      }
      machine_.kernels.end_work();
    });
    const bool screened = screens(head, rows);
    for (std::size_t r = 0; screened && r < rows.size(); ++r) {
      results[rows[r].item].token = screened_.token(static_cast<std::int64_t>(r));
    }
    account(layers, step);
    count_head(std::ssize(rows), screened ? HeadKind::screened : HeadKind::full);
    for (const BatchItem& item : items) pool_.commit(item.sequence, std::ssize(item.tokens));
    return results;
  }

 private:
  std::int64_t logit_stride() const {
    return model_.lm_head.num_groups() * kernels::cpu::kGroupRows;
  }

  Step flatten(const std::vector<BatchItem>& items) const {
    Step step;
    for (const BatchItem& item : items) {
      check(!item.tokens.empty(), "a batch item has no tokens");
      check(item.targets.empty() || item.targets.size() == item.tokens.size(),
            "a batch item has as many targets as tokens, or none");
      StepItem& into = step.items.emplace_back();
      into.first_token = step.num_tokens();
      into.num_tokens = std::ssize(item.tokens);
      for (const KvGroup group : {KvGroup::full, KvGroup::sliding}) {
        into.tables[static_cast<int>(group)] = pool_.table(item.sequence, group);
      }
      std::int64_t position = pool_.length(item.sequence);
      check(position + into.num_tokens <= std::ssize(into.tables[0]) * kernels::cpu::kPageTokens,
            "a batch item's positions were not reserved");
      for (const std::int32_t id : item.tokens) {
        check(id >= 0 && id < model_.config.vocab, "a token id is outside the vocabulary");
        step.ids.push_back(id);
        step.positions.push_back(position++);
        step.item_of.push_back(static_cast<std::int32_t>(step.items.size()) - 1);
      }
    }
    check(step.num_tokens() > 0 && step.num_tokens() <= max_batch_tokens_,
          "a step has no tokens, or more than the executor was made for");
    return step;
  }

  std::vector<LogitRow> wanted_rows(const std::vector<BatchItem>& items, const Step& step) const {
    std::vector<LogitRow> rows;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::int64_t last = step.items[i].num_tokens - 1;
      for (std::int64_t t = 0; t <= last; ++t) {
        const bool scored = !items[i].targets.empty();
        const bool ends = t == last && items[i].want != Want::nothing;
        if (scored || ends) {
          rows.push_back({step.items[i].first_token + t, i, scored ? t : -1, ends});
        }
      }
    }
    return rows;
  }

  /// Screened where nothing but greedy tokens is wanted, and of few sequences.
  HeadKind head_for(const std::vector<BatchItem>& items, const std::vector<LogitRow>& rows) const {
    if (!plan_.screens(std::ssize(rows))) return HeadKind::full;
    const bool greedy = std::ranges::all_of(rows, [&](const LogitRow& row) {
      const BatchItem& item = items[row.item];
      return item.want == Want::token && item.targets.empty() && item.allowed.empty() &&
             item.sampling.temperature == 0;
    });
    return greedy ? HeadKind::screened : HeadKind::full;
  }

  /// The last norm, and what a screened head needs of it.
  void normalise(const Layers& layers, std::span<const LogitRow> rows, HeadKind head, int worker) {
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

  /// Once these rows are normalised.
  bool screens(HeadKind head, std::span<const LogitRow> rows) const {
    return head == HeadKind::screened && screened_.holds(std::ssize(rows));
  }

  void logits(const Layers& layers, std::span<const LogitRow> rows, int worker) {
    layers.share_product({.weights = model_.lm_head,
                          .precision = layers.precision_for(model_.lm_head),
                          .group_end = model_.lm_head.num_groups(),
                          .num_tokens = std::ssize(rows),
                          .x = final_.view(),
                          .out = logits_.data(),
                          .out_stride = logit_stride()},
                         worker);
    barrier_.wait();
  }

  /// From logits to what was asked for; rows are shared out, each is one worker's.
  void judge(const std::vector<BatchItem>& items, std::span<const LogitRow> rows,
             std::vector<ItemResult>& results, int worker) {
    const std::int64_t vocab = model_.config.vocab;
    for (std::int64_t r = worker; r < std::ssize(rows); r += threads_->size()) {
      const LogitRow& row = rows[r];
      const float* values = logits_.data() + r * logit_stride();
      const BatchItem& item = items[row.item];
      ItemResult& result = results[row.item];
      const bool is_scored = row.target >= 0 || item.want >= Want::log_probability;
      const double normaliser = is_scored ? machine_.kernels.log_sum_exp(values, vocab) : 0;
      if (row.target >= 0) {
        result.target_log_probs[row.target] = values[item.targets[row.target]] - normaliser;
      }
      if (!row.last) continue;
      const std::span<const float> all(values, static_cast<std::size_t>(vocab));
      result.token = item.sampling.temperature == 0 && item.allowed.empty()
                         ? static_cast<std::int32_t>(machine_.kernels.argmax(values, vocab))
                         : sample(all, item.sampling, item.allowed);
      if (result.token >= 0 && item.want >= Want::log_probability) {
        result.log_probability = static_cast<float>(values[result.token] - normaliser);
      }
      if (item.want == Want::logits) result.logits.assign(all.begin(), all.end());
    }
    barrier_.wait();
  }

  void account(const Layers& layers, const Step& step) {
    traffic_ = {.expert_bytes = layers.expert_bytes(), .active_experts = layers.active_experts()};
    for (const PackedLayer& layer : model_.layers) {
      traffic_.dense_bytes += layer.qkv.bytes() + layer.o.bytes() + layer.router.bytes();
    }
    for (const StepItem& item : step.items) {
      const std::int64_t end = step.positions[item.first_token + item.num_tokens - 1] + 1;
      for (std::size_t l = 0; l < model_.layers.size(); ++l) {
        const bool sliding = store_.group_of(static_cast<std::int64_t>(l)) == KvGroup::sliding;
        const std::int64_t seen =
            sliding ? std::min(end, model_.config.sliding_window + item.num_tokens - 1) : end;
        traffic_.kv_bytes += seen * store_.position_bytes();
      }
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
  KvPool pool_;
  KvStore store_;
  Buffers buffers_;
  SpinBarrier barrier_;
  Machine machine_;
  ScreenedHead screened_;
  std::int64_t max_batch_tokens_;
  Rows final_;
  HostArray<float> logits_;
  std::optional<std::vector<BatchItem>> pending_;
  Ticket ticket_ = 0;
  StepTraffic traffic_;
};

}  // namespace

std::int64_t default_positions(const model::ModelConfig& shape, KvType kv,
                               std::int64_t max_sequences, std::int64_t memory_bytes) {
  const std::int64_t full_layers = std::ranges::count(shape.attention, model::AttentionSpan::full);
  const std::int64_t element_bytes = kv == KvType::f32 ? 4 : 2;
  const std::int64_t position_bytes =
      std::max<std::int64_t>(1, full_layers * 2 * shape.kv_width() * element_bytes);
  return std::clamp(memory_bytes / position_bytes, shape.max_positions,
                    shape.max_positions * std::max<std::int64_t>(1, max_sequences));
}

Expected<std::unique_ptr<Executor>> make_cpu_executor(const model::ModelWeights& weights,
                                                      const CpuExecutorConfig& config) {
  auto plan = resolve(config.options);
  if (!plan) return plan.error();
  if (!is_worth_screening(weights.lm_head)) plan->head = HeadKind::full;
  auto threads = std::make_unique<ThreadPool>(plan->cpus);
  auto packed = pack_model(weights, *plan, *threads, config.progress);
  if (!packed) return packed.error();
  plan->screen_bytes = packed->screen.bytes();
  const model::ModelConfig& shape = weights.config;
  const std::int64_t tokens =
      config.max_tokens > 0
          ? config.max_tokens
          : default_positions(shape, plan->kv, config.max_sequences,
                              read_machine(false).cpu.memory_bytes / kMemoryShareOfKv);
  const auto pages = [](std::int64_t positions) {
    return (positions + kernels::cpu::kPageTokens - 1) / kernels::cpu::kPageTokens;
  };
  const std::int64_t per_sequence = pages(shape.sliding_window) + 2;
  const KvPoolConfig pool{
      .page_tokens = kernels::cpu::kPageTokens,
      .window = shape.sliding_window,
      .full_pages = pages(tokens) + config.max_sequences,
      .sliding_pages = config.max_sequences * per_sequence + pages(config.max_batch_tokens)};
  return std::unique_ptr<Executor>(std::make_unique<CpuExecutor>(
      *plan, pool, config.max_batch_tokens, std::move(threads), std::move(*packed)));
}

}  // namespace gauntlet::engine
