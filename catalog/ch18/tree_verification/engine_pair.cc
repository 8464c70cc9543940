#include <memory>
#include <utility>
#include <vector>

#include "catalog/ch18/tree_verification/pair.h"
#include "lab/author/counted.h"
#include "lab/author/pair.h"

namespace gauntlet::ch18::tree_verification {
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
      .title = "a chain of guesses → a tree of them, verified by one step",
      .technique = "token_tree",
      .needs = {"gauntlet-tiny-eagle3"},
      .knobs = {{.name = "text",
                 .cpu = 1,
                 .min = 0,
                 .max = 1,
                 .help = "1: greedy answers; 0: drawn at temperature 1, which are harder to guess"},
                {.name = "prompt_tokens", .cpu = 64, .min = 8, .max = 256, .help = "of fiction"},
                {.name = "new_tokens", .cpu = 96, .max = 512, .help = "of each answer"},
                {.name = "requests", .cpu = 1, .max = 16, .help = "answered at once"},
                {.name = "depth", .cpu = 3, .max = 7, .help = "guesses of a chain or a path"},
                {.name = "width", .cpu = 2, .min = 2, .max = 8, .help = "branches of a guess"},
                {.name = "guesses", .cpu = 6, .max = 63, .help = "of a tree, the likeliest"}},
      .cpu =
          lab::BackendFacts{
              .claim =
                  "Where the likeliest guess is wrong the next may be right, so a step that "
                  "verifies both says more tokens. It pays where verified rows are nearly free: "
                  "not here, where the model lies in the cache and each row adds to a step.",
              .cost = cost,
              .witness = lab::Witness::outcome("tokens_per_step", lab::Witness::Moves::rises, 1.05,
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
          [model = std::make_shared<engine::Answerer>(
               engine::AnswererConfig{.eagle_head = "gauntlet-tiny-eagle3",
                                      .sequences = 16,
                                      .positions = 256 + 512 + 64})](lab::Binder& b) {
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
                .depth = b.knob("depth"),
                .width = b.knob("width"),
                .guesses = b.knob("guesses")};
          },
      .reference =
          [](const Params& p, lab::Reference& r) {
            p.model->answer_step_by_step(p.questions, r.exact<std::int32_t>("answers").data());
          },
  };
}

}  // namespace gauntlet::ch18::tree_verification
