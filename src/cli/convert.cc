// gauntlet convert: a model as files of the other kind, or random weights as files.
#include "model/convert.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/progress.h"
#include "core/text/text.h"

namespace gauntlet::cli {
namespace {

enum class Weights { model, random };

constexpr std::uint64_t kDefaultSeed = 1;

struct ConvertOptions {
  std::string first, second;  // model and output, or the output alone
  Weights weights = Weights::model;
  std::optional<std::string> shape;
  std::int64_t layers = 0;
  std::optional<std::uint64_t> seed;
  bool force = false;
  Format format = Format::text;
};

const std::string& output_of(const ConvertOptions& options) {
  return options.weights == Weights::random ? options.first : options.second;
}

Expected<model::ModelSource> open(const ConvertOptions& options) {
  if (options.weights == Weights::random) {
    if (options.first.empty() || !options.second.empty()) {
      return wrong_use(
          "--weights random takes one path, the output: the weights come from no file");
    }
    const auto shape = model::random_shape(options.shape.value_or(kDefaultShape), options.layers);
    if (!shape) return shape.error();
    return model::random_source(*shape, options.seed.value_or(kDefaultSeed));
  }
  if (options.shape || options.seed || options.layers != 0) {
    return wrong_use("--shape, --layers and --seed are for --weights random; a model has its own");
  }
  if (options.second.empty()) {
    return wrong_use(
        "give a model and an output, as in 'gauntlet convert gauntlet-tiny tiny.gguf'");
  }
  return model::open_source(options.first);
}

int convert(const ConvertOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto source = open(options);
  if (!source) return report_error(source.error());
  const std::string& output = output_of(options);
  std::uint64_t bytes = 0;
  {
    ProgressLine line;
    const auto saved = model::save_model(
        *source, output, options.force ? model::Existing::replace : model::Existing::refuse,
        [&](std::uint64_t done, std::uint64_t total) {
          bytes = done;
          line.show(fmt::format("writing {}  {} of {}", output,
                                format_bytes(static_cast<double>(done)),
                                format_bytes(static_cast<double>(total))));
        });
    if (!saved) return report_error(saved.error());
  }
  const double ns =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  if (options.format == Format::json) {
    fmt::print("{}\n", nlohmann::json{{"model", source->weights.config.name},
                                      {"output", output},
                                      {"weight_bytes", bytes},
                                      {"seconds", ns * 1e-9}}
                           .dump(2));
  } else {
    fmt::print("{}: {} of weights in {}\n", output, format_bytes(static_cast<double>(bytes)),
               format_duration_ns(ns));
  }
  return 0;
}

}  // namespace

void add_convert(CLI::App& app, Context& context) {
  auto options = std::make_shared<ConvertOptions>();
  CLI::App* command = app.add_subcommand("convert", "A model as safetensors or GGUF");
  command->add_option("model", options->first,
                      "a folder, a .gguf file or a name; left out with --weights random");
  command->add_option("output", options->second, "a path ending in .gguf, or a folder");
  add_choice<Weights>(*command, "--weights", options->weights,
                      {{"model", Weights::model}, {"random", Weights::random}},
                      "the model's, or random ones of a shape");
  command
      ->add_option("--shape", options->shape,
                   "gpt-oss-20b, gpt-oss-120b or a config.json, for random weights")
      ->default_str(kDefaultShape);
  command->add_option("--layers", options->layers, "take only so many of the shape's layers");
  command->add_option("--seed", options->seed, "of random weights")
      ->default_str(std::to_string(kDefaultSeed));
  command->add_flag("--force", options->force, "replace what is there");
  add_format(*command, options->format);
  command->footer(
      "Example:  gauntlet convert gauntlet-tiny tiny.gguf\n"
      "          gauntlet convert model.gguf folder\n"
      "          gauntlet convert --weights random --shape gpt-oss-20b --layers 4 wide.gguf");
  command->callback([options, &context] { context.exit_code = convert(*options); });
}

}  // namespace gauntlet::cli
