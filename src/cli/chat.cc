// gauntlet chat: a conversation in a terminal, or over a pipe.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/speculation_options.h"
#include "core/text/text.h"
#include "engine/serving/chat_session.h"

namespace gauntlet::cli {
namespace {

using json = nlohmann::ordered_json;

struct ChatOptions {
  EngineArguments engine;
  engine::ChatSettings settings{.max_tokens = 1024, .max_context = 8192};
  SamplingArguments sampling{.given = {.temperature = 1}};
  SpeculationArguments speculation;
  Format format = Format::text;
};

constexpr const char* kHelp =
    "/reset   begin a new conversation\n"
    "/help    this list\n"
    "/exit    leave (as does Ctrl-D)\n"
    "Ctrl-C stops an answer, not the program.\n";

/// Prints an answer as it comes: what is not for the user dimmed on a terminal, under the channel's
/// name elsewhere.
class AnswerPrinter {
 public:
  AnswerPrinter() : terminal_(isatty(STDOUT_FILENO) == 1) {}

  void show(const std::string& channel, std::string_view text) {
    if (channel != channel_) {
      finish();
      channel_ = channel;
      if (!terminal_ && !channel.empty()) fmt::print("[{}]\n", channel);
      if (terminal_ && channel != "final" && !channel.empty()) fmt::print("\033[2m");
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    shown_ = true;
  }

  /// Ends the channel's text.
  void finish() {
    if (shown_) fmt::print("{}\n", terminal_ ? "\033[0m" : "");
    shown_ = false;
    channel_.clear();
    std::fflush(stdout);
  }

 private:
  bool terminal_;
  bool shown_ = false;
  std::string channel_;
};

void print_json(const engine::ChatAnswer& answer) {
  json messages = json::array();
  for (const auto& message : answer.messages) {
    messages.push_back({{"role", model::name_of(message.header.role)},
                        {"channel", message.header.channel},
                        {"recipient", message.header.recipient},
                        {"content", message.content},
                        {"malformed", message.malformed}});
  }
  fmt::print("{}\n", json{{"messages", messages},
                          {"finish_reason", engine::name_of(answer.generation.finish)}}
                         .dump());
  std::fflush(stdout);
}

void answer(engine::ChatSession& session, const std::string& text, const ChatOptions& options) {
  std::atomic<bool>& interrupted = watch_signals({SIGINT});
  interrupted = false;
  ProgressLine line;
  AnswerPrinter printer;
  engine::ChatEvents events{.cancel = &interrupted};
  events.on_prompt = [&](std::int64_t done, std::int64_t total) {
    if (done < total) line.show(fmt::format("reading  {} of {} tokens", done, total));
  };
  if (options.format == Format::text) {
    events.on_text = [&](const std::string& channel, std::string_view piece) {
      line.clear();
      printer.show(channel, piece);
    };
  }
  const auto said = session.say(text, events);
  line.clear();
  printer.finish();
  if (!said) {
    report_error(said.error());
  } else if (options.format == Format::json) {
    print_json(*said);
  } else if (said->generation.finish == engine::FinishReason::cancelled) {
    fmt::print("(stopped)\n");
  }
}

/// Until /exit or the end of the input.
void converse(engine::ChatSession& session, const ChatOptions& options) {
  const bool terminal = isatty(STDIN_FILENO) == 1 && options.format == Format::text;
  if (terminal) fmt::print("{}", kHelp);
  std::string text;
  while (true) {
    if (terminal) {
      fmt::print("\n> ");
      std::fflush(stdout);
    }
    if (!std::getline(std::cin, text)) break;
    text = trim(text);
    if (text == "/exit") return;
    if (text == "/reset") {
      session.reset();
    } else if (text == "/help") {
      fmt::print("{}", kHelp);
    } else if (text.starts_with("/")) {
      fmt::print(stderr, "gauntlet: there is no '{}'; /help lists what there is\n", text);
    } else if (!text.empty()) {
      answer(session, text, options);
    }
  }
  if (terminal) fmt::print("\n");
}

int chat(const ChatOptions& options) {
  engine::ChatSettings settings = options.settings;
  settings.sampling = options.sampling.params();
  if (const auto valid = engine::validate(settings.sampling); !valid) {
    return report_error(valid.error());
  }
  if (const auto valid = check_speculation(options.speculation); !valid) {
    return report_error(valid.error());
  }
  auto model = open_model(options.engine);
  if (!model) return report_error(model.error());
  if (!model->tokenizer) {
    return report_error({"random weights have no tokenizer and nothing to say: give a --model",
                         ErrorKind::wrong_use});
  }
  const auto harmony = model::Harmony::make(*model->tokenizer);
  if (!harmony) return report_error(harmony.error());
  settings.max_context = std::min(settings.max_context, model->weights.config.max_positions);
  const auto exported = export_layers_for(options.speculation, *model);
  if (!exported) return report_error(exported.error());
  const Capacity capacity{.positions = settings.max_context,
                          .sequence_positions = settings.max_context,
                          .export_layers = *exported};
  const auto executor = make_executor(*model, options.engine, capacity);
  if (!executor) return report_error(executor.error());
  const auto speculation =
      make_speculation(options.speculation, options.engine, capacity,
                       {.model = *model, .tokenizer = &*model->tokenizer, .executor = **executor});
  if (!speculation) return report_error(speculation.error());
  model->weights = {};  // packed by now
  engine::ChatSession session(**executor, *harmony, settings, *speculation);
  converse(session, options);
  return 0;
}

}  // namespace

void add_chat(CLI::App& app, Context& context) {
  auto options = std::make_shared<ChatOptions>();
  CLI::App* command = app.add_subcommand("chat", "talk with a model");
  add_model_options(*command, options->engine);
  command->add_option("--instructions", options->settings.instructions, "how it is to answer")
      ->option_text("TEXT");
  using Effort = model::ReasoningEffort;
  add_choice<Effort>(*command, "--effort", options->settings.effort,
                     {{"low", Effort::low}, {"medium", Effort::medium}, {"high", Effort::high}},
                     "how much it is to reason (default: medium)");
  command->add_option("--max-tokens", options->settings.max_tokens, "of one answer at most")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->capture_default_str()
      ->option_text("N");
  command->add_option("--context", options->settings.max_context, "tokens of the conversation")
      ->check(CLI::Range(std::int64_t{64}, std::int64_t{1} << 30))
      ->capture_default_str()
      ->option_text("N");
  add_sampling_options(*command, options->sampling);
  add_activations(*command, options->engine);
  add_engine_options(*command, options->engine);
  add_speculation_options(*command, options->speculation);
  add_format(*command, options->format);
  command->footer("Example:  gauntlet chat --model ~/models/gpt-oss-20b --effort low");
  command->callback([options, &context] { context.exit_code = chat(*options); });
}

}  // namespace gauntlet::cli
