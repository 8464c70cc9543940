#include "model/eagle_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "model/files/json_reader.h"
#include "model/files/safetensors.h"

namespace gauntlet::model {
namespace {

using nlohmann::json;

constexpr std::int64_t kMostBoundaries = 8;
constexpr std::int64_t kMostWidth = 1 << 20;  // of any dimension: products of two fit

Error wrong(std::string_view where, const std::string& what) {
  return {.message = fmt::format("{}: {}", where, what)};
}

bool read_flag(const json& object, const char* key, JsonFields& fields) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return false;
  if (!found->is_boolean()) fields.refuse(fmt::format("{} is true or false", key));
  return found->is_boolean() && found->get<bool>();
}

void read_boundaries(const json& list, JsonFields& fields, EagleHeadConfig& config) {
  if (!list.is_array() || list.empty() || list.size() > kMostBoundaries) {
    return fields.refuse("eagle_aux_hidden_state_layer_ids is a list of one to eight layers");
  }
  for (const json& layer : list) {
    if (!layer.is_number_integer() || layer.get<std::int64_t>() < 0 ||
        layer.get<std::int64_t>() > kMostWidth) {
      return fields.refuse("eagle_aux_hidden_state_layer_ids holds something that is no layer");
    }
    config.boundaries.push_back(layer.get<std::int64_t>());
  }
}

/// The list stands in the object itself, or in its eagle_config.
const json* find_boundaries(const json& object, JsonFields& fields) {
  const char* key = "eagle_aux_hidden_state_layer_ids";
  if (fields.has(key)) return &object.at(key);
  const auto nested = object.find("eagle_config");
  if (nested == object.end() || !nested->is_object()) return nullptr;
  if (nested->contains("use_aux_hidden_state") && nested->at("use_aux_hidden_state") != true) {
    fields.refuse("eagle_config: use_aux_hidden_state is not true: such heads are not EAGLE-3's");
  }
  const auto list = nested->find(key);
  return list == nested->end() ? nullptr : &*list;
}

void read_layer(const json& layer, JsonFields& fields, EagleHeadConfig& config) {
  const auto width = [&](const char* key) {
    const std::int64_t value = fields.integer(key);
    if (!fields.failed() && (value < 1 || value > kMostWidth)) {
      fields.refuse(fmt::format("{} is {}, which no head has", key, value));
    }
    return value;
  };
  config.hidden = width("hidden_size");
  config.intermediate = width("intermediate_size");
  config.num_heads = width("num_attention_heads");
  config.num_kv_heads = width("num_key_value_heads");
  config.vocab = width("vocab_size");
  if (fields.failed()) return;
  config.head_dim = fields.integer_or("head_dim", config.hidden / config.num_heads);
  config.rms_epsilon = fields.number_or("rms_norm_eps", 1e-5);
  config.rope_theta = fields.number_or("rope_theta", 1e4);
  if (fields.integer_or("num_hidden_layers", 1) != 1) {
    fields.refuse("num_hidden_layers is not 1: heads of one layer are supported");
  }
  if (fields.has("rope_scaling")) {
    fields.refuse("rope_scaling is set: heads with plain positions are supported");
  }
  if (fields.has("hidden_act") && fields.text("hidden_act") != "silu") {
    fields.refuse("hidden_act is not silu");
  }
  for (const char* bias : {"attention_bias", "mlp_bias"}) {
    if (read_flag(layer, bias, fields)) fields.refuse(fmt::format("{} is not supported", bias));
  }
}

void check_shape(const EagleHeadConfig& config, JsonFields& fields) {
  if (config.num_heads % config.num_kv_heads != 0 || config.num_heads / config.num_kv_heads > 16) {
    fields.refuse("num_attention_heads is a multiple, 1 to 16 times, of num_key_value_heads");
  }
  if (config.head_dim < 16 || config.head_dim > 256 || config.head_dim % 16 != 0) {
    fields.refuse("head_dim is a multiple of 16 up to 256");
  }
  const std::int64_t width = config.num_heads * config.head_dim;
  if (config.hidden % 32 != 0 || config.intermediate % 32 != 0 || width % 32 != 0) {
    fields.refuse("hidden_size, intermediate_size and the width of all heads are multiples of 32");
  }
  if (config.draft_vocab < 1 || config.draft_vocab > config.vocab) {
    fields.refuse("draft_vocab_size is between 1 and vocab_size");
  }
  if (!(config.rms_epsilon > 0 && config.rms_epsilon < 1)) fields.refuse("rms_norm_eps is not one");
  if (!(config.rope_theta > 1 && config.rope_theta < 1e12)) fields.refuse("rope_theta is not one");
}

/// A head's layer goes by the name of the release it comes from.
std::string layer_prefix(const TensorTable& table) {
  for (const char* prefix : {"midlayer.", "layers.0.", "model.midlayer.", "model.layers.0."}) {
    if (table.find(std::string(prefix) + "self_attn.q_proj.weight")) return prefix;
  }
  return "midlayer.";
}

Expected<std::vector<std::int32_t>> target_ids(const TensorTable& table,
                                               const EagleHeadConfig& config) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(config.draft_vocab));
  const Tensor* map = table.find("d2t");
  if (!map && config.draft_vocab != config.vocab) {
    return wrong(table.where(), "there is no d2t, which says what token a draft id is");
  }
  if (map && (map->type_name != "I64" || map->shape != std::vector{config.draft_vocab} ||
              map->bytes != ids.size() * sizeof(std::int64_t))) {
    return wrong(map->where, fmt::format("d2t is not I64 of shape [{}]", config.draft_vocab));
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::int64_t offset = 0;
    if (map) std::memcpy(&offset, map->data + i * sizeof offset, sizeof offset);
    if (offset < -static_cast<std::int64_t>(i) ||
        offset >= config.vocab - static_cast<std::int64_t>(i)) {
      return wrong(map->where, fmt::format("d2t sends draft id {} out of the vocabulary", i));
    }
    ids[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(i) + offset);
  }
  return ids;
}

