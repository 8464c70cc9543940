#include "cli/speculation_options.h"

#include <fmt/format.h>

#include "engine/speculation/cuda_eagle.h"
#include "engine/speculation/eagle.h"
#include "engine/speculation/model_drafter.h"
#include "engine/speculation/ngram.h"
#include "model/eagle_head.h"

namespace gauntlet::cli {

void add_speculation_options(CLI::App& command, SpeculationArguments& arguments) {
  add_choice<Speculate>(command, "--speculate", arguments.speculate,
                        {{"off", Speculate::off},
                         {"ngram", Speculate::ngram},
                         {"draft", Speculate::draft},
                         {"eagle3", Speculate::eagle3}},
                        "who guesses the next tokens, which change nothing but the time: "
                        "earlier text, a smaller model, or a head (default: off)");
  command
      .add_option("--draft-model", arguments.draft_model,
                  "of --speculate draft or eagle3: folder or name; \"random\": a head of the size "
                  "of published "
                  "ones, which shows what guessing costs")
      ->option_text("DIR|NAME");
  command.add_option("--draft-tokens", arguments.draft_tokens, "guessed in one step at most")
      ->check(CLI::Range(1, 31))
      ->capture_default_str()
      ->option_text("N");
  using engine::DraftLengths;
  add_choice<DraftLengths>(
      command, "--draft-lengths", arguments.lengths,
      {{"measured", DraftLengths::measured}, {"fixed", DraftLengths::fixed}},
      "as many guesses as pay by what is measured, or always as many (default: measured)");
}

Expected<void> check_speculation(const SpeculationArguments& arguments) {
  const bool needs_model =
      arguments.speculate == Speculate::draft || arguments.speculate == Speculate::eagle3;
  if (needs_model && arguments.draft_model.empty()) {
    return wrong_use("--speculate draft and eagle3 need a --draft-model");
  }
  if (!needs_model && !arguments.draft_model.empty()) {
    return wrong_use("--draft-model is for --speculate draft or eagle3");
  }
  return {};
}

namespace {

using DrafterPtr = std::shared_ptr<engine::Drafter>;

Expected<void> same_tokens(const OpenModel& draft, const SpeculationTarget& target) {
  const auto differs = [&](const std::string& how) {
    return wrong_use(fmt::format("{} cannot guess for {}: {}", draft.weights.config.name,
                                 target.model.weights.config.name, how));
  };
  const std::int64_t vocab = target.model.weights.config.vocab;
  if (draft.weights.config.vocab != vocab) {
    return differs(fmt::format("it has {} tokens, and not {}", draft.weights.config.vocab, vocab));
  }
  if (!draft.tokenizer || !target.tokenizer) return {};
  for (std::int32_t id = 0; id < static_cast<std::int32_t>(vocab); ++id) {
    if (draft.tokenizer->token_bytes(id) == target.tokenizer->token_bytes(id)) continue;
    return differs(fmt::format("token {} is another text", id));
  }
  return {};
}

Expected<DrafterPtr> draft_model(const SpeculationArguments& arguments,
                                 const EngineArguments& engine, const Capacity& capacity,
                                 const SpeculationTarget& target) {
  EngineArguments of_draft = engine;
  of_draft.model = arguments.draft_model;
  of_draft.backend = target.executor.plan().cuda ? BackendChoice::cuda : BackendChoice::cpu;
  of_draft.weights = WeightSource::files;
  of_draft.ranks = {};
  of_draft.job = nullptr;  // small enough for one rank
  const auto draft = open_model(of_draft);
  if (!draft) return draft.error();
  if (const auto same = same_tokens(*draft, target); !same) return same.error();
  auto executor = make_executor(*draft, of_draft, capacity);
  if (!executor) return executor.error();
  return DrafterPtr(std::make_shared<engine::ModelDrafter>(std::move(*executor)));
}

Expected<model::EagleHead> load_head(const SpeculationArguments& arguments,
                                     const OpenModel& model) {
  constexpr std::uint64_t kSeed = 1;
  if (arguments.draft_model == "random") {
    return model::random_eagle_head(model.weights.config, kSeed);
  }
  const auto files = model::open_model(arguments.draft_model);
  if (!files) return files.error();
  return model::load_eagle_head(*files, model.weights.config);
}

Expected<DrafterPtr> eagle_head(const SpeculationArguments& arguments, const OpenModel& model,
                                engine::Executor& executor) {
  const auto head = load_head(arguments, model);
  if (!head) return head.error();
  if (executor.plan().cuda) {
    const engine::KvPool& pool = executor.kv();
    return engine::make_cuda_eagle_drafter(
        *head, model.weights.embedding,
        {.positions = pool.free_pages(engine::KvGroup::full) * pool.config().page_tokens,
         .longest = model.weights.config.max_positions});
  }
  return DrafterPtr(std::make_shared<engine::EagleDrafter>(std::make_shared<engine::EagleLayer>(
      *head, model.weights.embedding, model.weights.storage, executor.plan().simd)));
}

Expected<DrafterPtr> make_drafter(const SpeculationArguments& arguments,
                                  const EngineArguments& engine, const Capacity& capacity,
                                  const SpeculationTarget& target) {
  switch (arguments.speculate) {
    case Speculate::off:
      break;
    case Speculate::ngram:
      return DrafterPtr(std::make_shared<engine::NgramDrafter>());
    case Speculate::draft:
      return draft_model(arguments, engine, capacity, target);
    case Speculate::eagle3:
      return eagle_head(arguments, target.model, target.executor);
  }
  return DrafterPtr();
}

}  // namespace

Expected<std::vector<int>> export_layers_for(const SpeculationArguments& arguments,
                                             const OpenModel& model) {
  if (arguments.speculate != Speculate::eagle3) return std::vector<int>();
  const auto head = load_head(arguments, model);
  if (!head) return head.error();
  return head->config.export_layers();
}

Expected<engine::Speculation> make_speculation(const SpeculationArguments& arguments,
                                               const EngineArguments& engine,
                                               const Capacity& capacity,
                                               const SpeculationTarget& target) {
  engine::Speculation made{.max_drafts = arguments.draft_tokens, .lengths = arguments.lengths};
  if (arguments.speculate == Speculate::off) return made;
  auto drafter = make_drafter(arguments, engine, capacity, target);
  if (!drafter) return drafter.error();
  made.drafter = std::move(*drafter);
  fmt::print(stderr, "speculation: {}\n", made.describe());
  return made;
}

}  // namespace gauntlet::cli
