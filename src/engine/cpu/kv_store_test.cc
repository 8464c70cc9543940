// Does a position's key and value go where attention reads them, and nowhere else?
#include "engine/cpu/kv_store.h"

#include <gtest/gtest.h>

#include <bit>

#include "kernels/cpu/kernels.h"

namespace gauntlet::engine::cpu {
namespace {

using kernels::cpu::kPageTokens;

constexpr std::int64_t kHeads = 2, kDim = 32, kPages = 3;

/// A sliding layer, a full one, a sliding one.
model::ModelConfig small_config() {
  return {.num_layers = 3,
          .num_kv_heads = kHeads,
          .head_dim = kDim,
          .attention = {model::AttentionSpan::sliding, model::AttentionSpan::full,
                        model::AttentionSpan::sliding}};
}
KvPoolConfig small_pool() { return {.full_pages = kPages, .sliding_pages = kPages}; }

float half_at(const std::uint8_t* base, std::int64_t index) {
  const auto bits = reinterpret_cast<const std::uint16_t*>(base)[index];
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Element d of the key and value of one position, by the layouts of AttentionTask.
struct Element {
  float key;
  float value;
};
Element read(const KvStore& store, KvType type, std::int64_t layer, std::int64_t page,
             std::int64_t head, std::int64_t slot, std::int64_t d) {
  const std::uint8_t* keys = store.keys(layer, head) + page * store.page_stride_bytes();
  const std::uint8_t* values = store.values(layer, head) + page * store.page_stride_bytes();
  if (type == KvType::f32) {
    return {reinterpret_cast<const float*>(keys)[d * kPageTokens + slot],
            reinterpret_cast<const float*>(values)[slot * kDim + d]};
  }
  return {half_at(keys, (d / 2 * kPageTokens + slot) * 2 + d % 2),
          half_at(values, (slot / 2 * kDim + d) * 2 + slot % 2)};
}

/// Integers that bf16 has, too.
float key_at(std::int64_t d) { return static_cast<float>(d + 1); }
float value_at(std::int64_t d) { return static_cast<float>(-1 - d); }

void write(KvStore& store, std::int64_t layer, std::int32_t page, std::int64_t head, int slot) {
  float k[kDim], v[kDim];
  for (std::int64_t d = 0; d < kDim; ++d) k[d] = key_at(d), v[d] = value_at(d);
  store.write(layer, page, head, slot, k, v);
}

template <class IsWritten>
void expect_written(const KvStore& store, KvType type, IsWritten is_written) {
  for (std::int64_t layer = 0; layer < 3; ++layer) {
    for (std::int64_t page = 0; page < kPages; ++page) {
      for (std::int64_t head = 0; head < kHeads; ++head) {
        for (std::int64_t slot = 0; slot < kPageTokens; ++slot) {
          for (std::int64_t d = 0; d < kDim; ++d) {
            const bool written = is_written(layer, page, head, slot);
            const Element element = read(store, type, layer, page, head, slot, d);
            ASSERT_EQ(element.key, written ? key_at(d) : 0) << layer << " " << page << " " << slot;
            ASSERT_EQ(element.value, written ? value_at(d) : 0)
                << layer << " " << page << " " << slot;
          }
        }
      }
    }
  }
}

TEST(KvStore, writes_one_position_of_one_head) {
  for (const KvType type : {KvType::f32, KvType::bf16}) {
    for (const int at : {0, 1, 6, 15}) {
      KvStore store(small_config(), small_pool(), type);
      write(store, 1, 2, 1, at);
      expect_written(store, type, [at](auto layer, auto page, auto head, auto slot) {
        return layer == 1 && page == 2 && head == 1 && slot == at;
      });
    }
  }
}

TEST(KvStore, copies_a_page_in_every_layer_of_its_group_and_no_other) {
  for (const KvType type : {KvType::f32, KvType::bf16}) {
    KvStore store(small_config(), small_pool(), type);
    for (std::int64_t layer = 0; layer < 3; ++layer) {
      for (std::int64_t head = 0; head < kHeads; ++head) write(store, layer, 1, head, 3);
    }
    store.copy({.group = KvGroup::sliding, .from = 1, .to = 2});
    expect_written(store, type, [](auto layer, auto page, auto, auto slot) {
      return slot == 3 && (page == 1 || (page == 2 && layer != 1));
    });
    store.copy({.group = KvGroup::full, .from = 1, .to = 0});
    expect_written(store, type, [](auto layer, auto page, auto, auto slot) {
      return slot == 3 && (page == 1 || page == (layer == 1 ? 0 : 2));
    });
  }
}

TEST(KvStore, rounds_to_the_nearest_bf16_and_ties_to_even) {
  KvStore store(small_config(), small_pool(), KvType::bf16);
  float numbers[kDim] = {1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 1 + 0x1.8p-8f, -(1 + 0x1.8p-8f)};
  store.write(0, 0, 0, 5, numbers, numbers);
  const float expected[] = {1, 1 + 0x1p-6f, 1 + 0x1p-7f, -(1 + 0x1p-7f)};
  for (int d = 0; d < 4; ++d) {
    const Element element = read(store, KvType::bf16, 0, 0, 0, 5, d);
    EXPECT_EQ(element.key, expected[d]);
    EXPECT_EQ(element.value, expected[d]);
  }
}

TEST(KvStore, says_what_a_position_takes_and_whose_pages_a_layer_uses) {
  const KvStore full(small_config(), small_pool(), KvType::f32);
  const KvStore half(small_config(), small_pool(), KvType::bf16);
  EXPECT_EQ(full.position_bytes(), 2 * kHeads * kDim * 4);
  EXPECT_EQ(half.position_bytes(), 2 * kHeads * kDim * 2);
  EXPECT_EQ(full.group_of(0), KvGroup::sliding);
  EXPECT_EQ(full.group_of(1), KvGroup::full);
}

TEST(KvStore, refuses_pages_of_another_size) {
  KvPoolConfig pool = small_pool();
  pool.page_tokens = 32;
  EXPECT_ANY_THROW(KvStore(small_config(), pool, KvType::f32));
}

}  // namespace
}  // namespace gauntlet::engine::cpu
