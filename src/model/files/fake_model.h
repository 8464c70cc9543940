// A complete gpt-oss of a few thousand weights in memory, for tests to bend one thing of.
#pragma once
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/random.h"
#include "model/files/model_files.h"

namespace gauntlet::model::inline files {

/// A safetensors file under construction; every part of it can be made to lie.
struct FakeSafetensors {
  nlohmann::json header = nlohmann::json::object();
  std::string data;

  /// Fills the tensor with bytes that depend on its name.
  void add(const std::string& name, const std::string& type,
           const std::vector<std::int64_t>& shape) {
    const std::map<std::string, std::size_t> sizes = {
        {"F32", 4}, {"BF16", 2}, {"F16", 2}, {"U8", 1}, {"I32", 4}};
    std::size_t bytes = sizes.at(type);
    for (const std::int64_t size : shape) bytes *= static_cast<std::size_t>(size);
    const std::size_t begin = data.size();
    Random random(std::hash<std::string>()(name));
    for (std::size_t i = 0; i < bytes; ++i) {
      // Bytes of moderate floats: no infinity, no exponent above a few.
      const auto byte = static_cast<unsigned char>(random.next());
      const bool top = type == "F32" ? i % 4 == 3 : type != "U8" && i % 2 == 1;
      data.push_back(static_cast<char>(top ? (byte & 0x80u) | 0x3Cu : byte));
    }
    if (name.ends_with("scales")) {
      for (std::size_t i = begin; i < data.size(); ++i) data[i] = static_cast<char>(120 + i % 8);
    }
    header[name] = {{"dtype", type}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
  }

  std::string bytes() const { return bytes_with_header(header.dump()); }
  std::string bytes_with_header(const std::string& text) const {
    const std::uint64_t size = text.size();
    std::string file(sizeof(size), '\0');
    std::memcpy(file.data(), &size, sizeof(size));
    return file + text + data;
  }
};

/// Files by name that live as long as the object.
struct FakeFiles {
  std::map<std::string, std::string> texts;

  ModelFiles files() const {
    std::vector<ModelFile> all;
    for (const auto& [name, text] : texts) {
      all.push_back({.name = name,
                     .where = name,
                     .bytes = std::as_bytes(std::span(text.data(), text.size()))});
    }
    return {"fake", std::move(all)};
  }
};

/// Hugging Face's layout in MXFP4: 2 layers, hidden 64, intermediate 32, 4 heads over 2 KV heads of
/// 16, 4 experts of which 2 are taken, vocabulary 50.
struct FakeModel {
  nlohmann::json config = {{"model_type", "gpt_oss"},
                           {"num_hidden_layers", 2},
                           {"hidden_size", 64},
                           {"intermediate_size", 32},
                           {"num_attention_heads", 4},
                           {"num_key_value_heads", 2},
                           {"head_dim", 16},
                           {"num_local_experts", 4},
                           {"num_experts_per_tok", 2},
                           {"vocab_size", 50},
                           {"max_position_embeddings", 1024},
                           {"sliding_window", 16},
                           {"rope_theta", 150000.0},
                           {"rope_scaling",
                            {{"rope_type", "yarn"},
                             {"factor", 4.0},
                             {"original_max_position_embeddings", 256},
                             {"truncate", false}}},
                           {"layer_types", {"sliding_attention", "full_attention"}},
                           {"bos_token_id", 1},
                           {"eos_token_id", 2}};
  FakeSafetensors tensors;

  FakeModel() {
    tensors.add("model.embed_tokens.weight", "BF16", {50, 64});
    tensors.add("lm_head.weight", "BF16", {50, 64});
    tensors.add("model.norm.weight", "BF16", {64});
    for (int layer = 0; layer < 2; ++layer) {
      const std::string at = "model.layers." + std::to_string(layer) + ".";
      tensors.add(at + "input_layernorm.weight", "BF16", {64});
      tensors.add(at + "post_attention_layernorm.weight", "BF16", {64});
      for (const auto& [name, rows] : {std::pair{"q", 64}, {"k", 32}, {"v", 32}, {"o", 64}}) {
        tensors.add(at + "self_attn." + name + "_proj.weight", "BF16", {rows, 64});
        tensors.add(at + "self_attn." + name + "_proj.bias", "BF16", {rows});
      }
      tensors.add(at + "self_attn.sinks", "BF16", {4});
      tensors.add(at + "mlp.router.weight", "BF16", {4, 64});
      tensors.add(at + "mlp.router.bias", "BF16", {4});
      tensors.add(at + "mlp.experts.gate_up_proj_blocks", "U8", {4, 64, 2, 16});
      tensors.add(at + "mlp.experts.gate_up_proj_scales", "U8", {4, 64, 2});
      tensors.add(at + "mlp.experts.gate_up_proj_bias", "BF16", {4, 64});
      tensors.add(at + "mlp.experts.down_proj_blocks", "U8", {4, 64, 1, 16});
      tensors.add(at + "mlp.experts.down_proj_scales", "U8", {4, 64, 1});
      tensors.add(at + "mlp.experts.down_proj_bias", "BF16", {4, 64});
    }
  }

  FakeFiles built() const {
    return {{{"config.json", config.dump()}, {"model.safetensors", tensors.bytes()}}};
  }
};

}  // namespace gauntlet::model::inline files
