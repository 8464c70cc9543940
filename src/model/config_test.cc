#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "model/files/fake_model.h"

namespace gauntlet::model {
namespace {

using nlohmann::json;
using testing::ElementsAre;

TEST(ModelConfig, widths_follow_from_heads) {
  const ModelConfig config{.num_heads = 64, .num_kv_heads = 8, .head_dim = 64};
  EXPECT_EQ(config.query_width(), 4096);
  EXPECT_EQ(config.kv_width(), 512);
}

/// The sentence that a config.json is refused with after one change; empty when it is taken.
std::string refusal(const std::function<void(json&)>& change) {
  json config = FakeModel().config;
  change(config);
  const auto parsed = parse_config(config.dump(), "config.json");
  return parsed ? "" : parsed.error().message;
}

TEST(ParseConfig, takes_what_hugging_face_writes) {
  const auto config = parse_config(FakeModel().config.dump(), "config.json");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->num_experts, 4);
  EXPECT_EQ(config->experts_per_token, 2);
  EXPECT_EQ(config->rope.factor, 4);
  EXPECT_EQ(config->rope.original_positions, 256);
  EXPECT_THAT(config->attention, ElementsAre(AttentionSpan::sliding, AttentionSpan::full));
  EXPECT_THAT(config->eos_ids, ElementsAre(2));
}

TEST(ParseConfig, takes_what_the_original_release_writes) {
  const json published = {{"num_hidden_layers", 24},   {"num_experts", 32},
                          {"experts_per_token", 4},    {"vocab_size", 201088},
                          {"hidden_size", 2880},       {"intermediate_size", 2880},
                          {"swiglu_limit", 7.0},       {"head_dim", 64},
                          {"num_attention_heads", 64}, {"num_key_value_heads", 8},
                          {"sliding_window", 128},     {"initial_context_length", 4096},
                          {"rope_theta", 150000},      {"rope_scaling_factor", 32.0},
                          {"rope_ntk_alpha", 1},       {"rope_ntk_beta", 32}};
  const auto config = parse_config(published.dump(), "config.json");
  ASSERT_TRUE(config) << config.error().message;
  const auto shape = named_shape("gpt-oss-20b");
  ASSERT_TRUE(shape);
  EXPECT_EQ(config->max_positions, shape->max_positions);
  EXPECT_EQ(config->rope.beta_fast, shape->rope.beta_fast);
  EXPECT_EQ(config->rope.beta_slow, shape->rope.beta_slow);
  EXPECT_EQ(config->attention, shape->attention);
  EXPECT_EQ(config->eos_ids, shape->eos_ids);
}

TEST(ParseConfig, reads_rope_where_newer_files_put_it) {
  json config = FakeModel().config;
  config["rope_parameters"] = config["rope_scaling"];
  config["rope_parameters"]["rope_theta"] = 10000.0;
  config.erase("rope_scaling");
  config.erase("rope_theta");
  const auto parsed = parse_config(config.dump(), "config.json");
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->rope_theta, 10000);
  EXPECT_EQ(parsed->rope.factor, 4);
}

TEST(ParseConfig, alternates_layers_when_their_types_are_not_given) {
  json config = FakeModel().config;
  config.erase("layer_types");
  const auto parsed = parse_config(config.dump(), "config.json");
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed->attention, ElementsAre(AttentionSpan::sliding, AttentionSpan::full));
}

TEST(ParseConfig, refuses_what_is_no_object) {
  for (const char* text : {"", "[]", "{", "3", "{\"a\": 1e999}"}) {
    EXPECT_FALSE(parse_config(text, "config.json")) << text;
  }
  EXPECT_EQ(parse_config("{", "config.json").error().message, "config.json is not valid JSON");
  EXPECT_EQ(parse_config(R"({"a": 1, "a": 2})", "config.json").error().message,
            "config.json has the key 'a' twice");
  std::string deep = "{\"a\":";
  for (int i = 0; i < 100000; ++i) deep += '[';
  EXPECT_EQ(parse_config(deep, "config.json").error().message,
            "config.json is nested more than 32 levels deep");
}

struct Refusal {
  const char* key;
  json value;
  const char* sentence;
};

