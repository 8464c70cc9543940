// Which launches does a step become, and what do they read?
#include "engine/cuda/step_parts.h"

#include <gtest/gtest.h>

namespace gauntlet::engine::cuda {
namespace {

constexpr std::int64_t kVocab = 100;
constexpr DecodeLimits kLimits{.sequences = 4, .pages = 64, .rows = 8};

struct ItemOf {
  ItemRole role = ItemRole::decode;
  std::int32_t context = 0;
  std::int32_t num_tokens = 1;
};

/// Every token of an item that decodes has a row, and the last of a prompt. Ids count from 10.
StepData step_of(const std::vector<ItemOf>& items) {
  StepData step;
  for (const ItemOf& item : items) {
    const auto first = static_cast<std::int32_t>(step.num_tokens());
    step.items.push_back({.first_token = first,
                          .num_tokens = item.num_tokens,
                          .context = item.context,
                          .role = item.role});
    for (std::int32_t i = 0; i < item.num_tokens; ++i) {
      const std::int32_t at = item.context + i;
      step.tokens.push_back({.id = 10 + first + i, .position = at, .slot = at});
      if (item.role == ItemRole::prompt && i + 1 < item.num_tokens) continue;
      step.rows.push_back({.token = first + i, .want = Want::token});
    }
    step.table_stride = 2;
  }
  for (auto& table : step.tables) {
    for (std::int32_t i = 0; i < 2 * std::ssize(items); ++i) table.push_back(i);
  }
  return step;
}

std::vector<StepPart> cut(const StepData& step, Determinism determinism = Determinism::per_batch) {
  return cut_step(step, determinism, kLimits, kVocab);
}

/// A part's inputs in memory of their own.
struct Filled {
  Filled(const StepData& step, const StepPart& part, const std::vector<std::int32_t>& late = {})
      : memory(1 << 16) {
    const auto tokens = static_cast<std::size_t>(part.shape.tokens);
    std::int32_t* next = memory.data();
    const auto take = [&](std::size_t count) {
      std::int32_t* taken = next;
      next += count;
      return taken;
    };
    at.real_tokens = take(1);
    at.ids = take(tokens);
    at.first_token = take(tokens + 1);
    at.context = take(tokens);
    at.token_sequence = take(tokens);
    for (auto*& table : at.tables) {
      table = take(tokens * static_cast<std::size_t>(part.shape.table_stride));
    }
    at.logit_rows = take(tokens);
    at.targets = take(tokens);
    params.resize(tokens);
    at.params = params.data();
    fill_inputs(step, part, at, {{90, 91}}, {.rows = late, .first_guess = 500});
  }
  std::vector<std::int32_t> memory;
  std::vector<kernels::cuda::DrawParams> params;
  StepPointers at;
};

TEST(StepParts, a_guess_is_a_row_of_its_own_that_decodes) {
  const StepData step = step_of({{.context = 5, .num_tokens = 3}, {.context = 64}});
  const auto parts = cut(step);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].shape.sequences, 4);
  EXPECT_EQ(parts[0].shape.max_query, 1);
  EXPECT_TRUE(parts[0].shape.guesses);
  const Filled filled(step, parts[0]);
  const std::int32_t stride = parts[0].shape.table_stride;
  for (std::int32_t s = 0; s < 4; ++s) {
    EXPECT_EQ(filled.at.ids[s], 10 + s);
    EXPECT_EQ(filled.at.first_token[s], s);
    EXPECT_EQ(filled.at.context[s], s < 3 ? 5 + s : 64);
    EXPECT_EQ(filled.at.tables[0][s * stride], s < 3 ? 0 : 2) << "its item's pages";
    EXPECT_EQ(filled.at.logit_rows[s], s);
  }
}

TEST(StepParts, single_tokens_are_no_guesses) {
  const auto parts = cut(step_of({{.context = 5}, {.context = 9}}));
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_FALSE(parts[0].shape.guesses);
  EXPECT_EQ(parts[0].shape.max_query, 1);
}

