#include <fmt/format.h>

#include "model/files/gguf.h"
#include "model/files/model_writer.h"
#include "model/tokens/token_list.h"

namespace gauntlet::model::inline files {
namespace {

constexpr std::uint32_t kFileTypeMxfp4Moe = 38;  // llama.cpp's numbers of "mostly ..."

/// Metadata in the order it is put.
class Metadata {
 public:
  void put(const std::string& key, std::uint32_t value) { add(key, GgufType::u32, raw(value)); }
  void put_count(const std::string& key, std::int64_t value) {
    put(key, static_cast<std::uint32_t>(value));
  }
  void put(const std::string& key, float value) { add(key, GgufType::f32, raw(value)); }
  void put(const std::string& key, std::string_view value) {
    add(key, GgufType::text, text(value));
  }
  void put_flag(const std::string& key, bool value) {
    add(key, GgufType::boolean, raw(static_cast<std::uint8_t>(value)));
  }
  void put(const std::string& key, const std::vector<std::string>& values) {
    std::string bytes = raw(GgufType::text) + raw<std::uint64_t>(values.size());
    for (const std::string& value : values) bytes += text(value);
    add(key, GgufType::array, bytes);
  }
  template <class T>
  void put_array(const std::string& key, GgufType type, const std::vector<T>& values) {
    std::string bytes = raw(type) + raw<std::uint64_t>(values.size());
    for (const T value : values) bytes += raw(value);
    add(key, GgufType::array, bytes);
  }

  template <class T>
  static std::string raw(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof(value)};
  }
  static std::string text(std::string_view value) {
    return raw<std::uint64_t>(value.size()).append(value);
  }
  std::uint64_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void add(const std::string& key, GgufType type, const std::string& value) {
    bytes_ += text(key) + raw(type) + value;
    ++count_;
  }

