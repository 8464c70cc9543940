#include "model/files/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "model/files/fake_model.h"

namespace gauntlet::model::inline files {
namespace {

using nlohmann::json;

FakeSafetensors two_tensors() {
  FakeSafetensors file;
  file.add("a", "F32", {2, 3});
  file.add("b", "U8", {5});
  return file;
}

/// What reading the bytes as a.safetensors is refused with; empty when they are taken.
std::string refusal_of(const std::string& bytes) {
  TensorTable table("model");
  const ModelFile file{.name = "a.safetensors",
                       .where = "a.safetensors",
                       .bytes = std::as_bytes(std::span(bytes.data(), bytes.size()))};
  const auto added = add_safetensors(file, table);
  return added ? "" : added.error().message;
}

std::string refusal(const std::function<void(FakeSafetensors&)>& change) {
  FakeSafetensors file = two_tensors();
  change(file);
  return refusal_of(file.bytes());
}

TEST(Safetensors, gives_tensors_by_name) {
  const std::string bytes = two_tensors().bytes();
  TensorTable table("model");
  const ModelFile file{.name = "a.safetensors",
                       .where = "a.safetensors",
                       .bytes = std::as_bytes(std::span(bytes.data(), bytes.size()))};
  ASSERT_TRUE(add_safetensors(file, table));
  ASSERT_NE(table.find("a"), nullptr);
  EXPECT_EQ(table.find("a")->type, TensorType::f32);
  EXPECT_THAT(table.find("a")->shape, testing::ElementsAre(2, 3));
  EXPECT_EQ(table.find("b")->bytes, 5u);
  EXPECT_EQ(table.find("c"), nullptr);
  EXPECT_EQ(table.total_bytes(), 29);
  EXPECT_EQ(add_safetensors(file, table).error().message,
            "a.safetensors: tensor 'a' is in a.safetensors already");
}

TEST(Safetensors, takes_empty_tensors_and_metadata) {
  FakeSafetensors file = two_tensors();
  file.add("none", "F32", {0, 7});
  file.header["__metadata__"] = {{"format", "pt"}};
  EXPECT_EQ(refusal_of(file.bytes()), "");
}

TEST(Safetensors, refuses_a_file_cut_off_anywhere) {
  const std::string whole = two_tensors().bytes();
  ASSERT_EQ(refusal_of(whole), "");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(refusal_of(whole.substr(0, size)), "") << size;
  }
  EXPECT_EQ(refusal_of(whole.substr(0, 7)), "a.safetensors: the file is cut off");
  EXPECT_EQ(refusal_of(whole.substr(0, 20)),
            "a.safetensors: the file is cut off inside its header");
  EXPECT_EQ(refusal_of(whole.substr(0, whole.size() - 1)),
            "a.safetensors: tensor 'b' ends at byte 29 of 28: the file is cut off");
}

TEST(Safetensors, refuses_a_header_that_is_none) {
  EXPECT_EQ(refusal_of(std::string(100, '\xff')),
            "a.safetensors: the header claims 18446744073709551615 bytes: this is no safetensors "
            "file");
  const FakeSafetensors file = two_tensors();
  EXPECT_EQ(refusal_of(file.bytes_with_header("{")), "a.safetensors: the header is not valid JSON");
  EXPECT_EQ(refusal_of(file.bytes_with_header("[]")),
            "a.safetensors: the header is not a JSON object");
  EXPECT_EQ(refusal_of(file.bytes_with_header(R"({"a": 1, "a": 2})")),
            "a.safetensors: the header has the key 'a' twice");
}

TEST(Safetensors, refuses_an_entry_that_lies) {
  const auto with = [](const char* key, const json& value) {
    return refusal([&](FakeSafetensors& file) { file.header["a"][key] = value; });
  };
  const std::string a = "a.safetensors: tensor 'a' ";
  EXPECT_EQ(with("dtype", "F7"), a + "has the unknown dtype 'F7'");
  EXPECT_EQ(with("dtype", 3), a + "has no dtype");
  EXPECT_EQ(with("dtype", "F16"), a + "has 24 bytes, but F16 [2, 3] takes 12");
  EXPECT_EQ(with("shape", {2, 4}), a + "has 24 bytes, but F32 [2, 4] takes 32");
  EXPECT_EQ(with("shape", "big"), a + "has no shape");
  EXPECT_EQ(with("shape", {2, -3}), a + "has a shape that is not made of sizes");
  EXPECT_EQ(with("shape", {2, 3.0}), a + "has a shape that is not made of sizes");
  EXPECT_EQ(with("shape", json::array({1, 1, 1, 1, 1, 1, 1, 2, 3})), a + "has no shape");
  EXPECT_EQ(with("data_offsets", {0}), a + "has no data_offsets");
  EXPECT_EQ(with("data_offsets", {24, 0}), a + "has data_offsets that are no range");
  EXPECT_EQ(with("data_offsets", {-24, 0}), a + "has data_offsets that are no range");
  EXPECT_EQ(with("data_offsets", {100, 124}), a + "ends at byte 124 of 29: the file is cut off");
  EXPECT_EQ(refusal([](FakeSafetensors& file) { file.header["a"] = 7; }),
            a + "is not described by an object");
}

TEST(Safetensors, refuses_sizes_that_overflow) {
  const auto with_shape = [](const json& shape) {
    return refusal([&](FakeSafetensors& file) { file.header["a"]["shape"] = shape; });
  };
  constexpr std::int64_t kHalf = std::int64_t{1} << 32;
  EXPECT_THAT(with_shape({kHalf, kHalf}), testing::HasSubstr("is too large"));
  EXPECT_THAT(with_shape({kHalf, kHalf, 0}), testing::HasSubstr("is too large"));
  // 2^62 floats are 2^64 bytes: zero, where nobody looks.
  EXPECT_THAT(with_shape({std::int64_t{1} << 62}), testing::HasSubstr("is too large"));
}

TEST(Safetensors, refuses_ranges_that_overlap) {
  EXPECT_EQ(refusal([](FakeSafetensors& file) { file.header["b"]["data_offsets"] = {23, 28}; }),
            "a.safetensors: tensors 'a' and 'b' overlap");
}

struct Shards {
  FakeFiles fake;
  Shards() {
    FakeSafetensors one, two;
    one.add("a", "F32", {2});
    two.add("b", "F32", {3});
    fake.texts = {{"model-00000-of-00002.safetensors", one.bytes()},
                  {"model-00001-of-00002.safetensors", two.bytes()}};
    index({{"a", "model-00000-of-00002.safetensors"}, {"b", "model-00001-of-00002.safetensors"}});
  }
  void index(const json& map) {
    fake.texts["model.safetensors.index.json"] = json{{"weight_map", map}}.dump();
  }
  std::string refusal() const {
    const auto table = read_safetensors(fake.files());
    return table ? "" : table.error().message;
  }
};

TEST(Shards, are_read_as_one) {
  const Shards shards;
  const auto table = read_safetensors(shards.fake.files());
  ASSERT_TRUE(table) << table.error().message;
  EXPECT_EQ(table->find("a")->where, "model-00000-of-00002.safetensors");
  EXPECT_EQ(table->find("b")->where, "model-00001-of-00002.safetensors");
}

TEST(Shards, need_no_index) {
  Shards shards;
  shards.fake.texts.erase("model.safetensors.index.json");
  EXPECT_EQ(shards.refusal(), "");
}

TEST(Shards, refuse_an_index_that_lies) {
  Shards shards;
  shards.index({{"a", "model-00007-of-00002.safetensors"}});
  EXPECT_EQ(shards.refusal(),
            "model.safetensors.index.json: the file 'model-00007-of-00002.safetensors', which "
            "holds tensor 'a', is missing");
  shards.index({{"c", "model-00000-of-00002.safetensors"}});
  EXPECT_EQ(shards.refusal(),
            "model.safetensors.index.json: tensor 'c' is not in "
            "'model-00000-of-00002.safetensors'");
  shards.index(
      {{"b", "model-00000-of-00002.safetensors"}, {"a", "model-00001-of-00002.safetensors"}});
  EXPECT_EQ(shards.refusal(),
            "model.safetensors.index.json: tensor 'a' is not in "
            "'model-00001-of-00002.safetensors'");
  shards.index({{"a", "../secret.safetensors"}});
  EXPECT_EQ(shards.refusal(),
            "model.safetensors.index.json: tensor 'a' is not mapped to a file of the folder");
  shards.index(3);
  EXPECT_EQ(shards.refusal(), "model.safetensors.index.json: 'weight_map' is missing");
}

}  // namespace
}  // namespace gauntlet::model::inline files
