#include "model/eagle_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "model/files/fake_model.h"

namespace gauntlet::model {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

Json flat_config() {
  return {{"architectures", {"LlamaForCausalLMEagle3"}},
          {"hidden_size", 32},
          {"intermediate_size", 64},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"head_dim", 16},
          {"num_hidden_layers", 1},
          {"vocab_size", 64},
          {"draft_vocab_size", 4},
          {"eagle_config", {{"eagle_aux_hidden_state_layer_ids", {1, 2, 3}}}}};
}

struct FakeHead {
  Json config = flat_config();
  std::string layer = "midlayer.";
  std::vector<std::int64_t> map = {0, 1, 60, -3};
  std::vector<std::string> missing;
  std::map<std::string, std::vector<std::int64_t>> more = {};

  Expected<EagleHead> load() const {
    FakeSafetensors tensors;
    std::map<std::string, std::vector<std::int64_t>> shapes = {
        {"fc.weight", {32, 96}},
        {layer + "input_layernorm.weight", {32}},
        {layer + "hidden_norm.weight", {32}},
        {layer + "post_attention_layernorm.weight", {32}},
        {layer + "self_attn.q_proj.weight", {32, 64}},
        {layer + "self_attn.k_proj.weight", {16, 64}},
        {layer + "self_attn.v_proj.weight", {16, 64}},
        {layer + "self_attn.o_proj.weight", {32, 32}},
        {layer + "mlp.gate_proj.weight", {64, 32}},
        {layer + "mlp.up_proj.weight", {64, 32}},
        {layer + "mlp.down_proj.weight", {32, 64}},
        {"norm.weight", {32}},
        {"lm_head.weight", {4, 32}}};
    for (const std::string& name : missing) shapes.erase(name);
    for (const auto& [name, shape] : more) shapes[name] = shape;
    for (const auto& [name, shape] : shapes) tensors.add(name, "BF16", shape);
    if (!map.empty()) {
      const std::size_t begin = tensors.data.size();
      tensors.data.append(reinterpret_cast<const char*>(map.data()), map.size() * sizeof(map[0]));
      tensors.header["d2t"] = {{"dtype", "I64"},
                               {"shape", {map.size()}},
                               {"data_offsets", {begin, tensors.data.size()}}};
    }
    texts_.texts = {{"config.json", config.dump()}, {"model.safetensors", tensors.bytes()}};
    ModelConfig target;
    target.name = "target";
    target.hidden = 32;
    target.vocab = 64;
    target.attention.assign(4, AttentionSpan::full);
    return load_eagle_head(texts_.files(), target);
  }
  std::string refusal() const {
    const auto head = load();
    return head ? "" : head.error().message;
  }
  mutable FakeFiles texts_;
};

TEST(EagleHead, loads_as_it_is_published) {
  const auto head = FakeHead().load();
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->config.boundaries, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(head->target_ids, (std::vector<std::int32_t>{0, 2, 62, 0}));
  EXPECT_FALSE(head->embedding);
  EXPECT_FALSE(head->config.norm_before_residual);
}

TEST(EagleHead, loads_as_speculators_writes_it) {
  FakeHead fake{.layer = "layers.0."};
  Json shape = flat_config();
  shape.erase("eagle_config");
  fake.config = {{"speculators_model_type", "eagle3"},
                 {"draft_vocab_size", 4},
                 {"transformer_layer_config", shape},
                 {"norm_before_residual", true},
                 {"norm_before_fc", true},
                 {"eagle_aux_hidden_state_layer_ids", {1, 2, 4}}};
  fake.more = {{"input_norm.weight", {96}}, {"embed_tokens.weight", {64, 32}}};
  const auto head = fake.load();
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_TRUE(head->config.norm_before_residual && head->config.norm_before_fc);
  EXPECT_EQ(head->embedding->rows, 64);
}

TEST(EagleHead, needs_no_map_where_it_drafts_every_token) {
  FakeHead fake{.map = {}};
  fake.config.erase("draft_vocab_size");
  fake.more = {{"lm_head.weight", {64, 32}}};
  const auto head = fake.load();
  ASSERT_TRUE(head) << head.error().message;
  EXPECT_EQ(head->target_ids.back(), 63);
}

TEST(EagleHead, is_refused_in_one_sentence_that_names_what_is_wrong) {
  const auto with = [](const char* key, const Json& value) {
    FakeHead fake;
    fake.config[key] = value;
    return fake.refusal();
  };
  EXPECT_THAT(with("hidden_size", 64), HasSubstr("the head is for a model of width 64"));
  EXPECT_THAT(with("vocab_size", 65), HasSubstr("with 65 tokens; target has"));
  EXPECT_THAT(with("eagle_config", Json::object()), HasSubstr("eagle_aux_hidden_state_layer_ids"));
  EXPECT_THAT(with("eagle_config", {{"eagle_aux_hidden_state_layer_ids", {1, 5, 9}}}),
              HasSubstr("what layer 5 leaves; target has 4"));
  EXPECT_THAT(with("eagle_config", {{"eagle_aux_hidden_state_layer_ids", {2, 2, 3}}}),
              HasSubstr("layer 2 leaves after layer 2: they ascend"));
  EXPECT_THAT(with("num_key_value_heads", 0), HasSubstr("num_key_value_heads is 0"));
  EXPECT_THAT(with("num_hidden_layers", 2), HasSubstr("num_hidden_layers is not 1"));
  EXPECT_THAT(with("rope_scaling", {{"rope_type", "yarn"}}), HasSubstr("rope_scaling is set"));
  EXPECT_THAT(with("draft_vocab_size", 65), HasSubstr("draft_vocab_size is between"));
  EXPECT_THAT(with("norm_before_fc", "yes"), HasSubstr("norm_before_fc is true or false"));
  EXPECT_THAT((FakeHead{.map = {0, 1, 62, 0}}.refusal()), HasSubstr("sends draft id 2 out of"));
  EXPECT_THAT((FakeHead{.map = {0, -2, 0, 0}}.refusal()), HasSubstr("sends draft id 1 out of"));
  EXPECT_THAT((FakeHead{.map = {0, 1}}.refusal()), HasSubstr("d2t is not I64 of shape [4]"));
  EXPECT_THAT((FakeHead{.map = {}}.refusal()), HasSubstr("there is no d2t"));
  EXPECT_THAT((FakeHead{.missing = {"fc.weight"}}.refusal()), HasSubstr("fc.weight"));
  EXPECT_THAT((FakeHead{.more = {{"fc.weight", {32, 64}}}}.refusal()), HasSubstr("fc.weight"));
}

TEST(RandomEagleHead, has_the_size_of_those_that_are_published) {
  ModelConfig target;
  target.num_layers = 24;
  target.hidden = 2880;
  target.num_heads = 64;
  target.num_kv_heads = 8;
  target.head_dim = 64;
  target.vocab = 201088;
  const EagleHead head = random_eagle_head(target, 1);
  EXPECT_EQ(head.config.boundaries, (std::vector<std::int64_t>{1, 11, 21}));
  EXPECT_EQ(head.config.intermediate, 17280);
  EXPECT_EQ(head.config.draft_vocab, 32000);
  EXPECT_EQ(head.q.cols, 5760);
  EXPECT_EQ(std::ssize(head.target_ids), 32000);
  EXPECT_LT(head.target_ids.back(), 201088);
  std::vector<float> row(2880);
  head.gate.read_row(17279, row.data());
  EXPECT_NE(row[0], row[1]);
  EXPECT_NE(head.gate.random_key, head.up.random_key);
}

}  // namespace
}  // namespace gauntlet::model
