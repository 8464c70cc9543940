// ModelConfig: the shape of a gpt-oss model, whatever file said so, checked for consistency.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/expected.h"

namespace gauntlet::model {

enum class AttentionSpan { sliding, full };

/// YaRN as gpt-oss uses it: the bounds of the ramp are not rounded.
struct RopeScaling {
  double factor = 1;
  double original_positions = 0;
  double beta_fast = 32;
  double beta_slow = 1;
};

struct ModelConfig {
  std::string name;  // of the folder or file it came from
  std::int64_t num_layers = 0;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t num_experts = 0;
  std::int64_t experts_per_token = 0;
  std::int64_t vocab = 0;
  std::int64_t max_positions = 0;
  std::int64_t sliding_window = 0;
  double rms_epsilon = 1e-5;
  double rope_theta = 150000;
  RopeScaling rope;
  double swiglu_limit = 7;
  bool tied_embeddings = false;          // lm_head is the embedding
  std::vector<AttentionSpan> attention;  // one per layer
  std::int64_t bos_id = -1;              // -1: none
  std::vector<std::int64_t> eos_ids;     // any of them ends a sequence
  bool add_bos = false;

  std::int64_t query_width() const { return num_heads * head_dim; }
  std::int64_t kv_width() const { return num_kv_heads * head_dim; }
};

/// Holds an error naming the first inconsistency: a count out of range, heads that do not divide.
Expected<void> validate(const ModelConfig& config, std::string_view where);

/// config.json of a Hugging Face folder, or of the original release. `where` names it in errors.
Expected<ModelConfig> parse_config(std::string_view json_text, std::string_view where);

/// generation_config.json: its end-of-sequence ids win over config.json's.
Expected<void> apply_generation_config(std::string_view json_text, std::string_view where,
                                       ModelConfig& config);

/// tokenizer_config.json: whether a text begins with BOS.
Expected<void> apply_tokenizer_config(std::string_view json_text, std::string_view where,
                                      ModelConfig& config);

inline namespace files {
class GgufFile;
}
/// The metadata of a GGUF file.
Expected<ModelConfig> parse_gguf_config(const GgufFile& file);

/// Sliding in even layers, full in odd ones.
std::vector<AttentionSpan> alternating_attention(std::int64_t num_layers);

/// "gpt-oss-20b", "gpt-oss-120b": the published shapes.
Expected<ModelConfig> named_shape(std::string_view name);

/// A shape for random weights: a published one, or that of a config.json. Zero layers means all.
Expected<ModelConfig> random_shape(const std::string& name_or_file, std::int64_t num_layers = 0);

}  // namespace gauntlet::model
