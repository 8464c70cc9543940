#include "cli/speculation_options.h"

#include <fmt/format.h>

#include "engine/speculation/ngram.h"

namespace gauntlet::cli {

void add_speculation_options(CLI::App& command, SpeculationArguments& arguments) {
  add_choice<Speculate>(command, "--speculate", arguments.speculate,
                        {{"off", Speculate::off},
                         {"ngram", Speculate::ngram},
                         {"draft", Speculate::draft},
                         {"eagle3", Speculate::eagle3}},
                        "CPU: who guesses the next tokens, which change nothing but the time: "
                        "earlier text, a smaller model, or a head (default: off)");
  command
      .add_option("--draft-model", arguments.draft_model,
                  "of --speculate draft or eagle3: folder or name")
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

Expected<engine::Speculation> make_speculation(const SpeculationArguments& arguments,
                                               const EngineArguments& engine,
                                               const Capacity& capacity,
                                               engine::Executor& executor) {
  engine::Speculation made{.max_drafts = arguments.draft_tokens, .lengths = arguments.lengths};
  if (arguments.speculate == Speculate::off) return made;
  if (executor.plan().cuda) {
    return wrong_use("--speculate runs on CPUs so far: take --backend cpu, or leave it off");
  }
  static_cast<void>(engine);
  static_cast<void>(capacity);
  made.drafter = std::make_shared<engine::NgramDrafter>();
  fmt::print(stderr, "speculation: {}\n", made.describe());
  return made;
}

}  // namespace gauntlet::cli