TEST(ParseConfig, refuses_a_value_that_makes_no_model) {
  const Refusal refusals[] = {
      {"model_type", "llama",
       "config.json: model_type 'llama' is not supported; this engine runs gpt_oss"},
      {"model_type", 3, "config.json: 'model_type' is not a text"},
      {"hidden_size", "64", "config.json: 'hidden_size' is not a whole number"},
      {"hidden_size", 64.5, "config.json: 'hidden_size' is not a whole number"},
      {"hidden_size", 18446744073709551615u, "config.json: 'hidden_size' is not a whole number"},
      {"hidden_size", 0, "config.json: the hidden size is 0, which is not between 1 and 1048576"},
      {"hidden_size", -64,
       "config.json: the hidden size is -64, which is not between 1 and 1048576"},
      {"num_hidden_layers", 1000000,
       "config.json: the number of layers is 1000000, which is not between 1 and 1024"},
      {"num_hidden_layers", 3, "config.json: 2 layer types are given for 3 layers"},
      {"num_attention_heads", 5, "config.json: 5 heads cannot share 2 KV heads evenly"},
      {"head_dim", 15, "config.json: the head size 15 is odd, so its halves cannot rotate"},
      {"num_experts_per_tok", 5, "config.json: a token takes 5 experts of 4"},
      {"layer_types",
       {"sliding_attention", "chunked_attention"},
       "config.json: 'layer_types' holds something that is neither sliding_attention nor "
       "full_attention"},
      {"layer_types", 4, "config.json: 'layer_types' is not a list"},
      {"bos_token_id", 50, "config.json: the BOS id is 50, which is not between -1 and 49"},
      {"eos_token_id",
       {2, 50},
       "config.json: the end-of-sequence id 50 is not in the vocabulary of 50"},
      {"eos_token_id", "2", "config.json: 'eos_token_id' holds something that is not a token id"},
      {"rope_theta", 0.5, "config.json: rope_theta is 0.5"},
      {"swiglu_limit", -7.0, "config.json: swiglu_limit is -7"},
      {"attention_bias", false,
       "config.json: 'attention_bias' is not true; gpt-oss has biases on q, k, v and o"},
      {"rope_scaling", 3, "config.json: 'rope_scaling' is not an object"},
      {"rope_scaling",
       {{"rope_type", "linear"}, {"factor", 2}},
       "config.json: rope_scaling: rope_type 'linear' is unknown; gpt-oss uses yarn"},
      {"rope_scaling", {{"rope_type", "yarn"}}, "config.json: rope_scaling: 'factor' is missing"},
  };
  for (const Refusal& each : refusals) {
    EXPECT_EQ(refusal([&](json& config) { config[each.key] = each.value; }), each.sentence)
        << each.key << " = " << each.value;
  }
}

TEST(ParseConfig, refuses_what_gpt_oss_never_does_in_yarn) {
  EXPECT_EQ(refusal([](json& config) { config["rope_scaling"]["truncate"] = true; }),
            "config.json: rope_scaling: 'truncate' is not false; gpt-oss does not round the bounds "
            "of YaRN");
  EXPECT_EQ(refusal([](json& config) { config["rope_scaling"]["attention_factor"] = 1.0; }),
            "config.json: rope_scaling: 'attention_factor' is not part of gpt-oss");
  EXPECT_EQ(refusal([](json& config) { config["rope_scaling"]["beta_fast"] = 0.5; }),
            "config.json: beta_fast of YaRN (0.5) is not above beta_slow (1)");
}

TEST(ParseConfig, names_each_missing_field) {
  const json complete = FakeModel().config;
  for (const auto& [key, value] : complete.items()) {
    if (key == "layer_types" || key == "bos_token_id" || key == "eos_token_id" ||
        key == "rope_scaling") {
      continue;
    }
    EXPECT_NE(refusal([&](json& config) { config.erase(key); }), "") << key;
  }
  EXPECT_EQ(refusal([](json& config) { config.erase("head_dim"); }),
            "config.json: 'head_dim' is missing");
}

TEST(GenerationConfig, wins_over_the_end_ids_of_the_config) {
  auto config = parse_config(FakeModel().config.dump(), "config.json");
  ASSERT_TRUE(config);
  ASSERT_TRUE(
      apply_generation_config(R"({"eos_token_id": [7, 8]})", "generation_config.json", *config));
  EXPECT_THAT(config->eos_ids, ElementsAre(7, 8));
  ASSERT_TRUE(apply_generation_config(R"({"eos_token_id": 9})", "g.json", *config));
  EXPECT_THAT(config->eos_ids, ElementsAre(9));
  ASSERT_TRUE(apply_generation_config("{}", "g.json", *config));
  EXPECT_THAT(config->eos_ids, ElementsAre(9));
  EXPECT_FALSE(apply_generation_config(R"({"eos_token_id": [-1]})", "g.json", *config));
}

TEST(TokenizerConfig, says_whether_texts_begin_with_bos) {
  ModelConfig config;
  ASSERT_TRUE(apply_tokenizer_config(R"({"add_bos_token": true})", "t.json", config));
  EXPECT_TRUE(config.add_bos);
  ASSERT_TRUE(apply_tokenizer_config("{}", "t.json", config));
  EXPECT_TRUE(config.add_bos);
  EXPECT_FALSE(apply_tokenizer_config(R"({"add_bos_token": 1})", "t.json", config));
}

TEST(NamedShape, knows_the_published_ones) {
  const auto large = named_shape("gpt-oss-120b");
  ASSERT_TRUE(large);
  EXPECT_TRUE(validate(*large, "gpt-oss-120b"));
  EXPECT_EQ(large->num_experts, 128);
  EXPECT_EQ(large->attention.size(), 36u);
  EXPECT_EQ(named_shape("gpt-oss-20").error().message,
            "there is no shape 'gpt-oss-20', did you mean 'gpt-oss-20b'?");
  EXPECT_EQ(named_shape("gpt-oss-20").error().kind, ErrorKind::wrong_use);
}

}  // namespace
}  // namespace gauntlet::model