  std::uint64_t count_ = 0;
  std::string bytes_;
};

std::uint32_t file_type_of(const ModelWeights& weights) {
  switch (weights.layers[0].experts[0].down.type) {
    case WeightType::f32:
      return 0;
    case WeightType::f16:
      return 1;
    case WeightType::q8_0:
      return 7;
    case WeightType::bf16:
      return 32;
    case WeightType::mxfp4:
      break;
  }
  return kFileTypeMxfp4Moe;
}

void put_shape(const ModelConfig& config, Metadata& metadata) {
  const std::string arch = "gpt-oss.";
  metadata.put_count(arch + "block_count", config.num_layers);
  metadata.put_count(arch + "context_length", config.max_positions);
  metadata.put_count(arch + "embedding_length", config.hidden);
  metadata.put_count(arch + "feed_forward_length", config.intermediate);
  metadata.put_count(arch + "attention.head_count", config.num_heads);
  metadata.put_count(arch + "attention.head_count_kv", config.num_kv_heads);
  metadata.put_count(arch + "attention.key_length", config.head_dim);
  metadata.put_count(arch + "attention.value_length", config.head_dim);
  metadata.put_count(arch + "attention.sliding_window", config.sliding_window);
  if (config.attention != alternating_attention(config.num_layers)) {
    std::vector<std::uint8_t> slides;
    for (const AttentionSpan span : config.attention) {
      slides.push_back(span == AttentionSpan::sliding ? 1 : 0);
    }
    metadata.put_array(arch + "attention.sliding_window_pattern", GgufType::boolean, slides);
  }
  metadata.put_count(arch + "expert_count", config.num_experts);
  metadata.put_count(arch + "expert_used_count", config.experts_per_token);
  metadata.put_count(arch + "expert_feed_forward_length", config.intermediate);
  metadata.put_count(arch + "rope.dimension_count", config.head_dim);
  metadata.put_count(arch + "vocab_size", config.vocab);
  metadata.put(arch + "rope.freq_base", static_cast<float>(config.rope_theta));
  metadata.put(arch + "attention.layer_norm_rms_epsilon", static_cast<float>(config.rms_epsilon));
  if (config.rope.factor == 1) return;
  metadata.put(arch + "rope.scaling.type", "yarn");
  metadata.put(arch + "rope.scaling.factor", static_cast<float>(config.rope.factor));
  metadata.put_count(arch + "rope.scaling.original_context_length",
                     static_cast<std::int64_t>(config.rope.original_positions));
  const RopeScaling usual;
  if (config.rope.beta_fast != usual.beta_fast || config.rope.beta_slow != usual.beta_slow) {
    metadata.put(arch + "rope.scaling.yarn_beta_fast", static_cast<float>(config.rope.beta_fast));
    metadata.put(arch + "rope.scaling.yarn_beta_slow", static_cast<float>(config.rope.beta_slow));
  }
}

void put_tokens(const ModelConfig& config, const GgufTokens& tokens, Metadata& metadata) {
  const std::string key = "tokenizer.ggml.";
  metadata.put(key + "model", tokens.model);
  metadata.put(key + "pre", tokens.pre);
  metadata.put(key + "tokens", tokens.tokens);
  metadata.put_array(key + "token_type", GgufType::i32, tokens.types);
  metadata.put(key + "merges", tokens.merges);
  if (config.bos_id >= 0) metadata.put_count(key + "bos_token_id", config.bos_id);
  if (!config.eos_ids.empty()) metadata.put_count(key + "eos_token_id", config.eos_ids[0]);
  const std::int64_t padding = id_of(tokens, "<|endoftext|>");
  if (padding >= 0) metadata.put_count(key + "padding_token_id", padding);
  metadata.put_flag(key + "add_bos_token", config.add_bos);
}

class GgufPlan {
 public:
  explicit GgufPlan(const ModelWeights& weights) : config_(weights.config) {
    matrix("token_embd.weight", weights.embedding);
    vector("output_norm.weight", weights.final_norm);
    if (!config_.tied_embeddings) matrix("output.weight", weights.lm_head);
    for (std::size_t i = 0; i < weights.layers.size(); ++i) {
      layer(fmt::format("blk.{}.", i), weights.layers[i]);
    }
  }
  const std::vector<PlannedTensor>& tensors() const { return tensors_; }

 private:
  void matrix(const std::string& name, const Matrix& view) {
    rows(name, {view.rows, view.cols}, tensor_type(view.type), {&view});
  }

  void rows(const std::string& name, const std::vector<std::int64_t>& shape, TensorType type,
            std::vector<const Matrix*> views) {
    const auto write = [type, views = std::move(views)](FileWriter& file) {
      for (const Matrix* view : views) {
        for (std::int64_t row = 0; row < view->rows && !file.failed(); ++row) {
          write_row(*view, row, type, file);
        }
      }
    };
    tensors_.push_back({.name = name, .type = type, .shape = shape, .write = write});
  }

  void vector(const std::string& name, const Vector& values) {
    vectors(name, {static_cast<std::int64_t>(values.size())}, {&values});
  }

  void vectors(const std::string& name, const std::vector<std::int64_t>& shape,
               std::vector<const Vector*> parts) {
    const auto write = [parts = std::move(parts)](FileWriter& file) {
      for (const Vector* part : parts) {
        write_values(part->data(), part->size(), TensorType::f32, file);
      }
    };
    tensors_.push_back({.name = name, .type = TensorType::f32, .shape = shape, .write = write});
  }

  /// The same part of every expert as one tensor.
  void experts(const std::string& name, const LayerWeights& layer, Matrix ExpertWeights::* weight,
               Vector ExpertWeights::* bias) {
    std::vector<const Matrix*> views;
    std::vector<const Vector*> biases;
    for (const ExpertWeights& expert : layer.experts) {
      views.push_back(&(expert.*weight));
      biases.push_back(&(expert.*bias));
    }
    const auto count = static_cast<std::int64_t>(views.size());
    const Matrix& first = *views[0];
    rows(name + ".weight", {count, first.rows, first.cols}, tensor_type(first.type), views);
    vectors(name + ".bias", {count, first.rows}, biases);
  }

