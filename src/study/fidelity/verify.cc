#include "study/fidelity/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/check.h"
#include "engine/serving/service.h"

namespace gauntlet::study::inline fidelity {
namespace {

using engine::BatchItem;
using engine::ItemResult;
using engine::SequenceId;
using engine::Want;

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

/// What is wanted of prompts that run together.
struct Together {
  Texts prompts;
  std::int64_t max_tokens = 0;
  const Texts* forced = nullptr;                        // fed instead of what was chosen
  std::vector<std::vector<double>>* margins = nullptr;  // gets what the logits say
};

/// The best token after each prompt and after each of those that followed it.
Expected<Texts> run_together(engine::Executor& executor, Together run) {
  Texts inputs = std::move(run.prompts);
  Texts made(inputs.size());
  const Sequences sequences(executor.kv(), inputs.size());
  for (std::int64_t step = 0; step < run.max_tokens; ++step) {
    std::vector<BatchItem> items;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!executor.kv().reserve(sequences[i], std::ssize(inputs[i]))) {
        return Error{"the KV cache is too small to verify in"};
      }
      items.push_back({.sequence = sequences[i],
                       .tokens = std::exchange(inputs[i], {}),
                       .want = run.margins ? Want::logits : Want::token});
    }
    const auto results = executor.collect(executor.submit(std::move(items)));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::int32_t token = results[i].token;
      if (token < 0) return Error{"the logits hold no choice: they are not numbers"};
      made[i].push_back(token);
      if (run.margins) (*run.margins)[i].push_back(margin_of(results[i].logits, token));
      inputs[i] = {run.forced ? (*run.forced)[i][step] : token};
    }
  }
  return made;
}

/// The first alone, the others together.
std::vector<Texts> groups_of(const Texts& texts) {
  std::vector<Texts> groups = {Texts(texts.begin(), texts.begin() + 1)};
  if (texts.size() > 1) groups.emplace_back(texts.begin() + 1, texts.end());
  return groups;
}

template <typename List>
void append(List& all, const List& more) {
  all.insert(all.end(), more.begin(), more.end());
}

std::string place(std::size_t prompt, std::size_t token) {
  return fmt::format("prompt {}, token {}", prompt + 1, token + 1);
}

std::string difference(std::size_t prompt, std::size_t token, std::int32_t expected,
                       double margin) {
  return fmt::format("{}: not the {} of the layer before, which led by {:.3f}",
                     place(prompt, token), expected, margin);
}

/// The best tokens with the recording's own tokens forced.
Expected<Texts> run_forced(engine::Executor& executor, const Recording& recording,
                           std::vector<std::vector<double>>* margins) {
  Texts made;
  const auto prompts = groups_of(recording.prompts), forced = groups_of(recording.forced);
  for (std::size_t g = 0; g < prompts.size(); ++g) {
    std::vector<std::vector<double>> own(prompts[g].size());
    const auto some = run_together(executor, {.prompts = prompts[g],
                                              .max_tokens = std::ssize(forced[g].front()),
                                              .forced = &forced[g],
                                              .margins = margins ? &own : nullptr});
    if (!some) return some.error();
    append(made, *some);
    if (margins) append(*margins, own);
  }
  return made;
}

/// Where `own` left what was recorded, at a choice that was not close, without an undecided router
/// on the way; empty: nowhere. What a watched step leaves out must then be at fault.
std::string unexplained(const ReplayExecutor& replaying, const Recording& recording,
                        const Texts& own, double least_margin) {
  for (std::size_t p = 0; p < own.size(); ++p) {
    const std::size_t prompt = p % recording.prompts.size();
    const auto& expected = recording.forced[prompt];
    std::vector<std::int32_t> text = recording.prompts[prompt];
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (recording.chosen.margins[prompt][i] < least_margin) break;
      if (i >= own[p].size() || own[p][i] != expected[i]) {
        if (replaying.replaced_within(text)) break;
        return place(prompt, i);
      }
      text.push_back(expected[i]);
    }
  }
  return "";
}

/// Passes judgement on choices made with the recorded experts.
void judge(const ReplayExecutor& replaying, const Recording& recording, const Texts& own,
           double least_margin, Replay& replay) {
  constexpr double kMostReplaced = 0.5;  // a router that is undecided this often is another router
  replay.experts = replaying.num_choices();
  replay.replaced = replaying.num_replaced();
  if (!replay.wrong.empty()) return;
  if (static_cast<double>(replay.replaced) > kMostReplaced * static_cast<double>(replay.experts)) {
    replay.wrong = fmt::format("{} of {} choices of experts are others than the layer before's",
                               replay.replaced, replay.experts);
    return;
  }
  const std::string at = unexplained(replaying, recording, own, least_margin);
  if (at.empty()) return;
  replay.wrong = fmt::format(
      "{}: another token than the layer before's without an undecided router on the way, and only "
      "when nobody watches",
      at);
}

}  // namespace

