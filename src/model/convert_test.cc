#include "model/convert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/os/fake_tree.h"
#include "core/os/files.h"
#include "model/files/fake_gguf.h"
#include "model/files/fake_model.h"
#include "model/files/gguf.h"
#include "model/same_weights.h"
#include "model/tokens/token_list.h"

namespace gauntlet::model {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const std::string kModels = GAUNTLET_SOURCE_DIR "/models/";

void quiet(std::uint64_t, std::uint64_t) {}

void expect_same_config(const ModelConfig& a, const ModelConfig& b) {
  EXPECT_EQ(a.num_layers, b.num_layers);
  EXPECT_EQ(a.hidden, b.hidden);
  EXPECT_EQ(a.intermediate, b.intermediate);
  EXPECT_EQ(a.num_heads, b.num_heads);
  EXPECT_EQ(a.num_kv_heads, b.num_kv_heads);
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_EQ(a.num_experts, b.num_experts);
  EXPECT_EQ(a.experts_per_token, b.experts_per_token);
  EXPECT_EQ(a.vocab, b.vocab);
  EXPECT_EQ(a.max_positions, b.max_positions);
  EXPECT_EQ(a.sliding_window, b.sliding_window);
  EXPECT_EQ(a.rms_epsilon, b.rms_epsilon);
  EXPECT_EQ(a.rope_theta, b.rope_theta);
  EXPECT_EQ(a.rope.factor, b.rope.factor);
  EXPECT_EQ(a.rope.original_positions, b.rope.original_positions);
  EXPECT_EQ(a.rope.beta_fast, b.rope.beta_fast);
  EXPECT_EQ(a.rope.beta_slow, b.rope.beta_slow);
  EXPECT_EQ(a.swiglu_limit, b.swiglu_limit);
  EXPECT_EQ(a.tied_embeddings, b.tied_embeddings);
  EXPECT_EQ(a.attention, b.attention);
  EXPECT_EQ(a.bos_id, b.bos_id);
  EXPECT_EQ(a.eos_ids, b.eos_ids);
  EXPECT_EQ(a.add_bos, b.add_bos);
}

/// Writes the source there and opens what was written.
ModelSource rewritten(const ModelSource& source, const fs::path& path) {
  const auto saved = save_model(source, path, Existing::refuse, quiet);
  check(static_cast<bool>(saved), saved ? "" : saved.error().message);
  auto opened = open_source(path.string());
  check(static_cast<bool>(opened), opened ? "" : opened.error().message);
  return std::move(*opened);
}

void expect_same_tokens(const GgufTokens& a, const GgufTokens& b) {
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.pre, b.pre);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.types, b.types);
  EXPECT_EQ(a.merges, b.merges);
}

class Converted : public testing::TestWithParam<const char*> {};

TEST_P(Converted, is_the_same_model_in_gguf_and_back) {
  const FakeTree tree;
  const auto source = open_source(kModels + GetParam());
  ASSERT_TRUE(source) << source.error().message;
  const ModelSource gguf = rewritten(*source, tree.root() / "model.gguf");
  expect_same_weights(source->weights, gguf.weights);
  expect_same_config(source->weights.config, gguf.weights.config);
  expect_same_tokens(*source->tokens, *gguf.tokens);
  EXPECT_EQ(gguf.weights.layers[0].router.type, WeightType::f32);
  EXPECT_EQ(gguf.weights.layers[0].experts[0].up.order, Mxfp4Order::halves);

  const ModelSource back = rewritten(gguf, tree.root() / "back");
  expect_same_weights(source->weights, back.weights);
  expect_same_config(source->weights.config, back.weights.config);
  expect_same_tokens(*source->tokens, *back.tokens);
  EXPECT_EQ(back.weights.layers[0].router.type, WeightType::bf16);
  EXPECT_EQ(back.weights.file_bytes, source->weights.file_bytes);
  const auto tokenizer = Tokenizer::from_json(back.tokenizer_json, "back");
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("It was a bright day.")), "It was a bright day.");
}

