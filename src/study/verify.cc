#include "study/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/service.h"

namespace gauntlet::study {
namespace {

using engine::BatchItem;
using engine::ItemResult;
using engine::SequenceId;
using engine::Want;
using Tokens = std::vector<std::vector<std::int32_t>>;

double margin_of(const std::vector<float>& logits, std::int32_t best) {
  float second = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (static_cast<std::int32_t>(i) != best) second = std::max(second, logits[i]);
  }
  return static_cast<double>(logits[best]) - static_cast<double>(second);
}

/// Sequences that are freed whatever happens.
class Sequences {
 public:
  Sequences(engine::KvPool& pool, std::size_t count) : pool_(pool) {
    for (std::size_t i = 0; i < count; ++i) ids_.push_back(pool.create());
  }
  ~Sequences() {
    for (const SequenceId id : ids_) pool_.free(id);
  }
  Sequences(const Sequences&) = delete;
  Sequences& operator=(const Sequences&) = delete;

  SequenceId operator[](std::size_t i) const { return ids_[i]; }

 private:
  engine::KvPool& pool_;
  std::vector<SequenceId> ids_;
};

/// Greedy tokens of prompts that run together; `margins` gets what the logits say, where wanted.
Expected<Tokens> run_together(engine::Executor& executor, Tokens inputs, std::int64_t max_tokens,
                              std::vector<std::vector<double>>* margins) {
  Tokens made(inputs.size());
  const Sequences sequences(executor.kv(), inputs.size());
  for (std::int64_t step = 0; step < max_tokens; ++step) {
    std::vector<BatchItem> items;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!executor.kv().reserve(sequences[i], std::ssize(inputs[i]))) {
        return Error{"the KV cache is too small to verify in"};
      }
      items.push_back({.sequence = sequences[i],
                       .tokens = std::exchange(inputs[i], {}),
                       .want = margins ? Want::logits : Want::token});
    }
    const auto results = executor.collect(executor.submit(std::move(items)));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::int32_t token = results[i].token;
      if (token < 0) return Error{"the logits hold no choice: they are not numbers"};
      made[i].push_back(token);
      if (margins) (*margins)[i].push_back(margin_of(results[i].logits, token));
      inputs[i] = {token};
    }
  }
  return made;
}

}  // namespace

Expected<GreedyRun> greedy(engine::Executor& executor,
                           const std::vector<std::vector<std::int32_t>>& prompts,
                           std::int64_t max_tokens) {
  GreedyRun run;
  const auto alone = prompts.begin() + 1;
  for (const Tokens& group : {Tokens(prompts.begin(), alone), Tokens(alone, prompts.end())}) {
    if (group.empty()) continue;
    std::vector<std::vector<double>> margins(group.size());
    if (const auto ran = run_together(executor, group, max_tokens, &margins); !ran) {
      return ran.error();
    }
    const auto tokens = run_together(executor, group, max_tokens, nullptr);
    if (!tokens) return tokens.error();
    run.tokens.insert(run.tokens.end(), tokens->begin(), tokens->end());
    run.margins.insert(run.margins.end(), margins.begin(), margins.end());
  }
  return run;
}

Expected<GreedyRun> served_greedy(engine::Executor& executor,
                                  const engine::SchedulerConfig& scheduler,
                                  const std::vector<std::vector<std::int32_t>>& prompts,
                                  std::int64_t max_tokens) {
  GreedyRun run;
  run.tokens.resize(prompts.size());
  run.margins.resize(prompts.size());
  engine::Service service(executor, {.scheduler = scheduler});
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto on_token = [&run, i](const engine::TokenEvent& event) {
      run.tokens[i].push_back(event.token);
      run.margins[i].push_back(static_cast<double>(event.top.at(0).log_probability) -
                               static_cast<double>(event.top.at(1).log_probability));
      return engine::Verdict::go_on;
    };
    const auto id = service.submit({.prompt = prompts[i],
                                    .max_tokens = max_tokens,
                                    .end_of_sequence = engine::EndOfSequence::ignored,
                                    .top_log_probs = 2},
                                   {.on_token = on_token});
    if (!id) return id.error();
  }
  while (service.step()) {
  }
  return run;
}

Agreement compare(const GreedyRun& before, const GreedyRun& after, double least_margin) {
  Agreement agreement;
  for (std::size_t p = 0; p < before.tokens.size(); ++p) {
    const auto& expected = before.tokens[p];
    agreement.of += std::ssize(expected);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (before.margins[p][i] < least_margin) break;
      const bool same = p < after.tokens.size() && i < after.tokens[p].size() &&
                        after.tokens[p][i] == expected[i];
      ++agreement.compared;
      if (same) continue;
      if (agreement.agrees) {
        agreement.difference =
            fmt::format("prompt {}, token {}: not the {} of the layer before, which led by {:.3f}",
                        p + 1, i + 1, expected[i], before.margins[p][i]);
      }
      agreement.agrees = false;
      break;
    }
  }
  return agreement;
}

}  // namespace gauntlet::study