  void layer(const std::string& at, const LayerWeights& layer) {
    vector(at + "attn_norm.weight", layer.attention_norm);
    vector(at + "post_attention_norm.weight", layer.mlp_norm);
    matrix(at + "attn_q.weight", layer.q);
    vector(at + "attn_q.bias", layer.q_bias);
    matrix(at + "attn_k.weight", layer.k);
    vector(at + "attn_k.bias", layer.k_bias);
    matrix(at + "attn_v.weight", layer.v);
    vector(at + "attn_v.bias", layer.v_bias);
    matrix(at + "attn_output.weight", layer.o);
    vector(at + "attn_output.bias", layer.o_bias);
    vector(at + "attn_sinks.weight", layer.sinks);
    rows(at + "ffn_gate_inp.weight", {layer.router.rows, layer.router.cols}, TensorType::f32,
         {&layer.router});
    vector(at + "ffn_gate_inp.bias", layer.router_bias);
    experts(at + "ffn_gate_exps", layer, &ExpertWeights::gate, &ExpertWeights::gate_bias);
    experts(at + "ffn_up_exps", layer, &ExpertWeights::up, &ExpertWeights::up_bias);
    experts(at + "ffn_down_exps", layer, &ExpertWeights::down, &ExpertWeights::down_bias);
  }

  const ModelConfig& config_;
  std::vector<PlannedTensor> tensors_;
};

GgmlType ggml_type(TensorType type) {
  switch (type) {
    case TensorType::f16:
      return GgmlType::f16;
    case TensorType::bf16:
      return GgmlType::bf16;
    case TensorType::q8_0:
      return GgmlType::q8_0;
    case TensorType::mxfp4:
      return GgmlType::mxfp4;
    default:
      return GgmlType::f32;
  }
}

std::string describe_tensors(const std::vector<PlannedTensor>& tensors) {
  std::string bytes;
  std::uint64_t offset = 0;
  for (const PlannedTensor& tensor : tensors) {
    bytes += Metadata::text(tensor.name);
    bytes += Metadata::raw(static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) {
      bytes += Metadata::raw(static_cast<std::uint64_t>(*size));
    }
    bytes += Metadata::raw(ggml_type(tensor.type)) + Metadata::raw(offset);
    offset += (tensor.bytes() + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment;
  }
  return bytes;
}

}  // namespace

Expected<void> write_gguf(const ModelWeights& weights, const GgufTokens& tokens,
                          const std::filesystem::path& path, const WriteProgress& progress) {
  const ModelConfig& config = weights.config;
  if (config.swiglu_limit != 7) {
    return Error{.message = fmt::format("{} limits its activations at {}, but a GGUF file cannot "
                                        "say other than 7",
                                        config.name, config.swiglu_limit)};
  }
  Metadata metadata;
  metadata.put("general.architecture", "gpt-oss");
  metadata.put("general.name", config.name);
  metadata.put("general.file_type", file_type_of(weights));
  metadata.put("general.alignment", static_cast<std::uint32_t>(kGgufAlignment));
  put_shape(config, metadata);
  put_tokens(config, tokens, metadata);
  const GgufPlan plan(weights);

  auto file = FileWriter::create(path);
  if (!file) return file.error();
  file->write("GGUF" + Metadata::raw(kGgufVersion) +
              Metadata::raw<std::uint64_t>(plan.tensors().size()) +
              Metadata::raw(metadata.count()));
  file->write(metadata.bytes());
  file->write(describe_tensors(plan.tensors()));
  file->pad_to(kGgufAlignment);
  write_tensors(plan.tensors(), kGgufAlignment, *file, progress);
  return file->finish();
}

}  // namespace gauntlet::model::inline files