INSTANTIATE_TEST_SUITE_P(Models, Converted, testing::Values("gauntlet-tiny", "gauntlet-draft"),
                         [](const auto& name) {
                           std::string text = name.param;
                           text[text.find('-')] = '_';
                           return text;
                         });

TEST(Convert, writes_the_keys_that_llama_cpp_reads) {
  const FakeTree tree;
  const fs::path path = tree.root() / "tiny.gguf";
  const auto source = open_source(kModels + "gauntlet-tiny");
  ASSERT_TRUE(source);
  ASSERT_TRUE(save_model(*source, path, Existing::refuse, quiet));
  const auto files = ModelFiles::open(path);
  ASSERT_TRUE(files);
  const auto gguf = GgufFile::parse(*files->gguf());
  ASSERT_TRUE(gguf) << gguf.error().message;
  const std::pair<const char*, int> integers[] = {
      {"general.file_type", 38},
      {"general.alignment", 32},
      {"gpt-oss.block_count", 6},
      {"gpt-oss.context_length", 4096},
      {"gpt-oss.embedding_length", 256},
      {"gpt-oss.feed_forward_length", 128},
      {"gpt-oss.attention.head_count", 4},
      {"gpt-oss.attention.head_count_kv", 2},
      {"gpt-oss.attention.key_length", 64},
      {"gpt-oss.attention.value_length", 64},
      {"gpt-oss.attention.sliding_window", 128},
      {"gpt-oss.expert_count", 32},
      {"gpt-oss.expert_used_count", 4},
      {"gpt-oss.expert_feed_forward_length", 128},
      {"gpt-oss.rope.dimension_count", 64},
      {"gpt-oss.rope.scaling.original_context_length", 512},
      {"gpt-oss.vocab_size", 4096},
      {"tokenizer.ggml.bos_token_id", 4087},
      {"tokenizer.ggml.eos_token_id", 4089},
      {"tokenizer.ggml.padding_token_id", 4088}};
  for (const auto& [key, value] : integers) {
    EXPECT_THAT(gguf->integer(key), testing::Optional(value)) << key;
  }
  EXPECT_THAT(gguf->number("gpt-oss.rope.freq_base"), testing::Optional(150000.0));
  EXPECT_THAT(gguf->number("gpt-oss.rope.scaling.factor"), testing::Optional(8.0));
  EXPECT_THAT(gguf->text("gpt-oss.rope.scaling.type"), testing::Optional(std::string_view("yarn")));
  EXPECT_THAT(gguf->text("tokenizer.ggml.pre"), testing::Optional(std::string_view("gpt-4o")));
  EXPECT_THAT(gguf->flag("tokenizer.ggml.add_bos_token"), testing::Optional(true));
  EXPECT_EQ(gguf->keys().size(), 32u);
  EXPECT_EQ(gguf->tensors().size(), 117u);
}

ModelSource random_small() {
  const auto config = parse_config(FakeModel().config.dump(), "config.json");
  check(static_cast<bool>(config), "the fake model's config is one");
  ModelConfig shape = *config;
  shape.vocab = 300;
  return random_source(shape, 11);
}

TEST(Convert, writes_random_weights_as_they_are_read) {
  const FakeTree tree;
  const ModelSource source = random_small();
  const ModelSource gguf = rewritten(source, tree.root() / "random.gguf");
  const ModelSource folder = rewritten(source, tree.root() / "random");
  expect_same_weights(source.weights, gguf.weights);
  expect_same_weights(source.weights, folder.weights);
  EXPECT_EQ(folder.weights.file_bytes, source.weights.file_bytes);
  const auto json_tokens = Tokenizer::from_json(folder.tokenizer_json, "random");
  const auto gguf_tokens = Tokenizer::from_gguf(*gguf.tokens, "random.gguf");
  ASSERT_TRUE(json_tokens) << json_tokens.error().message;
  ASSERT_TRUE(gguf_tokens) << gguf_tokens.error().message;
  const std::string text = "a \xF0\x9F\x8E\xB2\n\x01";
  EXPECT_EQ(json_tokens->encode(text), gguf_tokens->encode(text));
  EXPECT_EQ(json_tokens->decode(json_tokens->encode(text)), text);
}

