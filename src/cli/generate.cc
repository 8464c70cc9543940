// gauntlet generate: one prompt to one text.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/speculation_options.h"
#include "core/os/files.h"
#include "engine/serving/generator.h"

namespace gauntlet::cli {
namespace {

using json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;
using Ids = std::vector<std::int32_t>;

struct GenerateOptions {
  EngineArguments engine;
  std::optional<std::string> prompt;
  std::string prompt_file;
  std::string prompt_ids;
  std::int64_t max_tokens = 128;
  SamplingArguments sampling;
  SpeculationArguments speculation;
  std::vector<std::string> stops;
  bool ignore_eos = false;
  Format format = Format::text;
};

Expected<Ids> parse_ids(const std::string& text) {
  Ids ids;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int32_t id = 0;
    const auto [next, failed] = std::from_chars(at, end, id);
    if (failed != std::errc() || (next != end && *next != ',')) {
      return wrong_use(fmt::format("--prompt-ids takes ids as in 1,2,3, not '{}'", text));
    }
    ids.push_back(id);
    if (next == end) return ids;
    at = next + 1;
  }
}

/// BOS where the model wants one, then the text.
Ids encode(const std::string& text, const OpenModel& model) {
  Ids ids = model.tokenizer->encode(text);
  const model::ModelConfig& config = model.weights.config;
  if (config.add_bos) ids.insert(ids.begin(), static_cast<std::int32_t>(config.bos_id));
  return ids;
}

Expected<Ids> prompt_of(const GenerateOptions& options, const OpenModel& model) {
  if (!options.prompt_ids.empty()) return parse_ids(options.prompt_ids);
  if (!model.tokenizer) {
    return wrong_use("random weights have no tokenizer: give the prompt as --prompt-ids");
  }
  if (options.prompt) return encode(*options.prompt, model);
  const auto text = read_file(options.prompt_file == "-" ? "/dev/stdin" : options.prompt_file);
  if (!text) return text.error();
  return encode(*text, model);
}

/// What can be refused before a model is loaded.
Expected<void> check_options(const GenerateOptions& options) {
  const int prompts = int(options.prompt.has_value()) + int(!options.prompt_file.empty()) +
                      int(!options.prompt_ids.empty());
  if (prompts != 1) {
    return wrong_use("give the prompt as one of --prompt, --prompt-file and --prompt-ids");
  }
  if (auto valid = check_speculation(options.speculation); !valid) return valid;
  return engine::validate(options.sampling.params());
}

void print_json(const Ids& prompt, const engine::Generation& made, double load_ms) {
  const json decode = made.decode_tokens_per_s ? json(*made.decode_tokens_per_s) : json();
  const engine::SpeculationCounts& guessed = made.speculation;
  fmt::print("{}\n", json{{"prompt_ids", prompt},
                          {"output_ids", made.output},
                          {"text", made.text},
                          {"finish_reason", engine::name_of(made.finish)},
                          {"speculation",
                           {{"steps", guessed.steps},
                            {"drafted", guessed.drafted},
                            {"accepted", guessed.accepted},
                            {"by_position", guessed.by_position}}},
                          {"timing",
                           {{"load_ms", load_ms},
                            {"ttft_ms", made.first_token_ms},
                            {"prefill_tok_s", made.prefill_tokens_per_s},
                            {"decode_tok_s", decode}}}}
                         .dump());
}

/// On a terminal only, apart from the text.
void print_summary(const Ids& prompt, const engine::Generation& made, double load_ms) {
  if (isatty(STDERR_FILENO) == 0) return;
  std::string decode;
  if (made.decode_tokens_per_s) decode = fmt::format(", then {:.1f}/s", *made.decode_tokens_per_s);
  fmt::print(stderr,
             "[{} + {} tokens, {}; loaded in {:.0f} ms, first token after {:.0f} ms "
             "({:.1f} tokens/s){}]\n",
             prompt.size(), made.output.size(), engine::name_of(made.finish), load_ms,
             made.first_token_ms, made.prefill_tokens_per_s, decode);
}

int generate(const GenerateOptions& options, const EngineArguments& arguments) {
  const auto start = Clock::now();
  auto model = open_model(arguments);
  if (!model) return report_error(model.error());
  const auto prompt = prompt_of(options, *model);
  if (!prompt) return report_error(prompt.error());
  const std::int64_t positions =
      std::min(std::ssize(*prompt) + options.max_tokens, model->weights.config.max_positions);
  const auto exported = export_layers_for(options.speculation, *model);
  if (!exported) return report_error(exported.error());
  const Capacity capacity{
      .positions = positions, .sequence_positions = positions, .export_layers = *exported};
  const auto executor = make_executor(*model, arguments, capacity);
  if (!executor) return report_error(executor.error());
  const auto speculation =
      make_speculation(options.speculation, arguments, capacity,
                       {.model = *model,
                        .tokenizer = model->tokenizer ? &*model->tokenizer : nullptr,
                        .executor = **executor});
  if (!speculation) return report_error(speculation.error());
  model->weights = {};  // packed by now
  const double load_ms = milliseconds_since(start);

  engine::GenerationRequest request{.prompt = *prompt,
                                    .max_tokens = options.max_tokens,
                                    .sampling = options.sampling.params(),
                                    .stops = options.stops};
  if (options.ignore_eos) request.end_of_sequence = engine::EndOfSequence::ignored;
  ProgressLine line;
  engine::GenerationEvents events{.cancel = &watch_signals({SIGINT})};
  events.on_prompt = [&](std::int64_t done, std::int64_t total) {
    if (done < total) line.show(fmt::format("prompt  {} of {} tokens", done, total));
  };
  if (options.format == Format::text) {
    events.on_token = [&](std::int32_t, std::string_view text) {
      line.clear();
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    };
  }
  engine::Generator generator(**executor, model->tokenizer ? &*model->tokenizer : nullptr,
                              *speculation);
  const auto made = generator.run(request, events);
  line.clear();
  if (!made) return report_error(made.error());
  if (options.format == Format::json) {
    print_json(*prompt, *made, load_ms);
  } else {
    fmt::print("\n");
    print_summary(*prompt, *made, load_ms);
  }
  return made->finish == engine::FinishReason::cancelled ? 130 : 0;
}

int start(const GenerateOptions& options) {
  if (const auto valid = check_options(options); !valid) return report_error(valid.error());
  return run_on_ranks(options.engine, [&](const EngineArguments& arguments) {
    return generate(options, arguments);
  });
}

}  // namespace

