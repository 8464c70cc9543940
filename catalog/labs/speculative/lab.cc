#include "catalog/labs/speculative/lab.h"

#include <utility>
#include <vector>

#include "lab/author/counted.h"
#include "lab/author/pair.h"

namespace gauntlet::labs::speculative {
namespace {

constexpr int kShownPositions = 7;

lab::Cost cost(const lab::Knobs& k) {
  return {.read_bytes = 4.0 * static_cast<double>(k["requests"] * k["prompt_tokens"]),
          .write_bytes = 4.0 * static_cast<double>(k["requests"] * k["new_tokens"]),
          .flops = engine::answer_flops({.requests = k["requests"],
                                         .prompt_tokens = k["prompt_tokens"],
                                         .new_tokens = k["new_tokens"]}),
          .level = lab::Cost::Level::cache};
}

lab::Witness more_tokens_per_step(double factor) {
  return lab::Witness::outcome("tokens_per_step", lab::Witness::Moves::rises, factor,
                               "tokens said over steps of the model, as the service counts them");
}

std::vector<lab::Metric> metrics() {
  const auto outcome = [](std::string name, std::string unit) {
    return lab::Metric{.name = std::move(name),
                       .unit = std::move(unit),
                       .better = lab::Metric::Better::higher,
                       .from = lab::Metric::From::outcome};
  };
  std::vector<lab::Metric> all = {
      {.name = "tokens",
       .unit = "token/s",
       .better = lab::Metric::Better::higher,
       .from = lab::Metric::From::rate,
       .amount =
           [](const lab::Knobs& k) {
             return static_cast<double>(k["requests"] * k["new_tokens"]);
           }},
      outcome("tokens_per_step", "tokens"),
      outcome("accepted_share", "of guesses")};
  for (int i = 1; i <= kShownPositions; ++i) {
    all.push_back(outcome("accepted_" + std::to_string(i), "of drafts, right as far as there"));
  }
  return all;
}

}  // namespace

engine::Speculation chains(const Params& p, std::shared_ptr<engine::Drafter> drafter,
                           std::vector<std::shared_ptr<engine::Drafter>> others) {
  return {.drafter = std::move(drafter),
          .others = std::move(others),
          .max_drafts = p.drafts,
          .lengths = engine::DraftLengths::fixed};
}

lab::Side counted_answers(const Params& p, const engine::Speculation& speculation) {
  std::vector<lab::Count> counts;
  for (engine::AnswerRate& rate : p.model->rates(kShownPositions)) {
    counts.push_back({std::move(rate.name), std::move(rate.total), std::move(rate.per)});
  }
  lab::Side side = lab::counted(std::move(counts), [p, speculation] {
    p.model->answer(p.questions, speculation, p.answers);
  });
  side.helpers = lab::Helpers::threads;
  return side;
}

lab::Lab<Params> lab() {
  return {
      .title = "a token a step → guesses looked up → of a smaller model → of an EAGLE-3 head",
      .technique = "drafters",
      .needs = {"gauntlet-draft", "gauntlet-tiny-eagle3"},
      .knobs = {{.name = "requests",
                 .cpu = 1,
                 .max = 16,
                 .help = "answered at once: the batch, in which rows cost more"},
                {.name = "drafts", .cpu = 3, .max = 7, .help = "guesses of one request in a step"},
                {.name = "text",
                 .cpu = 1,
                 .min = 0,
                 .max = 1,
                 .help = "1: greedy answers; 0: drawn at temperature 1, which are harder to guess"},
                {.name = "prompt_tokens", .cpu = 64, .min = 8, .max = 256, .help = "of fiction"},
                {.name = "new_tokens", .cpu = 48, .max = 512, .help = "of each answer"}},
      .cpu =
          lab::BackendFacts{
              .claim = "Who has seen more of the model guesses better, and takes longer to guess.",
              .cost = cost,
              .witness = lab::Witness::none("each rung has its own"),
              .rungs = {{.name = "ngram",
                         .claim = "A text that repeats itself is guessed for nothing.",
                         .witness = more_tokens_per_step(1.1)},
                        {.name = "draft",
                         .claim = "A smaller model guesses new text, too.",
                         .witness = more_tokens_per_step(1.1)},
                        {.name = "fewer_experts",
                         .claim =
                             "The model itself needs no second one beside it, and guesses with "
                             "one expert of four at nearly the price of a step.",
                         .witness = lab::Witness::none("what it saves is the other model")},
                        {.name = "eagle3",
                         .claim = "A head that sees the model's residuals guesses better than a "
                                  "model of its own size, in a layer a guess.",
                         .witness = more_tokens_per_step(1.02)},
                        {.name = "eagle3_tree",
                         .claim = "Where the likeliest guess is wrong the next may be right.",
                         .witness = more_tokens_per_step(1.05)},
                        {.name = "two_drafters",
                         .claim = "Where the text has gone on before, nobody else has to guess.",
                         .witness = lab::Witness::none("tokens per step need not rise")}}},
      .metrics = metrics(),
      .bind =
          [model = std::make_shared<engine::Answerer>(
               engine::AnswererConfig{.eagle_head = "gauntlet-tiny-eagle3",
                                      .sequences = 16,
                                      .positions = 256 + 512 + 16})](lab::Binder& b) {
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

}  // namespace gauntlet::labs::speculative