TEST(StepParts, with_a_prompt_beside_it_an_item_stays_whole) {
  const StepData step =
      step_of({{.context = 5, .num_tokens = 3}, {.role = ItemRole::prompt, .num_tokens = 70}});
  const auto parts = cut(step);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].shape.sequences, 2);
  EXPECT_EQ(parts[0].shape.max_query, 70);
  EXPECT_EQ(parts[0].shape.logit_rows, 4);
  const Filled filled(step, parts[0]);
  EXPECT_EQ(filled.at.context[0], 5);
  EXPECT_EQ(filled.at.first_token[1], 3);
}

TEST(StepParts, more_guesses_than_have_room_stay_whole_unless_bits_are_fixed) {
  const StepData step = step_of({{.num_tokens = 5}, {.num_tokens = 5}, {.num_tokens = 3}});
  ASSERT_EQ(cut(step).size(), 1u);
  EXPECT_EQ(cut(step)[0].shape.sequences, 3);
  const auto parts = cut(step, Determinism::per_request);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].shape.sequences, 8);
  EXPECT_EQ(parts[1].shape.sequences, 5);
  EXPECT_EQ(parts[1].first_row, 8);
  EXPECT_EQ(choice_places(step, parts),
            (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  const Filled filled(step, parts[1]);
  EXPECT_EQ(filled.at.ids[0], 18);
  EXPECT_EQ(filled.at.context[0], 3) << "the fourth token of the second item";
}

TEST(StepParts, prompts_and_what_decodes_are_apart_where_bits_are_fixed) {
  const StepData step = step_of({{.role = ItemRole::prompt, .num_tokens = 4},
                                 {.context = 7, .num_tokens = 2},
                                 {.role = ItemRole::prompt, .num_tokens = 1}});
  const auto parts = cut(step, Determinism::per_request);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].rows, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(parts[1].rows, (std::vector<std::int32_t>{0, 3}));
  EXPECT_EQ(parts[1].shape.max_query, 4);
}

TEST(StepParts, late_tokens_and_padding_are_where_kernels_look_for_them) {
  StepData step = step_of({{.context = 3}, {.context = 4}});
  step.tokens[1].id = late_row(5);
  auto parts = cut(step);
  parts[0].shape.tokens = parts[0].shape.sequences = parts[0].shape.logit_rows = 3;
  const Filled filled(step, parts[0], {0, 0, 0, 0, 0, 42});
  EXPECT_EQ(filled.at.ids[1], late_row(42));
  step.tokens[1].id = late_guess(3);
  const Filled guessed(step, cut(step)[0]);
  EXPECT_EQ(guessed.at.ids[1], late_row(503)) << "guesses lie behind the choices";
  EXPECT_EQ(*filled.at.real_tokens, 2);
  EXPECT_EQ(filled.at.tables[0][2 * parts[0].shape.table_stride], 90) << "pages of nobody";
  EXPECT_EQ(filled.at.tables[1][2 * parts[0].shape.table_stride], 91);
}

TEST(StepParts, what_kernels_cannot_place_is_refused) {
  StepData apart = step_of({{.context = 3, .num_tokens = 2}});
  apart.tokens[1].slot = 7;
  EXPECT_ANY_THROW(cut(apart));
  StepData elsewhere = step_of({{.context = 3}});
  elsewhere.tokens[0].position = elsewhere.tokens[0].slot = 9;
  EXPECT_ANY_THROW(cut(elsewhere));
  StepData late = step_of({{.num_tokens = 8}, {.num_tokens = 2}});
  late.tokens[8].id = late_row(0);
  EXPECT_ANY_THROW(cut(late, Determinism::per_request)) << "its choice would be overwritten";
  late.tokens[8].id = late_guess(0);
  EXPECT_NO_THROW(cut(late, Determinism::per_request)) << "no launch writes over guesses";
  StepData many = step_of(std::vector<ItemOf>(10, {.num_tokens = 8}));
  EXPECT_ANY_THROW(cut(many, Determinism::per_request));
}

}  // namespace
}  // namespace gauntlet::engine::cuda
