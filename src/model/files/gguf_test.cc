#include "model/files/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "model/files/fake_gguf.h"

namespace gauntlet::model::inline files {
namespace {

using testing::ElementsAre;
using testing::Optional;

ModelFile as_file(const std::string& bytes) {
  return {.name = "a.gguf",
          .where = "a.gguf",
          .bytes = std::as_bytes(std::span(bytes.data(), bytes.size()))};
}

FakeGguf small() {
  FakeGguf fake;
  fake.put("general.architecture", std::string("gpt-oss"));
  fake.put("epsilon", 1e-5f);
  fake.put("count", 7u);
  fake.put("small", GgufType::i8, FakeGguf::raw<std::int8_t>(-3));
  fake.put("yes", GgufType::boolean, FakeGguf::raw<std::uint8_t>(1));
  fake.put("huge", GgufType::u64, FakeGguf::raw<std::uint64_t>(UINT64_MAX));
  fake.put_array("words", GgufType::text, 2, FakeGguf::text("a b") + FakeGguf::text(""));
  fake.put_array("ids", GgufType::i32, 2,
                 FakeGguf::raw<std::int32_t>(-1) + FakeGguf::raw<std::int32_t>(9));
  fake.tensor("x", {4, 3}, GgmlType::f32, 48);
  fake.tensor("y", {64, 2}, GgmlType::mxfp4, 68);
  return fake;
}

TEST(Gguf, gives_metadata_by_type) {
  const std::string bytes = small().bytes();
  const auto file = GgufFile::parse(as_file(bytes));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_THAT(file->text("general.architecture"), Optional(std::string_view("gpt-oss")));
  EXPECT_THAT(file->number("epsilon"), Optional(1e-5));
  EXPECT_THAT(file->integer("count"), Optional(7));
  EXPECT_THAT(file->number("count"), Optional(7.0));
  EXPECT_THAT(file->integer("small"), Optional(-3));
  EXPECT_THAT(file->flag("yes"), Optional(true));
  EXPECT_THAT(file->texts("words"), Optional(ElementsAre("a b", "")));
  EXPECT_THAT(file->integers("ids"), Optional(ElementsAre(-1, 9)));
  EXPECT_THAT(file->keys(), testing::SizeIs(8));
}

TEST(Gguf, gives_nothing_for_another_type) {
  const std::string bytes = small().bytes();
  const auto file = GgufFile::parse(as_file(bytes));
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->integer("missing"));
  EXPECT_FALSE(file->integer("epsilon"));
  EXPECT_FALSE(file->integer("huge"));
  EXPECT_FALSE(file->integer("ids"));
  EXPECT_FALSE(file->integers("count"));
  EXPECT_FALSE(file->integers("words"));
  EXPECT_FALSE(file->texts("ids"));
  EXPECT_FALSE(file->text("count"));
  EXPECT_FALSE(file->flag("count"));
}

TEST(Gguf, gives_tensors_outermost_dimension_first) {
  const std::string bytes = small().bytes();
  const auto file = GgufFile::parse(as_file(bytes));
  ASSERT_TRUE(file);
  ASSERT_EQ(file->tensors().size(), 2u);
  EXPECT_THAT(file->tensors()[0].shape, ElementsAre(3, 4));
  EXPECT_EQ(file->tensors()[1].type, TensorType::mxfp4);
  EXPECT_EQ(file->tensors()[1].bytes, 68u);
  EXPECT_EQ(file->tensors()[1].data - file->tensors()[0].data, 64);
}

/// What the file is refused with after one change; empty when it is taken.
std::string refusal(const std::function<void(FakeGguf&)>& bend) {
  FakeGguf fake = small();
  bend(fake);
  const std::string bytes = fake.bytes();
  const auto file = GgufFile::parse(as_file(bytes));
  return file ? "" : file.error().message;
}

TEST(Gguf, refuses_a_file_cut_off_anywhere) {
  const std::string whole = small().bytes();
  for (std::size_t size = 0; size < whole.size() - 28; ++size) {  // padding ends it
    const std::string part = whole.substr(0, size);
    EXPECT_FALSE(GgufFile::parse(as_file(part))) << size;
  }
}

TEST(Gguf, refuses_what_is_no_gguf) {
  EXPECT_EQ(refusal([](FakeGguf& fake) { fake.magic = "GGML"; }), "a.gguf: this is no GGUF file");
  EXPECT_EQ(refusal([](FakeGguf& fake) { fake.version = 2; }),
            "a.gguf: GGUF version 2 is not supported, only 3");
}

TEST(Gguf, refuses_metadata_that_lies) {
  EXPECT_EQ(refusal([](FakeGguf& fake) { fake.put("count", 8u); }),
            "a.gguf: the key 'count' is there twice");
  EXPECT_EQ(refusal([](FakeGguf& fake) { fake.put("", 8u); }),
            "a.gguf: a key of the metadata is no name");
  EXPECT_EQ(refusal([](FakeGguf& fake) { fake.put("new", GgufType{77}, "abcd"); }),
            "a.gguf: 'new' has the unknown type 77");
  EXPECT_EQ(refusal([](FakeGguf& fake) {
              fake.put_array("nested", GgufType::array, 1, FakeGguf::raw(GgufType::u8));
            }),
            "a.gguf: 'nested' has the unknown type 9");
  EXPECT_EQ(refusal([](FakeGguf& fake) { fake.num_values = UINT64_MAX; }).substr(0, 7), "a.gguf:");
  EXPECT_EQ(refusal([](FakeGguf& fake) {
              fake.put("text", GgufType::text, FakeGguf::raw<std::uint64_t>(UINT64_MAX));
            }),
            "a.gguf: the file is cut off");
  EXPECT_EQ(refusal([](FakeGguf& fake) {
              fake.put_array("many", GgufType::u64, std::uint64_t{1} << 61, "");
            }),
            "a.gguf: 'many' has too many elements");
  EXPECT_EQ(refusal([](FakeGguf& fake) { fake.put_array("t", GgufType::text, UINT64_MAX, ""); }),
            "a.gguf: the file is cut off");
  for (const std::uint32_t alignment : {0u, 24u, 1u << 21}) {
    EXPECT_EQ(refusal([&](FakeGguf& fake) { fake.put("general.alignment", alignment); }),
              "a.gguf: 'general.alignment' is not a power of two up to a MiB");
  }
}

TEST(Gguf, refuses_tensors_that_lie) {
  const auto with = [](const std::function<void(FakeGguf::FakeTensor&)>& bend) {
    return refusal([&](FakeGguf& fake) { bend(fake.tensors[1]); });
  };
  using Fake = FakeGguf::FakeTensor;
  const std::string y = "a.gguf: tensor 'y' ";
  EXPECT_EQ(with([](Fake& t) { t.dims = {}; }), y + "has 0 dimensions");
  EXPECT_EQ(with([](Fake& t) { t.dims = {32, 1, 1, 1, 1}; }), y + "has 5 dimensions");
  EXPECT_EQ(with([](Fake& t) { t.dims = {48, 2}; }),
            y + "has rows of 48, not a multiple of the 32 values of a MXFP4 block");
  EXPECT_EQ(with([](Fake& t) { t.dims = {UINT64_MAX, 2}; }), y + "is too large");
  EXPECT_EQ(with([](Fake& t) { t.dims = {1u << 31, 1u << 31, 1u << 31}; }),
            y + "is too large: [2147483648, 2147483648, 2147483648]");
  // 2^62 floats are 2^64 bytes: zero, where nobody looks.
  EXPECT_EQ(with([](Fake& t) {
              t.dims = {std::uint64_t{1} << 62};
              t.type = 0;
            }),
            y + "is too large: [4611686018427387904]");
  EXPECT_EQ(with([](Fake& t) { t.type = 200; }), y + "has the unknown type 200");
  EXPECT_EQ(with([](Fake& t) { t.offset = 65; }), y + "begins at 65, which is not aligned to 32");
  EXPECT_EQ(with([](Fake& t) { t.offset = 128; }),
            y + "lies outside the 160 bytes of data: the file is cut off");
  EXPECT_EQ(with([](Fake& t) { t.offset = UINT64_MAX - 31; }),
            y + "lies outside the 160 bytes of data: the file is cut off");
  EXPECT_EQ(with([](Fake& t) { t.offset = 32; }), "a.gguf: tensors 'x' and 'y' overlap");
  EXPECT_EQ(with([](Fake& t) { t.name = ""; }), "a.gguf: a tensor has no name");
}

/// The second tensor claims these dimensions and this type over the 68 bytes it has.
std::string refusal_of(std::vector<std::uint64_t> dims, GgmlType type) {
  return refusal([&](FakeGguf& fake) {
    fake.tensors[1].dims = std::move(dims);
    fake.tensors[1].type = static_cast<std::uint32_t>(type);
  });
}

TEST(CvePatterns, cve_2025_53630_sizes_of_tensors_that_overflow_are_refused) {
  // Elements times bytes wraps to 0, to 64, or past what a signed size holds.
  for (const auto& dims :
       std::vector<std::vector<std::uint64_t>>{{std::uint64_t{1} << 62},
                                               {(std::uint64_t{1} << 62) + 16},
                                               {std::uint64_t{1} << 61, 2},
                                               {std::uint64_t{1} << 32, std::uint64_t{1} << 32},
                                               {UINT64_MAX}}) {
    EXPECT_THAT(refusal_of(dims, GgmlType::f32), testing::HasSubstr("is too large"));
  }
}

TEST(CvePatterns, cve_2026_27940_sums_and_paddings_that_overflow_are_refused) {
  // Each size holds alone: its offset, its blocks' bytes or the sum of both does not.
  for (const std::uint64_t offset : {UINT64_MAX - 31, UINT64_MAX - 63, std::uint64_t{1} << 63}) {
    EXPECT_THAT(refusal([&](FakeGguf& fake) { fake.tensors[1].offset = offset; }),
                testing::HasSubstr("lies outside"));
  }
  EXPECT_NE(refusal_of({(std::uint64_t{1} << 62) / 17 * 32}, GgmlType::mxfp4), "");
  EXPECT_NE(refusal_of({std::uint64_t{1} << 63}, GgmlType::mxfp4), "");
  EXPECT_NE(refusal([](FakeGguf& fake) {
              fake.tensors[0].dims = {std::uint64_t{1} << 60};
              fake.tensors[1].dims = {std::uint64_t{1} << 60};
            }),
            "");
}

TEST(CvePatterns, cve_2026_7482_dimensions_that_lie_about_the_data_are_refused) {
  for (const auto& dims : std::vector<std::vector<std::uint64_t>>{
           {64, 3}, {128, 2}, {64, 2, 2}, {64, 2, 1, 1000}, {1 << 20}}) {
    EXPECT_THAT(refusal_of(dims, GgmlType::mxfp4), testing::HasSubstr("lies outside"));
    EXPECT_THAT(refusal_of(dims, GgmlType::f32), testing::HasSubstr("lies outside"));
  }
  EXPECT_EQ(refusal_of({64, 2}, GgmlType::mxfp4), "") << "as it is";
}

FakeGguf metadata(const std::string& without = "") {
  FakeGguf fake;
  fake.put("general.architecture", std::string("gpt-oss"));
  const std::pair<const char*, std::uint32_t> integers[] = {
      {"block_count", 2},           {"context_length", 1024},
      {"embedding_length", 64},     {"expert_feed_forward_length", 32},
      {"attention.head_count", 4},  {"attention.head_count_kv", 2},
      {"attention.key_length", 16}, {"attention.sliding_window", 16},
      {"expert_count", 4},          {"expert_used_count", 2},
      {"vocab_size", 50},           {"rope.scaling.original_context_length", 256}};
  for (const auto& [key, value] : integers) {
    if (key != without) fake.put(std::string("gpt-oss.") + key, value);
  }
  const std::pair<const char*, float> floats[] = {{"rope.freq_base", 150000},
                                                  {"rope.scaling.factor", 4},
                                                  {"attention.layer_norm_rms_epsilon", 1e-5f}};
  for (const auto& [key, value] : floats) {
    if (key != without) fake.put(std::string("gpt-oss.") + key, value);
  }
  fake.put("gpt-oss.rope.scaling.type", std::string("yarn"));
  return fake;
}

Expected<ModelConfig> config_of(const FakeGguf& fake) {
  const std::string bytes = fake.bytes();
  const auto file = GgufFile::parse(as_file(bytes));
  if (!file) return file.error();
  return parse_gguf_config(*file);
}

TEST(GgufConfig, reads_the_shape) {
  const auto config = config_of(metadata());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->vocab, 50);
  EXPECT_EQ(config->rope.original_positions, 256);
  EXPECT_EQ(config->rms_epsilon, 1e-5);
  EXPECT_THAT(config->attention, ElementsAre(AttentionSpan::sliding, AttentionSpan::full));
}

