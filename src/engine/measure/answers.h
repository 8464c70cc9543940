// Answers to prompts of real text by a model that comes with the project, with and without guesses:
// what targets of the catalogue that run the engine are made of. Nothing is loaded until open().
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/random.h"
#include "engine/serving/service.h"
#include "engine/steps/executor.h"

namespace gauntlet::engine::inline measure {

/// What is asked: prompts of one length, all of them submitted at once.
struct Questions {
  const std::int32_t* prompts = nullptr;  // [requests, prompt_tokens]
  std::int64_t requests = 1;
  std::int64_t prompt_tokens = 0;
  std::int64_t new_tokens = 0;  // of each answer, whatever the model would end with
  float temperature = 0;        // a request's seed is its place
};

/// What is known before a model is loaded.
struct AnswererConfig {
  std::string model = "gauntlet-tiny";
  std::string eagle_head = "";   // whose residuals are exported; empty: none are
  std::int64_t sequences = 16;   // at once, at most
  std::int64_t positions = 512;  // of one of them: prompt, answer and guesses
};

/// What the service counted in all runs together.
struct AnswerCounts {
  std::int64_t steps = 0;   // of the model, prompts included
  std::int64_t tokens = 0;  // that were said
  SpeculationCounts speculation;
};

/// One that grows while answers are made, and what its growth is divided by.
struct AnswerRate {
  std::string name;
  std::function<double()> total;
  std::function<double()> per;
};

class Answerer {
 public:
  explicit Answerer(AnswererConfig config) : config_(std::move(config)) {}

  /// Tokens of the sample text by the model's tokenizer. From any thread.
  std::span<const std::int32_t> text();
  /// Element `index` of prompts of this length: each begins somewhere in the text, by chance.
  std::int32_t prompt_token(std::int64_t prompt_tokens, std::int64_t index, const Random& random);

  /// Loads the model for so many threads, of which the calling one is the first and stays on its
  /// CPU. Once; later calls find it there.
  void open(int threads);

  /// Who guesses; each is made once. A small model guesses on one thread: on the two of a model
  /// that answers with two, answers took half as long again.
  std::shared_ptr<Drafter> model_drafter(const std::string& name);
  std::shared_ptr<Drafter> eagle_drafter();
  /// The model itself with so many experts for each token; it must be open.
  std::shared_ptr<Drafter> self_drafter(int experts);

  /// Greedy or drawn answers through a service, [requests, new_tokens].
  void answer(const Questions& questions, const Speculation& speculation, std::int32_t* answers);
  /// The same tokens as they must come out: each request alone, token by token, by an executor of
  /// one thread and without a service.
  void answer_step_by_step(const Questions& questions, std::int32_t* answers);

  const AnswerCounts& counts() const { return counts_; }
  /// "tokens_per_step", "accepted_share" (of all guesses) and, for each of so many positions,
  /// "accepted_1": of drafts, those that were right as far as that.
  std::vector<AnswerRate> rates(int positions) const;

 private:
  std::unique_ptr<Executor> make(const std::string& model, int threads,
                                 std::vector<int> export_layers) const;

  const AnswererConfig config_;
  std::once_flag text_is_read_;
  std::vector<std::int32_t> text_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Executor> alone_;  // of one thread, for expected answers
  std::shared_ptr<Drafter> model_drafter_;
  std::shared_ptr<Drafter> eagle_drafter_;
  AnswerCounts counts_;
};

/// Operations that answers of gauntlet-tiny take at least: products and chosen experts of each
/// token. The output head and attention come on top, in ways that differ.
double answer_flops(const Questions& questions);

/// Writes elements [begin, end) of prompts of this length: what fills a buffer of them.
using PromptWriter =
    std::function<void(void* out, std::int64_t begin, std::int64_t end, const Random& random)>;
PromptWriter write_prompts(std::shared_ptr<Answerer> model, std::int64_t prompt_tokens);

}  // namespace gauntlet::engine::inline measure
