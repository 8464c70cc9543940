// The shape of a model from the metadata of its GGUF file.
#include <fmt/format.h>

#include <algorithm>

#include "model/config.h"
#include "model/files/gguf.h"
#include "model/files/printable.h"

namespace gauntlet::model {
namespace {

/// Reads keys of gpt-oss and keeps the first thing that is wrong.
class Fields {
 public:
  explicit Fields(const GgufFile& file) : file_(file) {}

  std::int64_t integer(const char* key) {
    return get(key, file_.integer(name(key)), "whole number");
  }
  double number(const char* key) { return get(key, file_.number(name(key)), "number"); }
  std::int64_t integer_or(const char* key, std::int64_t otherwise) {
    return has(key) ? integer(key) : otherwise;
  }
  double number_or(const char* key, double otherwise) { return has(key) ? number(key) : otherwise; }
  bool has(const char* key) const { return file_.has(name(key)); }
  static std::string name(const char* key) { return fmt::format("gpt-oss.{}", key); }

  void refuse(const std::string& what) {
    if (message_.empty()) message_ = fmt::format("{}: {}", file_.where(), what);
  }
  bool failed() const { return !message_.empty(); }
  Error error() const { return {.message = message_}; }

 private:
  template <class T>
  T get(const char* key, const std::optional<T>& value, const char* kind) {
    if (!value) {
      refuse(has(key) ? fmt::format("'{}' is not a {}", name(key), kind)
                      : fmt::format("'{}' is missing", name(key)));
    }
    return value.value_or(T{});
  }

  const GgufFile& file_;
  std::string message_;
};

/// Alternating, unless the file names a period (every n-th layer is full) or lists the layers.
void read_attention(const GgufFile& file, Fields& fields, ModelConfig& config) {
  if (config.num_layers < 1 || config.num_layers > 1024) return;  // validate() refuses it
  config.attention = alternating_attention(config.num_layers);
  if (!fields.has("attention.sliding_window_pattern")) return;
  const std::string key = Fields::name("attention.sliding_window_pattern");
  if (const auto listed = file.flags(key)) {
    config.attention.clear();
    for (const bool sliding : *listed) {
      config.attention.push_back(sliding ? AttentionSpan::sliding : AttentionSpan::full);
    }
    return;
  }
  const auto period = file.integer(key);
  if (!period || *period < 1) return fields.refuse(fmt::format("'{}' is not a pattern", key));
  for (std::size_t i = 0; i < config.attention.size(); ++i) {
    const bool full = (static_cast<std::int64_t>(i) + 1) % *period == 0;
    config.attention[i] = full ? AttentionSpan::full : AttentionSpan::sliding;
  }
}

void read_rope(const GgufFile& file, Fields& fields, ModelConfig& config) {
  config.rope_theta = fields.number("rope.freq_base");
  config.rope.original_positions = static_cast<double>(config.max_positions);
  const std::string key = Fields::name("rope.scaling.type");
  const std::string_view type = file.text(key).value_or("none");
  if (type == "none") return;
  if (type != "yarn") {
    return fields.refuse(fmt::format("'{}' is not yarn, which gpt-oss uses", key));
  }
  config.rope = {.factor = fields.number("rope.scaling.factor"),
                 .original_positions = fields.number("rope.scaling.original_context_length"),
                 .beta_fast = fields.number_or("rope.scaling.yarn_beta_fast", 32),
                 .beta_slow = fields.number_or("rope.scaling.yarn_beta_slow", 1)};
}

/// A GGUF names one token as the end; gpt-oss has three, known by their text.
void read_tokens(const GgufFile& file, ModelConfig& config) {
  config.bos_id = file.integer("tokenizer.ggml.bos_token_id").value_or(-1);
  config.add_bos = file.flag("tokenizer.ggml.add_bos_token").value_or(false);
  const auto add_end = [&](std::int64_t id) {
    if (std::find(config.eos_ids.begin(), config.eos_ids.end(), id) == config.eos_ids.end()) {
      config.eos_ids.push_back(id);
    }
  };
  if (const auto id = file.integer("tokenizer.ggml.eos_token_id")) add_end(*id);
  const auto tokens = file.texts("tokenizer.ggml.tokens");
  if (!tokens) return;
  for (const std::string_view end : {"<|return|>", "<|endoftext|>", "<|call|>"}) {
    const auto found = std::find(tokens->begin(), tokens->end(), end);
    if (found != tokens->end()) add_end(found - tokens->begin());
  }
}

/// The vocabulary, which not every writer names: as many as there are embeddings.
std::int64_t vocabulary_of(const GgufFile& file) {
  if (const auto named = file.integer("gpt-oss.vocab_size")) return *named;
  for (const Tensor& tensor : file.tensors()) {
    if (tensor.name == "token_embd.weight") return tensor.shape.front();
  }
  return 0;
}

}  // namespace

Expected<ModelConfig> parse_gguf_config(const GgufFile& file) {
  const std::string_view architecture = file.text("general.architecture").value_or("");
  if (architecture != "gpt-oss") {
    return Error{.message = fmt::format("{}: the architecture is '{}'; this engine runs gpt-oss",
                                        file.where(), shown(architecture))};
  }
  if (const auto parts = file.integer("split.count"); parts && *parts > 1) {
    return Error{.message = fmt::format("{}: this is one of {} parts; merge them into one file",
                                        file.where(), *parts)};
  }
  Fields fields(file);
  ModelConfig config{.num_layers = fields.integer("block_count"),
                     .hidden = fields.integer("embedding_length"),
                     .intermediate = fields.integer("expert_feed_forward_length"),
                     .num_heads = fields.integer("attention.head_count"),
                     .num_kv_heads = fields.integer("attention.head_count_kv"),
                     .head_dim = fields.integer("attention.key_length"),
                     .num_experts = fields.integer("expert_count"),
                     .experts_per_token = fields.integer("expert_used_count"),
                     .vocab = vocabulary_of(file),
                     .max_positions = fields.integer("context_length"),
                     .sliding_window = fields.integer("attention.sliding_window"),
                     .rms_epsilon = fields.number("attention.layer_norm_rms_epsilon")};
  for (const char* same : {"attention.value_length", "rope.dimension_count"}) {
    if (fields.integer_or(same, config.head_dim) != config.head_dim) {
      fields.refuse(
          fmt::format("'{}' is not the head size {}", Fields::name(same), config.head_dim));
    }
  }
  read_rope(file, fields, config);
  read_attention(file, fields, config);
  read_tokens(file, config);
  if (fields.failed()) return fields.error();
  if (const auto valid = validate(config, file.where()); !valid) return valid.error();
  return config;
}

}  // namespace gauntlet::model