void add_generate(CLI::App& app, Context& context) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* command = app.add_subcommand("generate", "go on from a prompt with a model");
  add_model_options(*command, options->engine);
  command->add_option("--prompt", options->prompt, "a text")->option_text("TEXT");
  command->add_option("--prompt-file", options->prompt_file, "a text in a file ('-': stdin)")
      ->option_text("FILE");
  command->add_option("--prompt-ids", options->prompt_ids, "token ids, taken as they are")
      ->option_text("1,2,3");
  command->add_option("--max-tokens", options->max_tokens, "to make at most")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->capture_default_str()
      ->option_text("N");
  add_sampling_options(*command, options->sampling);
  command->add_option("--stop", options->stops, "ends the text before this string; repeatable")
      ->allow_extra_args(false)
      ->option_text("TEXT");
  command->add_flag("--ignore-eos", options->ignore_eos, "go on after the end of a sequence");
  add_activations(*command, options->engine);
  add_engine_options(*command, options->engine);
  add_rank_options(*command, options->engine.ranks);
  add_speculation_options(*command, options->speculation);
  add_format(*command, options->format);
  command->footer("Example:  gauntlet generate --prompt 'Once upon a time' --max-tokens 64");
  command->callback([options, &context] { context.exit_code = start(*options); });
}

}  // namespace gauntlet::cli
