// config.json and what stands beside it, Hugging Face's way and the original release's.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/config.h"
#include "model/files/json_reader.h"
#include "model/files/printable.h"

namespace gauntlet::model {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxIds = 64;

/// A number, or a list of numbers.
std::vector<std::int64_t> read_ids(const json& object, const char* key, JsonFields& fields) {
  std::vector<std::int64_t> ids;
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return ids;
  if (found->is_array() && found->size() > kMaxIds) {
    fields.refuse(fmt::format("'{}' lists more than {} ids", key, kMaxIds));
    return ids;
  }
  for (const json& id : found->is_array() ? *found : json::array({*found})) {
    const bool fits = id.is_number_unsigned() && id.get<std::uint64_t>() <= INT32_MAX;
    if (!fits) {
      fields.refuse(fmt::format("'{}' holds something that is not a token id", key));
      return ids;
    }
    ids.push_back(id.get<std::int64_t>());
  }
  return ids;
}

void read_layer_types(const json& object, JsonFields& fields, ModelConfig& config) {
  if (!fields.has("layer_types")) {
    // The count is checked before anything is allocated by it.
    if (config.num_layers > 0 && config.num_layers <= 1024) {
      config.attention = alternating_attention(config.num_layers);
    }
    return;
  }
  const json& types = object["layer_types"];
  if (!types.is_array()) return fields.refuse("'layer_types' is not a list");
  for (const json& type : types) {
    if (type == "sliding_attention") {
      config.attention.push_back(AttentionSpan::sliding);
    } else if (type == "full_attention") {
      config.attention.push_back(AttentionSpan::full);
    } else {
      return fields.refuse(
          "'layer_types' holds something that is neither sliding_attention nor full_attention");
    }
  }
}

/// rope_scaling, or rope_parameters as newer files call it.
void read_rope(const json& object, std::string_view where, JsonFields& fields,
               ModelConfig& config) {
  config.rope.original_positions = static_cast<double>(config.max_positions);
  const char* key = fields.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (!fields.has(key)) {
    config.rope_theta = fields.number("rope_theta");
    return;
  }
  const json& scaling = object[key];
  if (!scaling.is_object()) return fields.refuse(fmt::format("'{}' is not an object", key));
  JsonFields rope(scaling, fmt::format("{}: {}", where, key));
  config.rope_theta =
      rope.has("rope_theta") ? rope.number("rope_theta") : fields.number("rope_theta");
  const std::string type = rope.has("rope_type") ? rope.text("rope_type")
                           : rope.has("type")    ? rope.text("type")
                                                 : "default";
  if (type == "yarn") {
    config.rope.factor = rope.number("factor");
    const bool elsewhere =
        !rope.has("original_max_position_embeddings") && fields.has("initial_context_length");
    config.rope.original_positions = elsewhere ? fields.number("initial_context_length")
                                               : rope.number("original_max_position_embeddings");
    config.rope.beta_fast = rope.number_or("beta_fast", 32);
    config.rope.beta_slow = rope.number_or("beta_slow", 1);
    if (rope.has("truncate") && scaling["truncate"] != false) {
      rope.refuse("'truncate' is not false; gpt-oss does not round the bounds of YaRN");
    }
    for (const char* other : {"attention_factor", "mscale", "mscale_all_dim"}) {
      if (rope.has(other)) rope.refuse(fmt::format("'{}' is not part of gpt-oss", other));
    }
  } else if (type != "default") {
    rope.refuse(fmt::format("rope_type '{}' is unknown; gpt-oss uses yarn", shown(type)));
  }
  if (rope.failed()) fields.refuse_as(rope.error());
}

void read_huggingface(const json& object, std::string_view where, JsonFields& fields,
                      ModelConfig& config) {
  if (const std::string type = fields.text("model_type"); type != "gpt_oss") {
    fields.refuse(
        fmt::format("model_type '{}' is not supported; this engine runs gpt_oss", shown(type)));
  }
  config.num_experts = fields.integer("num_local_experts");
  config.experts_per_token = fields.has("num_experts_per_tok")
                                 ? fields.integer("num_experts_per_tok")
                                 : fields.integer("experts_per_token");
  config.max_positions = fields.integer("max_position_embeddings");
  config.rms_epsilon = fields.number_or("rms_norm_eps", 1e-5);
  if (fields.has("attention_bias") && object["attention_bias"] != true) {
    fields.refuse("'attention_bias' is not true; gpt-oss has biases on q, k, v and o");
  }
  config.tied_embeddings =
      fields.has("tie_word_embeddings") && object["tie_word_embeddings"] == true;
  config.bos_id = fields.integer_or("bos_token_id", -1);
  config.eos_ids = read_ids(object, "eos_token_id", fields);
  read_rope(object, where, fields, config);
}

void read_original(JsonFields& fields, ModelConfig& config) {
  config.num_experts = fields.integer("num_experts");
  config.experts_per_token = fields.integer("experts_per_token");
  config.rope_theta = fields.number("rope_theta");
  config.rope = {.factor = fields.number("rope_scaling_factor"),
                 .original_positions = fields.number("initial_context_length"),
                 .beta_fast = fields.number("rope_ntk_beta"),
                 .beta_slow = fields.number("rope_ntk_alpha")};
  const double positions = config.rope.factor * config.rope.original_positions;
  const bool sane = positions >= 1 && positions <= 0x1p32;
  config.max_positions = sane ? static_cast<std::int64_t>(positions) : 0;
  // It names no tokens; the vocabulary says which they are.
  if (config.vocab == 201088) {
    config.bos_id = 199998;
    config.eos_ids = {200002, 199999, 200012};
  }
}

}  // namespace