TEST(Convert, gives_a_published_shape_its_special_tokens) {
  const GgufTokens tokens = make_tokens(*named_shape("gpt-oss-20b"));
  EXPECT_EQ(tokens.tokens.size(), 201088u);
  EXPECT_EQ(id_of(tokens, "<|startoftext|>"), 199998);
  EXPECT_EQ(id_of(tokens, "<|call|>"), 200012);
  EXPECT_EQ(std::set<std::string>(tokens.tokens.begin(), tokens.tokens.end()).size(), 201088u);
}

/// A model whose every matrix has another type than gpt-oss's own.
FakeGguf all_types(GgmlType dense, GgmlType experts) {
  FakeGguf fake;
  fake.put("general.architecture", std::string("gpt-oss"));
  const std::pair<const char*, std::uint32_t> integers[] = {
      {"block_count", 1},           {"context_length", 64},
      {"embedding_length", 64},     {"expert_feed_forward_length", 32},
      {"attention.head_count", 4},  {"attention.head_count_kv", 2},
      {"attention.key_length", 16}, {"attention.sliding_window", 16},
      {"expert_count", 2},          {"expert_used_count", 1}};
  for (const auto& [key, value] : integers) fake.put(std::string("gpt-oss.") + key, value);
  fake.put("gpt-oss.rope.freq_base", 10000.f);
  fake.put("gpt-oss.attention.layer_norm_rms_epsilon", 1e-6f);
  fake.put_array("gpt-oss.attention.sliding_window_pattern", GgufType::boolean, 1,
                 std::string(1, 0));
  fake.put("tokenizer.ggml.model", std::string("gpt2"));
  fake.put("tokenizer.ggml.pre", std::string("gpt-4o"));
  fake.put_array("tokenizer.ggml.tokens", GgufType::text, 2,
                 FakeGguf::text("a") + FakeGguf::text("b"));
  fake.put_array("tokenizer.ggml.token_type", GgufType::i32, 2,
                 FakeGguf::raw(1) + FakeGguf::raw(1));
  fake.put_array("tokenizer.ggml.merges", GgufType::text, 0, "");
  const auto bytes_of = [](GgmlType type, std::size_t values) {
    switch (type) {
      case GgmlType::f32:
        return values * 4;
      case GgmlType::q8_0:
        return values / 32 * 34;
      case GgmlType::mxfp4:
        return values / 32 * 17;
      default:
        return values * 2;
    }
  };
  const auto add = [&](const std::string& name, const std::vector<std::uint64_t>& dims,
                       GgmlType type) {
    std::size_t values = 1;
    for (const std::uint64_t size : dims) values *= size;
    fake.tensor(name, dims, type, bytes_of(type, values));
  };
  add("token_embd.weight", {64, 2}, dense);
  add("output_norm.weight", {64}, GgmlType::f32);
  const std::string at = "blk.0.";
  add(at + "attn_norm.weight", {64}, GgmlType::f32);
  add(at + "post_attention_norm.weight", {64}, GgmlType::f32);
  for (const auto& [name, rows] : {std::pair{"q", 64}, {"k", 32}, {"v", 32}, {"output", 64}}) {
    const auto count = static_cast<std::uint64_t>(rows);
    add(at + "attn_" + name + ".weight", {64, count}, dense);
    add(at + "attn_" + name + ".bias", {count}, GgmlType::f32);
  }
  add(at + "attn_sinks.weight", {4}, GgmlType::f32);
  add(at + "ffn_gate_inp.weight", {64, 2}, GgmlType::f32);
  add(at + "ffn_gate_inp.bias", {2}, GgmlType::f32);
  for (const char* part : {"gate", "up"}) {
    add(at + "ffn_" + part + "_exps.weight", {64, 32, 2}, experts);
    add(at + "ffn_" + part + "_exps.bias", {32, 2}, GgmlType::f32);
  }
  add(at + "ffn_down_exps.weight", {32, 64, 2}, experts);
  add(at + "ffn_down_exps.bias", {64, 2}, GgmlType::f32);
  return fake;
}

