// Does a query see its path through a tree, and nothing else, with the bits it has without a tree?
#include "kernels/cpu/path_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "core/random.h"
#include "kernels/ref/tree.h"

namespace gauntlet::kernels::cpu {
namespace {

/// A number of bf16's precision.
float half_precise(std::uint64_t seed, std::uint64_t draw) {
  const float value = Random(seed).uniform(-1, 1, draw);
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0xFFFF0000u);
}

/// Keys and values by place; what nobody wrote is NaN.
struct TreeCache {
  PageLayout layout;
  std::vector<std::int32_t> pages;
  std::vector<std::uint8_t> keys, values;
  std::vector<double> plain_keys, plain_values;  // [places, dim]

  TreeCache(PageLayout of, std::int64_t places) : layout(of) {
    const auto count = static_cast<std::int32_t>((places + kPageTokens - 1) / kPageTokens);
    for (std::int32_t p = 0; p < count; ++p) pages.push_back(count - 1 - p);
    keys.assign(static_cast<std::size_t>(count * of.bytes()), 0xFF);
    values = keys;
    plain_keys.resize(static_cast<std::size_t>(places * of.head_dim));
    plain_values = plain_keys;
  }
  Page page_of(std::int64_t place) {
    const std::int64_t at = pages[static_cast<std::size_t>(place / kPageTokens)] * layout.bytes();
    return {keys.data() + at, values.data() + at};
  }
  void put(std::int64_t place, std::uint64_t seed) {
    const Page page = page_of(place);
    const std::int64_t slot = place % kPageTokens, dim = layout.head_dim;
    for (std::int64_t d = 0; d < dim; ++d) {
      const float k = half_precise(seed, static_cast<std::uint64_t>(2 * d));
      const float v = half_precise(seed, static_cast<std::uint64_t>(2 * d + 1));
      plain_keys[static_cast<std::size_t>(place * dim + d)] = k;
      plain_values[static_cast<std::size_t>(place * dim + d)] = v;
      if (layout.type == KvType::f32) {
        std::memcpy(page.keys + (d * kPageTokens + slot) * 4, &k, 4);
        std::memcpy(page.values + (slot * dim + d) * 4, &v, 4);
      } else {  // the upper half of a float
        std::memcpy(page.keys + (d / 2 * kPageTokens + slot) * 4 + d % 2 * 2,
                    reinterpret_cast<const std::uint8_t*>(&k) + 2, 2);
        std::memcpy(page.values + (slot / 2 * dim + d) * 4 + slot % 2 * 2,
                    reinterpret_cast<const std::uint8_t*>(&v) + 2, 2);
      }
    }
  }
};

/// A context, and a path behind it that lies among other branches.
struct PathCase {
  std::int64_t context;
  std::vector<std::int32_t> path;  // places behind the context
};
const PathCase kPaths[] = {
    {37, {0, 2, 4, 5}},              // inside a page
    {37, {0, 9, 10, 12, 13}},        // over its end
    {48, {0, 20, 21}},               // from a page's first place, far apart
    {0, {0, 2}},                     // nothing before
    {15, {0, 4, 17, 18, 19, 40}},    // the first on a page's last place
    {63, {0, 1, 2, 3, 5}},           // at its position, as far as the end of a page
    {300, {0, 30, 31, 32, 33, 34}},  // behind many pages
};

/// Queries of every token of a path, the last ones first.
struct PathQueries {
  std::vector<std::int64_t> positions;
  std::vector<float> q, sinks, scratch;

