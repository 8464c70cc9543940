#include <memory>
#include <utility>
#include <vector>

#include "catalog/ch18/speculative_decoding/pair.h"
#include "lab/author/counted.h"
#include "lab/author/pair.h"

namespace gauntlet::ch18::speculative_decoding {
namespace {

lab::Cost cost(const lab::Knobs& k) {
  return {.read_bytes = 4.0 * static_cast<double>(k["requests"] * k["prompt_tokens"]),
          .write_bytes = 4.0 * static_cast<double>(k["requests"] * k["new_tokens"]),
          .flops = engine::answer_flops({.requests = k["requests"],
                                         .prompt_tokens = k["prompt_tokens"],
                                         .new_tokens = k["new_tokens"]}),
          .level = lab::Cost::Level::cache};
}

}  // namespace

lab::Side counted_answers(const Params& p, const engine::Speculation& speculation) {
  std::vector<lab::Count> counts;
  for (engine::AnswerRate& rate : p.model->rates(0)) {
    counts.push_back({std::move(rate.name), std::move(rate.total), std::move(rate.per)});
  }
  lab::Side side = lab::counted(std::move(counts), [p, speculation] {
    p.model->answer(p.questions, speculation, p.answers);
  });
  side.helpers = lab::Helpers::threads;
  return side;
}

lab::Pair<Params> pair() {
  return {
      .title = "a step for each token → a smaller model's guesses, verified together",
      .technique = "draft_model",
      .needs = {"gauntlet-draft"},
      .knobs = {{.name = "text",
                 .cpu = 1,
                 .min = 0,
                 .max = 1,
                 .help = "1: greedy answers; 0: drawn at temperature 1, which are harder to guess"},
                {.name = "prompt_tokens", .cpu = 64, .min = 8, .max = 256, .help = "of fiction"},
                {.name = "new_tokens", .cpu = 96, .max = 512, .help = "of each answer"},
                {.name = "requests", .cpu = 1, .max = 16, .help = "answered at once"},
                {.name = "drafts", .cpu = 1, .max = 31, .help = "guesses in one step at most"}},
      .cpu =
          lab::BackendFacts{
              .claim =
                  "Each guess that is right saves a step of the larger model. It pays where a "
                  "step is bound by reading weights, so that verified rows are nearly free and "
                  "the draft is much cheaper: not here, where both models lie in the cache.",
              .cost = cost,
              .witness = lab::Witness::outcome("tokens_per_step", lab::Witness::Moves::rises, 1.3,
                                               "tokens said over steps of the model, as the "
                                               "service counts them")},
      .metrics = {{.name = "tokens",
                   .unit = "token/s",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::rate,
                   .amount =
                       [](const lab::Knobs& k) {
                         return static_cast<double>(k["requests"] * k["new_tokens"]);
                       }},
                  {.name = "tokens_per_step",
                   .unit = "tokens",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::outcome},
                  {.name = "accepted_share",
                   .unit = "of guesses",
                   .better = lab::Metric::Better::higher,
                   .from = lab::Metric::From::outcome}},
      .bind =
          [model = std::make_shared<engine::Answerer>(engine::AnswererConfig{
               .sequences = 16, .positions = 256 + 512 + 32})](lab::Binder& b) {
            const auto requests = b.knob("requests"), prompt_tokens = b.knob("prompt_tokens"),
                       new_tokens = b.knob("new_tokens");
            return Params{
                .model = model,
                .questions = {.prompts = b.input<std::int32_t>(
                                  "prompts", requests * prompt_tokens,
                                  lab::Fill::ranges(engine::write_prompts(model, prompt_tokens))),
                              .requests = requests,
                              .prompt_tokens = prompt_tokens,
                              .new_tokens = new_tokens,
                              .temperature = b.knob("text") == 1 ? 0.0f : 1.0f},
                .answers = b.output<std::int32_t>("answers", requests * new_tokens),
                .drafts = b.knob("drafts")};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            p.model->answer_step_by_step(p.questions, r.exact<std::int32_t>("answers").data());
          },
  };
}

}  // namespace gauntlet::ch18::speculative_decoding