TEST(GgufConfig, reads_which_layers_slide) {
  auto listed = metadata();
  listed.put_array("gpt-oss.attention.sliding_window_pattern", GgufType::boolean, 2,
                   std::string("\0\1", 2));
  EXPECT_THAT(config_of(listed)->attention,
              ElementsAre(AttentionSpan::full, AttentionSpan::sliding));
  auto period = metadata();
  period.put("gpt-oss.attention.sliding_window_pattern", 1u);
  EXPECT_THAT(config_of(period)->attention, ElementsAre(AttentionSpan::full, AttentionSpan::full));
  auto wrong = metadata();
  wrong.put("gpt-oss.attention.sliding_window_pattern", 0u);
  EXPECT_FALSE(config_of(wrong));
}

TEST(GgufConfig, knows_the_ends_by_their_text) {
  auto fake = metadata();
  fake.put_array("tokenizer.ggml.tokens", GgufType::text, 4,
                 FakeGguf::text("a") + FakeGguf::text("<|call|>") + FakeGguf::text("<|return|>") +
                     FakeGguf::text("<|endoftext|>"));
  fake.put("tokenizer.ggml.eos_token_id", 2u);
  EXPECT_THAT(config_of(fake)->eos_ids, ElementsAre(2, 3, 1));
}

TEST(GgufConfig, names_what_is_missing_or_wrong) {
  EXPECT_EQ(config_of(metadata("expert_count")).error().message,
            "a.gguf: 'gpt-oss.expert_count' is missing");
  auto text = metadata("expert_count");
  text.put("gpt-oss.expert_count", std::string("four"));
  EXPECT_EQ(config_of(text).error().message,
            "a.gguf: 'gpt-oss.expert_count' is not a whole number");
  auto rotated = metadata();
  rotated.put("gpt-oss.rope.dimension_count", 8u);
  EXPECT_EQ(config_of(rotated).error().message,
            "a.gguf: 'gpt-oss.rope.dimension_count' is not the head size 16");
  auto split = metadata();
  split.put("split.count", 3u);
  EXPECT_EQ(config_of(split).error().message,
            "a.gguf: this is one of 3 parts; merge them into one file");
  FakeGguf other;
  other.put("general.architecture", std::string("llama\x1b[31m"));
  EXPECT_EQ(config_of(other).error().message,
            "a.gguf: the architecture is 'llama?[31m'; this engine runs gpt-oss");
}

}  // namespace
}  // namespace gauntlet::model::inline files
