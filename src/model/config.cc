// The shape of a model: the published ones, and what makes any of them impossible.
#include "model/config.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <optional>

#include "core/os/files.h"
#include "core/text/text.h"

namespace gauntlet::model {
namespace {

/// Bounds that no product of two counts can overflow, far above any gpt-oss.
struct Bound {
  const char* name;
  std::int64_t value;
  std::int64_t least;
  std::int64_t most;
};

std::optional<std::string> out_of_range(const ModelConfig& config) {
  const Bound bounds[] = {
      {"the number of layers", config.num_layers, 1, 1024},
      {"the hidden size", config.hidden, 1, 1 << 20},
      {"the intermediate size", config.intermediate, 1, 1 << 20},
      {"the number of heads", config.num_heads, 1, 1 << 14},
      {"the number of KV heads", config.num_kv_heads, 1, 1 << 14},
      {"the head size", config.head_dim, 2, 1 << 14},
      {"the number of experts", config.num_experts, 1, 1 << 14},
      {"the number of experts per token", config.experts_per_token, 1, 1 << 14},
      {"the vocabulary", config.vocab, 1, 1 << 28},
      {"the number of positions", config.max_positions, 1, std::int64_t{1} << 32},
      {"the sliding window", config.sliding_window, 1, std::int64_t{1} << 32},
      {"the BOS id", config.bos_id, -1, config.vocab - 1},
  };
  for (const Bound& bound : bounds) {
    if (bound.value < bound.least || bound.value > bound.most) {
      return fmt::format("{} is {}, which is not between {} and {}", bound.name, bound.value,
                         bound.least, bound.most);
    }
  }
  for (const std::int64_t id : config.eos_ids) {
    if (id < 0 || id >= config.vocab) {
      return fmt::format("the end-of-sequence id {} is not in the vocabulary of {}", id,
                         config.vocab);
    }
  }
  return std::nullopt;
}

std::optional<std::string> not_positive(const ModelConfig& config) {
  const std::pair<const char*, double> numbers[] = {
      {"the epsilon of the norms", config.rms_epsilon},
      {"rope_theta", config.rope_theta},
      {"the factor of YaRN", config.rope.factor},
      {"beta_fast of YaRN", config.rope.beta_fast},
      {"beta_slow of YaRN", config.rope.beta_slow},
      {"the original number of positions", config.rope.original_positions},
      {"swiglu_limit", config.swiglu_limit},
  };
  for (const auto& [name, value] : numbers) {
    if (!std::isfinite(value) || value <= 0) return fmt::format("{} is {}", name, value);
  }
  return std::nullopt;
}

std::optional<std::string> contradiction(const ModelConfig& config) {
  if (config.num_heads % config.num_kv_heads != 0) {
    return fmt::format("{} heads cannot share {} KV heads evenly", config.num_heads,
                       config.num_kv_heads);
  }
  if (config.head_dim % 2 != 0) {
    return fmt::format("the head size {} is odd, so its halves cannot rotate", config.head_dim);
  }
  if (config.experts_per_token > config.num_experts) {
    return fmt::format("a token takes {} experts of {}", config.experts_per_token,
                       config.num_experts);
  }
  if (static_cast<std::int64_t>(config.attention.size()) != config.num_layers) {
    return fmt::format("{} layer types are given for {} layers", config.attention.size(),
                       config.num_layers);
  }
  if (config.rope.factor < 1) return fmt::format("the factor of YaRN is {}", config.rope.factor);
  if (config.rope_theta <= 1) return fmt::format("rope_theta is {}", config.rope_theta);
  if (config.rope.beta_fast <= config.rope.beta_slow) {
    return fmt::format("beta_fast of YaRN ({}) is not above beta_slow ({})", config.rope.beta_fast,
                       config.rope.beta_slow);
  }
  return std::nullopt;
}

}  // namespace

Expected<void> validate(const ModelConfig& config, std::string_view where) {
  for (const auto find_fault : {out_of_range, not_positive, contradiction}) {
    if (const auto fault = find_fault(config)) {
      return Error{.message = fmt::format("{}: {}", where, *fault)};
    }
  }
  return {};
}

Expected<ModelConfig> named_shape(std::string_view name) {
  const bool large = name == "gpt-oss-120b";
  if (!large && name != "gpt-oss-20b") {
    const std::string near = nearest(std::string(name), {"gpt-oss-20b", "gpt-oss-120b"});
    return Error{.message = fmt::format("there is no shape '{}', {}", name,
                                        near.empty() ? "use gpt-oss-20b, gpt-oss-120b or a file"
                                                     : fmt::format("did you mean '{}'?", near)),
                 .kind = ErrorKind::wrong_use};
  }
  ModelConfig config{.name = std::string(name),
                     .num_layers = large ? 36 : 24,
                     .hidden = 2880,
                     .intermediate = 2880,
                     .num_heads = 64,
                     .num_kv_heads = 8,
                     .head_dim = 64,
                     .num_experts = large ? 128 : 32,
                     .experts_per_token = 4,
                     .vocab = 201088,
                     .max_positions = 131072,
                     .sliding_window = 128,
                     .rope = {.factor = 32, .original_positions = 4096},
                     .bos_id = 199998,
                     .eos_ids = {200002, 199999, 200012}};
  config.attention = alternating_attention(config.num_layers);
  return config;
}

Expected<ModelConfig> random_shape(const std::string& name_or_file, std::int64_t num_layers) {
  auto config = named_shape(name_or_file);
  if (!config && name_or_file.ends_with(".json")) {
    const auto text = read_file(name_or_file);
    if (!text) return text.error();
    config = parse_config(*text, name_or_file);
    if (config) config->name = std::filesystem::path(name_or_file).stem().string();
  }
  if (!config) return config;
  if (config->hidden % 32 != 0 || config->intermediate % 32 != 0) {
    return Error{.message = fmt::format("{}: the hidden size {} and the intermediate size {} must "
                                        "be multiples of 32, the block of MXFP4",
                                        name_or_file, config->hidden, config->intermediate)};
  }
  if (num_layers == 0) return config;
  if (num_layers < 0 || num_layers > config->num_layers) {
    return Error{.message = fmt::format("{} has {} layers, so {} of them cannot be taken",
                                        name_or_file, config->num_layers, num_layers),
                 .kind = ErrorKind::wrong_use};
  }
  config->num_layers = num_layers;
  config->attention.resize(static_cast<std::size_t>(num_layers));
  return config;
}

std::vector<AttentionSpan> alternating_attention(std::int64_t num_layers) {
  std::vector<AttentionSpan> spans;
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    spans.push_back(layer % 2 == 0 ? AttentionSpan::sliding : AttentionSpan::full);
  }
  return spans;
}

}  // namespace gauntlet::model
