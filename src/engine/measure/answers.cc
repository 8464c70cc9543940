#include "engine/measure/answers.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/os/threads.h"
#include "core/random.h"
#include "engine/measure/sample_text.h"
#include "engine/speculation/eagle.h"
#include "engine/speculation/model_drafter.h"
#include "engine/speculation/self_drafter.h"
#include "engine/steps/cpu_executor.h"
#include "model/eagle_head.h"
#include "model/tokens/load_tokenizer.h"
#include "model/weights.h"

namespace gauntlet::engine::inline measure {
namespace {

/// A target that cannot go on says why by a fault.
template <class T>
T value_of(Expected<T> made) {
  if (!made) fail(made.error().message);
  return std::move(*made);
}

/// Among the CPUs that this process may use, the one that the calling thread is on.
int place_of_this_thread() {
  const std::vector<int> cpus = allowed_cpus();
  const auto here = std::ranges::find(cpus, ::sched_getcpu());
  return here == cpus.end() ? 0 : static_cast<int>(here - cpus.begin());
}

SamplingParams sampling_of(const Questions& questions, std::int64_t request) {
  return {.temperature = questions.temperature, .seed = static_cast<std::uint64_t>(request)};
}

std::span<const std::int32_t> prompt_of(const Questions& questions, std::int64_t request) {
  return {questions.prompts + request * questions.prompt_tokens,
          static_cast<std::size_t>(questions.prompt_tokens)};
}

void add(SpeculationCounts& all, const SpeculationCounts& more) {
  all.steps += more.steps;
  all.drafted += more.drafted;
  all.accepted += more.accepted;
  if (all.by_position.size() < more.by_position.size()) {
    all.by_position.resize(more.by_position.size());
  }
  for (std::size_t i = 0; i < more.by_position.size(); ++i) {
    all.by_position[i] += more.by_position[i];
  }
}

}  // namespace

std::span<const std::int32_t> Answerer::text() {
  std::call_once(text_is_read_, [this] {
    const auto tokenizer =
        value_of(model::load_tokenizer(value_of(model::open_model(config_.model))));
    text_ = tokenizer.encode(std::string(embedded::validation_txt()));
  });
  return text_;
}

std::int32_t Answerer::prompt_token(std::int64_t prompt_tokens, std::int64_t index,
                                    const Random& random) {
  const auto all = text();
  const auto starts = static_cast<std::uint64_t>(std::ssize(all) - prompt_tokens);
  const auto start = random.below(starts, static_cast<std::uint64_t>(index / prompt_tokens));
  return all[start + static_cast<std::size_t>(index % prompt_tokens)];
}

std::unique_ptr<Executor> Answerer::make(const std::string& model, int threads,
                                         std::vector<int> export_layers) const {
  CpuExecutorConfig config{.max_sequences = config_.sequences,
                           .max_tokens = config_.sequences * config_.positions,
                           .first_cpu = place_of_this_thread(),
                           .export_layers = std::move(export_layers)};
  config.options.threads = threads;
  return value_of(make_cpu_executor(value_of(model::load_model(model)), config));
}

void Answerer::open(int threads) {
  if (executor_) return;
  std::vector<int> exported;
  if (!config_.eagle_head.empty()) {
    const auto weights = value_of(model::load_model(config_.model));
    const auto files = value_of(model::open_model(config_.eagle_head));
    exported = value_of(model::load_eagle_head(files, weights.config)).config.export_layers();
  }
  executor_ = make(config_.model, threads, std::move(exported));
}

std::shared_ptr<Drafter> Answerer::model_drafter(const std::string& name) {
  if (!model_drafter_) model_drafter_ = std::make_shared<ModelDrafter>(make(name, 1, {}));
  return model_drafter_;
}

std::shared_ptr<Drafter> Answerer::eagle_drafter() {
  check(executor_ != nullptr, "a head guesses for a model that is open");
  if (eagle_drafter_) return eagle_drafter_;
  const auto weights = value_of(model::load_model(config_.model));
  const auto files = value_of(model::open_model(config_.eagle_head));
  eagle_drafter_ = std::make_shared<EagleDrafter>(
      std::make_shared<EagleLayer>(value_of(model::load_eagle_head(files, weights.config)),
                                   weights.embedding, weights.storage, executor_->plan().simd));
  return eagle_drafter_;
}

std::shared_ptr<Drafter> Answerer::self_drafter(int experts) {
  check(executor_ != nullptr, "a model guesses for itself once it is open");
  return std::make_shared<SelfDrafter>(*executor_, experts);
}

void Answerer::answer(const Questions& questions, const Speculation& speculation,
                      std::int32_t* answers) {
  check(executor_ != nullptr, "a model answers once it is open");
  Service service(*executor_, {.scheduler = {.prefix_caching = PrefixCaching::off},
                               .speculation = speculation});
  std::string fault;
  for (std::int64_t i = 0; i < questions.requests; ++i) {
    const auto prompt = prompt_of(questions, i);
    RequestEvents events;
    events.on_token = [next = answers + i * questions.new_tokens](const TokenEvent& event) mutable {
      *next++ = event.token;
      return Verdict::go_on;
    };
    events.on_finish = [&fault](const FinishEvent& event) {
      if (event.reason != FinishReason::length) fault = event.error;
    };
    const auto id = service.submit({.prompt = {prompt.begin(), prompt.end()},
                                    .max_tokens = questions.new_tokens,
                                    .sampling = sampling_of(questions, i),
                                    .end_of_sequence = EndOfSequence::ignored},
                                   std::move(events));
    if (!id) fail(id.error().message);
  }
  while (service.step()) {
  }
  const ServiceStats stats = service.stats();
  check(fault.empty(), fault);
  check(stats.draft_fault.empty(), stats.draft_fault);
  counts_.steps += stats.steps;
  counts_.tokens += stats.output_tokens;
  add(counts_.speculation, stats.speculation);
}

void Answerer::answer_step_by_step(const Questions& questions, std::int32_t* answers) {
  if (!alone_) alone_ = make(config_.model, 1, {});
  KvPool& pool = alone_->kv();
  for (std::int64_t i = 0; i < questions.requests; ++i) {
    const auto prompt = prompt_of(questions, i);
    BatchItem item{.sequence = pool.create(),
                   .tokens = {prompt.begin(), prompt.end()},
                   .sampling = sampling_of(questions, i)};
    for (std::int64_t made = 0; made < questions.new_tokens; ++made) {
      check(pool.reserve(item.sequence, std::ssize(item.tokens)), "an answer has room");
      item.sampling.step = made;
      const std::int32_t token = alone_->collect(alone_->submit({item})).front().token;
      answers[i * questions.new_tokens + made] = token;
      item.tokens = {token};
    }
    pool.free(item.sequence);
  }
}

std::vector<AnswerRate> Answerer::rates(int positions) const {
  const auto of = [this](auto count) {
    return [this, count] { return static_cast<double>(count(counts_)); };
  };
  std::vector<AnswerRate> rates = {
      {.name = "tokens_per_step",
       .total = of([](const AnswerCounts& c) { return c.tokens; }),
       .per = of([](const AnswerCounts& c) { return c.steps; })},
      {.name = "accepted_share",
       .total = of([](const AnswerCounts& c) { return c.speculation.accepted; }),
       .per = of([](const AnswerCounts& c) { return c.speculation.drafted; })}};
  for (int i = 0; i < positions; ++i) {
    rates.push_back({.name = fmt::format("accepted_{}", i + 1),
                     .total = of([i](const AnswerCounts& c) {
                       const auto& right = c.speculation.by_position;
                       return i < std::ssize(right) ? right[static_cast<std::size_t>(i)] : 0;
                     }),
                     .per = of([](const AnswerCounts& c) { return c.speculation.steps; })});
  }
  return rates;
}

double answer_flops(const Questions& questions) {
  constexpr double kTokenFlops = 2.0 * 6 * 256 * (512 + 256 + 32 + 4 * 3 * 128);
  const auto tokens = static_cast<double>(questions.prompt_tokens + questions.new_tokens - 1);
  return static_cast<double>(questions.requests) * tokens * kTokenFlops;
}

PromptWriter write_prompts(std::shared_ptr<Answerer> model, std::int64_t prompt_tokens) {
  return [model = std::move(model), prompt_tokens](void* out, std::int64_t begin, std::int64_t end,
                                                   const Random& random) {
    auto* tokens = static_cast<std::int32_t*>(out);
    for (std::int64_t i = begin; i < end; ++i) {
      *tokens++ = model->prompt_token(prompt_tokens, i, random);
    }
  };
}

}  // namespace gauntlet::engine::inline measure