Expected<GreedyRun> greedy(engine::Executor& executor, const Texts& prompts,
                           std::int64_t max_tokens) {
  GreedyRun run;
  for (const Texts& group : groups_of(prompts)) {
    std::vector<std::vector<double>> margins(group.size());
    const auto watched =
        run_together(executor, {.prompts = group, .max_tokens = max_tokens, .margins = &margins});
    if (!watched) return watched.error();
    const auto tokens = run_together(executor, {.prompts = group, .max_tokens = max_tokens});
    if (!tokens) return tokens.error();
    append(run.tokens, *tokens);
    append(run.margins, margins);
  }
  return run;
}

namespace {

/// Runs all prompts to their end.
Expected<Texts> serve_once(engine::Service& service, const Texts& prompts,
                           std::int64_t max_tokens) {
  Texts made(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto on_token = [&made, i](const engine::TokenEvent& event) {
      made[i].push_back(event.token);
      return engine::Verdict::go_on;
    };
    const auto id = service.submit({.prompt = prompts[i],
                                    .max_tokens = max_tokens,
                                    .end_of_sequence = engine::EndOfSequence::ignored},
                                   {.on_token = on_token});
    if (!id) return id.error();
  }
  while (service.step()) {
  }
  return made;
}

}  // namespace

Expected<Texts> served_greedy(engine::Executor& executor, const ServingPolicy& policy,
                              const Texts& prompts, std::int64_t max_tokens) {
  engine::Service service(executor, policy.service());
  auto tokens = serve_once(service, prompts, max_tokens);
  if (!tokens) return tokens;
  const auto again = serve_once(service, prompts, max_tokens);
  if (!again) return again;
  append(*tokens, *again);
  return tokens;
}

Agreement compare(const GreedyRun& before, const Texts& after, double least_margin) {
  Agreement agreement;
  for (std::size_t p = 0; p < std::max(before.tokens.size(), after.size()); ++p) {
    const std::size_t prompt = p % before.tokens.size();
    const auto& expected = before.tokens[prompt];
    agreement.of += std::ssize(expected);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double margin = before.margins[prompt][i];
      if (margin < least_margin) break;
      ++agreement.compared;
      if (p < after.size() && i < after[p].size() && after[p][i] == expected[i]) continue;
      if (agreement.agrees) {
        agreement.where = place(prompt, i);
        agreement.difference = difference(prompt, i, expected[i], margin);
      }
      agreement.agrees = false;
      break;
    }
  }
  return agreement;
}

Expected<Recording> record(engine::Executor& executor, Texts prompts, Texts forced) {
  check(prompts.size() == forced.size() && !prompts.empty(), "every prompt has what follows it");
  Recording recording{.prompts = std::move(prompts), .forced = std::move(forced)};
  ReplayExecutor replaying(executor, recording.experts, ReplayUse::record);
  const auto made = run_forced(replaying, recording, &recording.chosen.margins);
  if (!made) return made.error();
  recording.chosen.tokens = *made;
  return recording;
}

Expected<Replay> replay(engine::Executor& executor, Recording& recording, const Texts& own,
                        double least_margin) {
  ReplayExecutor replaying(executor, recording.experts, ReplayUse::replay);
  const auto made = run_forced(replaying, recording, nullptr);
  if (!made) return made.error();
  Replay replay;
  for (std::size_t p = 0; p < made->size(); ++p) {
    const auto& expected = recording.chosen.tokens[p];
    replay.of += std::ssize(expected);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double margin = recording.chosen.margins[p][i];
      if (margin < least_margin) continue;
      ++replay.compared;
      if ((*made)[p][i] == expected[i] || !replay.wrong.empty()) continue;
      replay.wrong = difference(p, i, expected[i], margin);
    }
  }
  judge(replaying, recording, own, least_margin, replay);
  return replay;
}

Expected<Replay> replay_served(engine::Executor& executor, const engine::SchedulerConfig& scheduler,
                               Recording& recording, const Texts& own, double least_margin) {
  ReplayExecutor replaying(executor, recording.experts, ReplayUse::replay);
  const auto made = served_greedy(replaying, {.scheduler = scheduler}, recording.prompts,
                                  std::ssize(recording.chosen.tokens.front()));
  if (!made) return made.error();
  const Agreement agreement = compare(recording.chosen, *made, least_margin);
  Replay replay{.compared = agreement.compared, .of = agreement.of, .wrong = agreement.difference};
  judge(replaying, recording, own, least_margin, replay);
  return replay;
}

}  // namespace gauntlet::study::inline fidelity
