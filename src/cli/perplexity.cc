// gauntlet perplexity: how well a model foretells a text.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/progress.h"
#include "core/os/files.h"
#include "engine/measure/score.h"

namespace gauntlet::cli {
namespace {

using json = nlohmann::ordered_json;

struct PerplexityOptions {
  EngineArguments engine;
  std::string file;
  std::int64_t window = 512;
  Format format = Format::text;
};

int perplexity(const PerplexityOptions& options, const EngineArguments& arguments) {
  const auto text = read_file(options.file == "-" ? "/dev/stdin" : options.file);
  if (!text) return report_error(text.error());
  auto model = open_model(arguments);
  if (!model) return report_error(model.error());
  if (!model->tokenizer) {
    return report_error({"random weights have no tokenizer and foretell nothing: give a --model",
                         ErrorKind::wrong_use});
  }
  const auto tokens = model->tokenizer->encode(*text);
  const auto executor =
      make_executor(*model, arguments, {.sequences = 1, .positions = options.window});
  if (!executor) return report_error(executor.error());
  model->weights = {};  // packed by now

  ProgressLine line;
  const auto score = engine::score_tokens(
      **executor, tokens,
      {.window = options.window, .on_window = [&](std::int64_t done, std::int64_t total) {
         line.show(fmt::format("window {} of {}", done, total));
       }});
  line.clear();
  if (!score) return report_error(score.error());
  if (options.format == Format::json) {
    fmt::print("{}\n", json{{"tokens", score->tokens}, {"perplexity", score->perplexity}}.dump());
  } else {
    fmt::print("perplexity {:.4f} over {} tokens, in {} windows of {}\n", score->perplexity,
               score->tokens, score->tokens / options.window, options.window);
  }
  return 0;
}

}  // namespace

void add_perplexity(CLI::App& app, Context& context) {
  auto options = std::make_shared<PerplexityOptions>();
  CLI::App* command = app.add_subcommand("perplexity", "how well a model foretells a text");
  add_model_options(*command, options->engine);
  command->add_option("--file", options->file, "the text ('-': stdin)")
      ->required()
      ->option_text("FILE");
  command->add_option("--window", options->window, "tokens that are foretold from each other")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->capture_default_str()
      ->option_text("N");
  add_activations(*command, options->engine);
  add_engine_options(*command, options->engine);
  refuse_option(*command, "--speculate",
                "the text is known: it is scored many tokens a step, and nothing is guessed");
  add_rank_options(*command, options->engine.ranks);
  add_format(*command, options->format);
  command->footer("Example:  gauntlet perplexity --file tests/golden/validation.txt");
  command->callback([options, &context] {
    context.exit_code = run_on_ranks(options->engine, [&](const EngineArguments& arguments) {
      return perplexity(*options, arguments);
    });
  });
}

}  // namespace gauntlet::cli