Expected<ModelConfig> parse_config(std::string_view json_text, std::string_view where) {
  const auto parsed = parse_json_object(json_text, where);
  if (!parsed) return parsed.error();
  JsonFields fields(*parsed, std::string(where));
  ModelConfig config{.num_layers = fields.integer("num_hidden_layers"),
                     .hidden = fields.integer("hidden_size"),
                     .intermediate = fields.integer("intermediate_size"),
                     .num_heads = fields.integer("num_attention_heads"),
                     .num_kv_heads = fields.integer("num_key_value_heads"),
                     .head_dim = fields.integer("head_dim"),
                     .vocab = fields.integer("vocab_size"),
                     .sliding_window = fields.integer("sliding_window"),
                     .swiglu_limit = fields.number_or("swiglu_limit", 7)};
  if (!fields.has("model_type") && fields.has("rope_ntk_beta")) {
    read_original(fields, config);
  } else {
    read_huggingface(*parsed, where, fields, config);
  }
  read_layer_types(*parsed, fields, config);
  if (fields.failed()) return fields.error();
  if (const auto valid = validate(config, where); !valid) return valid.error();
  return config;
}

Expected<void> apply_generation_config(std::string_view json_text, std::string_view where,
                                       ModelConfig& config) {
  const auto parsed = parse_json_object(json_text, where);
  if (!parsed) return parsed.error();
  JsonFields fields(*parsed, std::string(where));
  config.bos_id = fields.integer_or("bos_token_id", config.bos_id);
  auto ids = read_ids(*parsed, "eos_token_id", fields);
  if (!ids.empty()) config.eos_ids = std::move(ids);
  if (fields.failed()) return fields.error();
  return validate(config, where);
}

Expected<void> apply_tokenizer_config(std::string_view json_text, std::string_view where,
                                      ModelConfig& config) {
  const auto parsed = parse_json_object(json_text, where);
  if (!parsed) return parsed.error();
  const auto found = parsed->find("add_bos_token");
  if (found == parsed->end() || found->is_null()) return {};
  if (!found->is_boolean()) {
    return Error{.message = fmt::format("{}: 'add_bos_token' is neither true nor false", where)};
  }
  config.add_bos = found->get<bool>();
  return {};
}

}  // namespace gauntlet::model
