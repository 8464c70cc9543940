#include "model/files/folder_texts.h"

#include <nlohmann/json.hpp>

namespace gauntlet::model::inline files {

using nlohmann::ordered_json;

std::string config_text(const ModelConfig& config, ExpertFormat experts) {
  ordered_json layers = ordered_json::array();
  for (const AttentionSpan span : config.attention) {
    layers.push_back(span == AttentionSpan::sliding ? "sliding_attention" : "full_attention");
  }
  ordered_json text = {
      {"architectures", {"GptOssForCausalLM"}},
      {"model_type", "gpt_oss"},
      {"attention_bias", true},
      {"attention_dropout", 0.0},
      {"head_dim", config.head_dim},
      {"hidden_act", "silu"},
      {"hidden_size", config.hidden},
      {"initializer_range", 0.02},
      {"intermediate_size", config.intermediate},
      {"swiglu_limit", config.swiglu_limit},
      {"experts_per_token", config.experts_per_token},
      {"num_experts_per_tok", config.experts_per_token},
      {"num_local_experts", config.num_experts},
      {"num_hidden_layers", config.num_layers},
      {"num_attention_heads", config.num_heads},
      {"num_key_value_heads", config.num_kv_heads},
      {"layer_types", layers},
      {"max_position_embeddings", config.max_positions},
      {"initial_context_length", static_cast<std::int64_t>(config.rope.original_positions)},
      {"rms_norm_eps", config.rms_epsilon},
      {"rope_theta", config.rope_theta},
      {"sliding_window", config.sliding_window},
      {"tie_word_embeddings", config.tied_embeddings},
      {"torch_dtype", "bfloat16"},
      {"use_cache", true},
      {"vocab_size", config.vocab}};
  if (config.rope.factor != 1) {
    text["rope_scaling"] = {{"rope_type", "yarn"},
                            {"factor", config.rope.factor},
                            {"original_max_position_embeddings",
                             static_cast<std::int64_t>(config.rope.original_positions)},
                            {"beta_fast", config.rope.beta_fast},
                            {"beta_slow", config.rope.beta_slow},
                            {"truncate", false}};
  }
  if (config.bos_id >= 0) text["bos_token_id"] = config.bos_id;
  if (!config.eos_ids.empty()) text["eos_token_id"] = config.eos_ids[0];
  if (experts == ExpertFormat::mxfp4) {
    text["quantization_config"] = {{"quant_method", "mxfp4"},
                                   {"modules_to_not_convert",
                                    {"model.layers.*.self_attn", "model.layers.*.mlp.router",
                                     "model.embed_tokens", "lm_head"}}};
  }
  return text.dump(2) + "\n";
}

std::string generation_text(const ModelConfig& config) {
  ordered_json text = {{"do_sample", true}};
  if (config.bos_id >= 0) text["bos_token_id"] = config.bos_id;
  if (!config.eos_ids.empty()) text["eos_token_id"] = config.eos_ids;
  return text.dump(2) + "\n";
}

std::string tokenizer_config_text(const ModelConfig& config) {
  const ordered_json text = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                             {"bos_token", "<|startoftext|>"},
                             {"eos_token", "<|return|>"},
                             {"pad_token", "<|endoftext|>"},
                             {"model_max_length", config.max_positions},
                             {"clean_up_tokenization_spaces", false},
                             {"add_bos_token", config.add_bos}};
  return text.dump(2) + "\n";
}

}  // namespace gauntlet::model::inline files
