#include "cli/speculation_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "engine/speculation/cuda_eagle.h"
#include "engine/speculation/eagle.h"
#include "engine/speculation/model_drafter.h"
#include "engine/speculation/ngram.h"
#include "engine/speculation/self_drafter.h"
#include "model/eagle_head.h"

namespace gauntlet::cli {

namespace {

/// With two of the four that gauntlet-tiny has for a token 66% of guesses in threes were right (600
/// greedy tokens), with one 39%.
constexpr int kDraftExperts = 2;

/// Behind the first, in the order of Speculate.
std::vector<std::string> drafter_words() { return {"off", "ngram", "draft", "eagle3", "experts"}; }

/// "ngram,experts"; "off" stands alone.
std::vector<Speculate> drafters_of(const std::string& option, const std::string& text) {
  const std::vector<std::string> words = drafter_words();
  std::vector<Speculate> drafters;
  for (std::size_t from = 0; from <= text.size();) {
    const std::string word = text.substr(from, text.find(',', from) - from);
    from += word.size() + 1;
    const auto found = std::ranges::find(words, word);
    if (found == words.end()) refuse_choice(option, word, words);
    if (found == words.begin() && word != text) {
      throw CLI::ValidationError(option, "off stands alone");
    }
    if (found == words.begin()) return {};
    const auto drafter = static_cast<Speculate>(found - words.begin() - 1);
    if (std::ranges::find(drafters, drafter) != drafters.end()) {
      throw CLI::ValidationError(option, fmt::format("{} is there twice", word));
    }
    drafters.push_back(drafter);
  }
  return drafters;
}

}  // namespace

bool SpeculationArguments::has(Speculate drafter) const {
  return std::ranges::find(speculate, drafter) != speculate.end();
}

void add_speculation_options(CLI::App& command, SpeculationArguments& arguments) {
  const std::string option = "--speculate";
  command
      .add_option_function<std::string>(
          option,
          [option, &arguments](const std::string& text) {
            arguments.speculate = drafters_of(option, text);
          },
          "who guesses the next tokens, which change nothing but the time: earlier text, a "
          "smaller model, a head, or the model itself with fewer experts; of several, with commas "
          "between them, whichever pays (default: off)")
      ->option_text(fmt::format("{}", fmt::join(drafter_words(), "|")))
      ->default_str("off");
  command
      .add_option("--draft-model", arguments.draft_model,
                  "of --speculate draft or eagle3: folder or name; \"random\": a head of the size "
                  "of published "
                  "ones, which shows what guessing costs")
      ->option_text("DIR|NAME");
  command.add_option("--draft-tokens", arguments.draft_tokens, "guessed in one step at most")
      ->check(CLI::Range(std::int64_t{1}, engine::kMostGuesses))
      ->capture_default_str()
      ->option_text("N");
  command
      .add_option("--draft-experts", arguments.draft_experts,
                  "of --speculate experts: for each token of a guess (default: 2 where the model "
                  "has more, else 1)")
      ->check(CLI::Range(1, 2))
      ->option_text("N");
  using engine::DraftLengths;
  add_choice<DraftLengths>(
      command, "--draft-lengths", arguments.lengths,
      {{"measured", DraftLengths::measured}, {"fixed", DraftLengths::fixed}},
      "as many guesses as pay by what is measured, or always as many (default: measured)");
  command
      .add_option("--draft-tree", arguments.draft_tree,
                  "guesses branch: W of each level are followed, each by W, over D levels; the "
                  "likeliest --draft-tokens of them are verified")
      ->option_text("W,D");
}

namespace {

/// A chain where nothing was asked for.
Expected<engine::TreeShape> tree_of(const std::string& text) {
  if (text.empty()) return engine::TreeShape();
  engine::TreeShape tree;
  const char* end = text.data() + text.size();
  const auto width = std::from_chars(text.data(), end, tree.width);
  const bool has_depth = width.ec == std::errc() && width.ptr != end && *width.ptr == ',';
  const auto depth = std::from_chars(has_depth ? width.ptr + 1 : end, end, tree.depth);
  constexpr std::int64_t kMostWidth = 16;
  if (depth.ec != std::errc() || depth.ptr != end || tree.width < 2 || tree.width > kMostWidth ||
      tree.depth < 1 || tree.depth > engine::kMostGuesses) {
    return wrong_use(
        fmt::format("--draft-tree {}: give a width from 2 to {} and a depth from 1 to "
                    "{}, as in --draft-tree 3,5",
                    text, kMostWidth, engine::kMostGuesses));
  }
  return tree;
}

}  // namespace

Expected<void> check_speculation(const SpeculationArguments& arguments) {
  if (arguments.has(Speculate::draft) && arguments.has(Speculate::eagle3)) {
    return wrong_use("--speculate takes one of draft and eagle3: there is one --draft-model");
  }
  const bool needs_model = arguments.has(Speculate::draft) || arguments.has(Speculate::eagle3);
  if (needs_model && arguments.draft_model.empty()) {
    return wrong_use("--speculate draft and eagle3 need a --draft-model");
  }
  if (!needs_model && !arguments.draft_model.empty()) {
    return wrong_use("--draft-model is for --speculate draft or eagle3");
  }
  if (arguments.draft_experts && !arguments.has(Speculate::experts)) {
    return wrong_use("--draft-experts is for --speculate experts");
  }
  if (const auto tree = tree_of(arguments.draft_tree); !tree) return tree.error();
  if (!arguments.draft_tree.empty() && arguments.speculate.empty()) {
    return wrong_use("--draft-tree is for --speculate ngram, draft or eagle3");
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
         .longest = model.weights.config.max_positions,
         .seam = executor.device_seam()});
  }
  return DrafterPtr(std::make_shared<engine::EagleDrafter>(std::make_shared<engine::EagleLayer>(
      *head, model.weights.embedding, model.weights.storage, executor.plan().simd)));
}