Expected<void> fits(const EagleHeadConfig& head, const ModelConfig& target,
                    std::string_view where) {
  if (head.hidden != target.hidden || head.vocab != target.vocab) {
    return wrong(where,
                 fmt::format("the head is for a model of width {} with {} tokens; {} has "
                             "width {} and {} tokens",
                             head.hidden, head.vocab, target.name, target.hidden, target.vocab));
  }
  const std::int64_t layers = std::ssize(target.attention);
  std::int64_t last = 0;
  for (const std::int64_t boundary : head.boundaries) {
    if (boundary <= last) {
      return wrong(where, fmt::format("the head wants what layer {} leaves after layer {}: they "
                                      "ascend from 1",
                                      boundary, last));
    }
    last = boundary;
    if (boundary > layers) {
      return wrong(where, fmt::format("the head wants what layer {} leaves; {} has {}", boundary,
                                      target.name, layers));
    }
  }
  return {};
}

}  // namespace

std::vector<int> EagleHeadConfig::export_layers() const {
  std::vector<int> layers;
  for (const std::int64_t boundary : boundaries) layers.push_back(static_cast<int>(boundary) - 1);
  return layers;
}

Expected<EagleHeadConfig> parse_eagle_config(std::string_view text, std::string_view where) {
  const auto object = parse_json_object(text, where);
  if (!object) return object.error();
  const std::string name(where);
  JsonFields fields(*object, name);
  EagleHeadConfig config;
  // speculators keeps the layer's shape apart.
  const auto nested = object->find("transformer_layer_config");
  const bool is_nested = nested != object->end();
  if (is_nested && !nested->is_object()) {
    return wrong(where, "transformer_layer_config is not an object");
  }
  if (is_nested) {
    JsonFields layer(*nested, name + ": transformer_layer_config");
    read_layer(*nested, layer, config);
    if (layer.failed()) return layer.error();
  } else {
    read_layer(*object, fields, config);
  }
  if (fields.failed()) return fields.error();
  config.draft_vocab = fields.integer_or("draft_vocab_size", config.vocab);
  if (fields.integer_or("target_hidden_size", config.hidden) != config.hidden) {
    fields.refuse("target_hidden_size is not the head's own width");
  }
  config.norm_before_fc = read_flag(*object, "norm_before_fc", fields);
  config.norm_before_residual = read_flag(*object, "norm_before_residual", fields);
  if (const json* list = find_boundaries(*object, fields)) {
    read_boundaries(*list, fields, config);
  } else {
    fields.refuse("there is no eagle_aux_hidden_state_layer_ids: what goes into the head?");
  }
  if (!fields.failed()) check_shape(config, fields);
  if (fields.failed()) return fields.error();
  return config;
}

Expected<EagleHead> load_eagle_head(const ModelFiles& files, const ModelConfig& target) {
  const ModelFile* file = files.find("config.json");
  if (!file) return Error{.message = fmt::format("{} has no config.json", files.where())};
  auto config = parse_eagle_config(file->text(), file->where);
  if (!config) return config.error();
  if (auto fit = fits(*config, target, file->where); !fit) return fit.error();
  const auto table = read_safetensors(files);
  if (!table) return table.error();
  TensorBinder bind(*table);
  const std::string layer = layer_prefix(*table);
  const std::int64_t hidden = config->hidden;
  const std::int64_t width = config->num_heads * config->head_dim;
  const std::int64_t kv_width = config->num_kv_heads * config->head_dim;
  EagleHead head{.config = *config, .storage = files.storage()};
  head.fc = bind.matrix("fc.weight", {hidden, config->features()});
  if (config->norm_before_fc) head.fc_norm = bind.vector("input_norm.weight", {config->features()});
  head.input_norm = bind.vector(layer + "input_layernorm.weight", {hidden});
  head.hidden_norm = bind.vector(layer + "hidden_norm.weight", {hidden});
  head.q = bind.matrix(layer + "self_attn.q_proj.weight", {width, 2 * hidden});
  head.k = bind.matrix(layer + "self_attn.k_proj.weight", {kv_width, 2 * hidden});
  head.v = bind.matrix(layer + "self_attn.v_proj.weight", {kv_width, 2 * hidden});
  head.o = bind.matrix(layer + "self_attn.o_proj.weight", {hidden, width});
  head.mlp_norm = bind.vector(layer + "post_attention_layernorm.weight", {hidden});
  head.gate = bind.matrix(layer + "mlp.gate_proj.weight", {config->intermediate, hidden});
  head.up = bind.matrix(layer + "mlp.up_proj.weight", {config->intermediate, hidden});
  head.down = bind.matrix(layer + "mlp.down_proj.weight", {hidden, config->intermediate});
  head.final_norm = bind.vector("norm.weight", {hidden});
  head.lm_head = bind.matrix("lm_head.weight", {config->draft_vocab, hidden});
  for (const char* name : {"embed_tokens.weight", "model.embed_tokens.weight"}) {
    if (bind.has(name)) head.embedding = bind.matrix(name, {config->vocab, hidden});
  }
  if (bind.failed()) return bind.error();
  auto ids = target_ids(*table, *config);
  if (!ids) return ids.error();
  head.target_ids = std::move(*ids);
  return head;
}

}  // namespace gauntlet::model
