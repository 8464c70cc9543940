// Are the likeliest paths handed in, and looked for no further than they can be found?
#include "engine/speculation/tree_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/random.h"

namespace gauntlet::engine::inline speculation {
namespace {

/// Five tokens, as likely as chance has it behind each path.
struct Source {
  std::uint64_t seed = 0;

  std::vector<float> after(const std::vector<std::int32_t>& path) const {
    std::uint64_t state = mix64(seed);
    for (const std::int32_t token : path) state = mix64(state + static_cast<std::uint64_t>(token));
    std::vector<float> logits;
    for (std::uint64_t i = 0; i < 5; ++i) logits.push_back(Random(state).uniform(-3, 3, i));
    return logits;
  }
  static double normaliser(const std::vector<float>& logits) {
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
    return std::log(sum);
  }
};

Draft search(const Source& source, const TreeShape& shape, std::int64_t most, int* levels) {
  TreeSearch search(shape, most);
  do {
    ++*levels;
    for (std::size_t i = 0; i < search.followed().size(); ++i) {
      std::vector<std::int32_t> path;
      for (const std::int32_t guess : search.path_to(search.followed()[i])) {
        path.push_back(search[guess].token);
      }
      const auto logits = source.after(path);
      search.add(i, logits, Source::normaliser(logits));
    }
  } while (search.descend());
  return search.draft();
}

/// Every path of up to so many tokens with its probability.
void visit(const Source& source, std::vector<std::int32_t> path, double log_probability,
           std::size_t depth, std::map<std::vector<std::int32_t>, double>& all) {
  if (path.size() == depth) return;
  const auto logits = source.after(path);
  path.push_back(0);
  for (std::int32_t token = 0; token < 5; ++token) {
    path.back() = token;
    const double own =
        log_probability + logits[static_cast<std::size_t>(token)] - Source::normaliser(logits);
    all[path] = own;
    visit(source, path, own, depth, all);
  }
}

TEST(TreeSearch, hands_in_the_likeliest_of_all_paths_where_it_may_follow_all) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Source source{seed};
    std::map<std::vector<std::int32_t>, double> all;
    visit(source, {}, 0, 3, all);
    std::vector<double> best;
    for (const auto& [path, probability] : all) best.push_back(probability);
    std::ranges::sort(best, std::greater());
    for (const std::int64_t most : {1, 4, 20}) {
      int levels = 0;
      const Draft draft = search(source, {.width = 125, .depth = 3}, most, &levels);
      ASSERT_EQ(std::ssize(draft), most);
      ASSERT_TRUE(draft.is_well_formed());
      std::vector<double> found;
      for (std::size_t i = 0; i < draft.size(); ++i) {
        std::vector<std::int32_t> path;
        for (auto at = static_cast<std::int32_t>(i); at >= 0; at = draft.parent(at)) {
          path.insert(path.begin(), draft[at]);
        }
        found.push_back(all.at(path));
      }
      std::ranges::sort(found, std::greater());
      for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], best[i], 1e-9);
      EXPECT_LE(levels, std::min<std::int64_t>(3, most));
    }
  }
}

TEST(TreeSearch, stays_within_its_shape) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (const TreeShape& shape : {TreeShape{.width = 2, .depth = 4},
                                   {.width = 3, .depth = 1},
                                   {.width = 9, .depth = 2},
                                   {.width = 1, .depth = 5}}) {
      int levels = 0;
      const Draft draft = search(Source{seed}, shape, 12, &levels);
      EXPECT_LE(draft.num_levels(), shape.depth);
      EXPECT_LE(levels, shape.depth);
      EXPECT_LE(draft.size(), 12u);
      EXPECT_EQ(draft.is_tree(), shape.width > 1);
    }
  }
}

TEST(Draft, is_accepted_along_what_was_drawn) {
  Draft draft;
  draft.add(5, -1);
  draft.add(6, -1);
  draft.add(7, 1);
  draft.add(8, 0);
  draft.add(7, 1);  // once more: the first is taken
  using Path = std::vector<std::int32_t>;
  EXPECT_EQ(accepted_path(draft, Path{6, 0, 7, 9, 0, 0}), (Path{1, 2}));
  EXPECT_EQ(accepted_path(draft, Path{5, 7, 0, 0, 0, 0}), (Path{0}));
  EXPECT_EQ(accepted_path(draft, Path{4, 8, 7, 0, 0, 0}), (Path{}));
  EXPECT_EQ(accepted_path(Draft{1, 2, 3}, Path{1, 2, 4, 5}), (Path{0, 1}));
  EXPECT_EQ(accepted_path(Draft{}, Path{1}), (Path{}));
  EXPECT_EQ(draft.num_levels(), 2);
  draft.shorten(3);
  EXPECT_EQ(draft.parents, (Path{-1, -1, 1}));
  EXPECT_TRUE(draft.is_well_formed());
  draft.parents = {-1, 0, 1};
  draft.simplify();
  EXPECT_FALSE(draft.is_tree());
  EXPECT_EQ(draft.num_levels(), 3);
}

}  // namespace
}  // namespace gauntlet::engine::inline speculation