TEST(Convert, keeps_weights_of_every_type_exactly) {
  const std::pair<GgmlType, GgmlType> kinds[] = {{GgmlType::f32, GgmlType::bf16},
                                                 {GgmlType::f16, GgmlType::f16},
                                                 {GgmlType::q8_0, GgmlType::q8_0},
                                                 {GgmlType::bf16, GgmlType::f32},
                                                 {GgmlType::q8_0, GgmlType::mxfp4}};
  for (const auto& [dense, experts] : kinds) {
    FakeTree tree;
    tree.write("source.gguf", all_types(dense, experts).bytes());
    const auto source = open_source((tree.root() / "source.gguf").string());
    ASSERT_TRUE(source) << source.error().message;
    const ModelSource folder = rewritten(*source, tree.root() / "folder");
    expect_same_weights(source->weights, folder.weights);
    expect_same_config(source->weights.config, folder.weights.config);
    const ModelSource back = rewritten(folder, tree.root() / "back.gguf");
    expect_same_weights(source->weights, back.weights);
    const ModelSource again = rewritten(*source, tree.root() / "again.gguf");
    EXPECT_EQ(again.weights.layers[0].q.type, source->weights.layers[0].q.type);
    EXPECT_EQ(again.weights.layers[0].experts[1].up.type,
              source->weights.layers[0].experts[1].up.type);
    expect_same_weights(source->weights, again.weights);
  }
}

TEST(Convert, leaves_what_is_there_alone) {
  FakeTree tree;
  tree.write("kept.gguf", "precious");
  tree.write("folder/notes.txt", "precious");
  const ModelSource source = random_small();
  const fs::path file = tree.root() / "kept.gguf", folder = tree.root() / "folder";
  const auto refused = save_model(source, file, Existing::refuse, quiet);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, file.string() + " is there already; --force replaces it");
  EXPECT_EQ(refused.error().kind, ErrorKind::wrong_use);
  EXPECT_FALSE(save_model(source, folder, Existing::refuse, quiet));
  EXPECT_EQ(*read_file(file), "precious");
  EXPECT_TRUE(save_model(source, file, Existing::replace, quiet));
  EXPECT_TRUE(save_model(source, folder, Existing::replace, quiet));
  EXPECT_EQ(*read_file(folder / "notes.txt"), "precious");
  EXPECT_TRUE(open_source(file.string()));
  EXPECT_TRUE(open_source(folder.string()));
}

TEST(Convert, leaves_nothing_behind_when_it_fails) {
  const FakeTree tree;
  const auto failed =
      save_model(random_small(), tree.root() / "none" / "x.gguf", Existing::refuse, quiet);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, testing::HasSubstr("No such file or directory"));
  ModelSource odd = random_small();
  odd.weights.config.swiglu_limit = 5;
  EXPECT_FALSE(save_model(odd, tree.root() / "odd.gguf", Existing::refuse, quiet));
  odd.tokens.reset();
  EXPECT_FALSE(save_model(odd, tree.root() / "odd.gguf", Existing::refuse, quiet));
  {
    auto writer = FileWriter::create(tree.root() / "half");
    ASSERT_TRUE(writer);
    writer->write("half");
  }
  EXPECT_TRUE(fs::is_empty(tree.root()));
}

TEST(Convert, tells_how_far_it_is) {
  const FakeTree tree;
  std::vector<std::uint64_t> steps;
  std::uint64_t whole = 0;
  ASSERT_TRUE(save_model(random_small(), tree.root() / "x.gguf", Existing::refuse,
                         [&](std::uint64_t done, std::uint64_t total) {
                           steps.push_back(done);
                           whole = total;
                         }));
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  EXPECT_EQ(steps.back(), whole);
}

}  // namespace
}  // namespace gauntlet::model