/// With as many experts as the model has, a guess would cost what it guesses.
Expected<DrafterPtr> fewer_experts(const SpeculationArguments& arguments,
                                   engine::Executor& executor) {
  const std::int64_t all = executor.config().experts_per_token;
  const auto experts = arguments.draft_experts.value_or(
      static_cast<int>(std::min<std::int64_t>(kDraftExperts, all - 1)));
  if (experts < 1 || experts >= all) {
    return wrong_use(
        fmt::format("--speculate experts takes fewer than the {} experts that {} has "
                    "for each token",
                    all, executor.config().name));
  }
  return DrafterPtr(std::make_shared<engine::SelfDrafter>(executor, experts));
}

Expected<DrafterPtr> make_drafter(Speculate drafter, const SpeculationArguments& arguments,
                                  const EngineArguments& engine, const Capacity& capacity,
                                  const SpeculationTarget& target) {
  switch (drafter) {
    case Speculate::ngram:
      return DrafterPtr(std::make_shared<engine::NgramDrafter>());
    case Speculate::draft:
      return draft_model(arguments, engine, capacity, target);
    case Speculate::eagle3:
      return eagle_head(arguments, target.model, target.executor);
    case Speculate::experts:
      return fewer_experts(arguments, target.executor);
  }
  return DrafterPtr();
}

}  // namespace

Expected<std::vector<int>> export_layers_for(const SpeculationArguments& arguments,
                                             const OpenModel& model) {
  if (!arguments.has(Speculate::eagle3)) return std::vector<int>();
  const auto head = load_head(arguments, model);
  if (!head) return head.error();
  return head->config.export_layers();
}

Expected<engine::Speculation> make_speculation(const SpeculationArguments& arguments,
                                               const EngineArguments& engine,
                                               const Capacity& capacity,
                                               const SpeculationTarget& target) {
  engine::Speculation made{.max_drafts = arguments.draft_tokens, .lengths = arguments.lengths};
  if (arguments.speculate.empty()) return made;
  made.tree = *tree_of(arguments.draft_tree);
  for (const Speculate wanted : arguments.speculate) {
    auto drafter = make_drafter(wanted, arguments, engine, capacity, target);
    if (!drafter) return drafter.error();
    if (!made.tree.is_chain() && !(*drafter)->fans_out()) {
      return wrong_use(
          fmt::format("--draft-tree: {} guesses one token after the other and cannot branch; take "
                      "--speculate ngram, draft or eagle3",
                      (*drafter)->name()));
    }
    if (made.drafter) {
      made.others.push_back(std::move(*drafter));
    } else {
      made.drafter = std::move(*drafter);
    }
  }
  fmt::print(stderr, "speculation: {}\n", made.describe());
  return made;
}

}  // namespace gauntlet::cli