  PathQueries(int dim, const PathCase& here) {
    for (std::int64_t r = std::ssize(here.path) - 1; r >= 0; --r) {
      positions.push_back(here.context + r);
      sinks.push_back(0.5f * static_cast<float>(r) - 1);
    }
    for (std::size_t i = 0; i < positions.size() * static_cast<std::size_t>(dim); ++i) {
      q.push_back(half_precise(7, i));
    }
    scratch.resize(static_cast<std::size_t>(positions[0] + 2 * kPageTokens));
  }
  AttentionTask task(const TreeCache& cache, std::int64_t window, std::vector<float>& out) {
    out.assign(q.size(), 0);
    return {.q = q.data(),
            .q_stride = cache.layout.head_dim,
            .out = out.data(),
            .out_stride = cache.layout.head_dim,
            .num_rows = static_cast<int>(positions.size()),
            .positions = positions.data(),
            .window = window,
            .sinks = sinks.data(),
            .head_dim = cache.layout.head_dim,
            .type = cache.layout.type,
            .pages = cache.pages.data(),
            .k_base = cache.keys.data(),
            .v_base = cache.values.data(),
            .page_stride_bytes = cache.layout.bytes(),
            .scratch = scratch.data()};
  }
};

class TreeAttention : public testing::TestWithParam<SimdLevel> {
 protected:
  TreeAttention() { kernels_.begin_work(); }
  void expect_as_without_a_tree(PageLayout layout, std::int64_t window, const PathCase& here) {
    const auto length = here.context + std::ssize(here.path);
    TreeCache tree(layout, here.context + 48), chain(layout, length);
    std::vector<std::int64_t> seen(static_cast<std::size_t>(here.context));
    std::iota(seen.begin(), seen.end(), 0);
    for (const std::int32_t place : here.path) seen.push_back(here.context + place);
    for (std::int64_t p = 0; p < here.context + 45; ++p) {
      tree.put(p, static_cast<std::uint64_t>(p));
    }
    for (std::size_t p = 0; p < seen.size(); ++p) {
      chain.put(static_cast<std::int64_t>(p), static_cast<std::uint64_t>(seen[p]));
    }
    const std::vector<std::int32_t> slots(seen.begin() + here.context, seen.end());
    PathQueries queries(layout.head_dim, here);
    const auto dim = static_cast<std::size_t>(layout.head_dim);
    for (auto* attend : {kernels_.flash_attention, kernels_.naive_attention}) {
      std::vector<float> of_tree, of_chain;
      AttentionTask task = queries.task(tree, window, of_tree);
      const TreePath path{here.context, slots};
      keys_.resize(
          std::max(keys_.size(), static_cast<std::size_t>(path_bytes(path, length - 1, layout))));
      values_.resize(keys_.size());
      gather_path(path, length - 1, {keys_.data(), values_.data()}, task);
      attend(task);
      attend(queries.task(chain, window, of_chain));
      ASSERT_EQ(of_tree, of_chain);
      const bool rounds = GetParam() == SimdLevel::amx && layout.type == KvType::bf16 &&
                          attend == kernels_.flash_attention;
      for (std::size_t r = 0; r < queries.positions.size(); ++r) {
        const std::vector<double> q(queries.q.begin() + static_cast<std::ptrdiff_t>(r * dim),
                                    queries.q.begin() + static_cast<std::ptrdiff_t>((r + 1) * dim));
        const auto expected = ref::tree_attention(
            {.q = q,
             .keys = tree.plain_keys,
             .values = tree.plain_values,
             .sink = queries.sinks[r],
             .window = window},
            std::span(seen).first(static_cast<std::size_t>(queries.positions[r] + 1)));
        for (std::size_t d = 0; d < dim; ++d) {
          ASSERT_NEAR(of_tree[r * dim + d], expected[d], rounds ? 1.0 / 512 : 1e-5);
        }
      }
    }
  }

  const KernelTable& kernels_ = kernels(GetParam());
  std::vector<std::uint8_t> keys_, values_;  // the same for all: what lay there before would show
};

TEST_P(TreeAttention, sees_a_path_as_if_there_were_no_tree) {
  for (const int dim : {32, 80}) {
    for (const KvType type : {KvType::f32, KvType::bf16}) {
      for (const std::int64_t window : {0, 5, 128}) {
        for (const PathCase& here : kPaths) {
          SCOPED_TRACE(testing::Message() << "dim " << dim << ", window " << window << ", context "
                                          << here.context << ", path to " << here.path.back());
          expect_as_without_a_tree({dim, type}, window, here);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, TreeAttention, testing::ValuesIn(available_levels()),
                         [](const auto& level) {
                           std::string name(name_of(level.param));
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(CopySlot, moves_one_key_and_value_and_leaves_the_others) {
  for (const KvType type : {KvType::f32, KvType::bf16}) {
    TreeCache cache({32, type}, 40), expected({32, type}, 40);
    for (std::int64_t p = 0; p < 40; ++p) {
      cache.put(p, static_cast<std::uint64_t>(p));
      expected.put(p, static_cast<std::uint64_t>(p == 17 ? 22 : p == 3 ? 38 : p));
    }
    const auto move = [&](std::int64_t from, std::int64_t to) {
      const Page page = cache.page_of(from);
      copy_slot(cache.layout, {page.keys, page.values}, static_cast<int>(from % kPageTokens),
                cache.page_of(to), static_cast<int>(to % kPageTokens));
    };
    move(22, 17);
    move(38, 3);
    EXPECT_EQ(cache.keys, expected.keys);
    EXPECT_EQ(cache.values, expected.values);
  }
}

}  // namespace
}  // namespace gauntlet::kernels::cpu
