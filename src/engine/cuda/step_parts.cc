#include "engine/cuda/step_parts.h"

#include <algorithm>

#include "core/check.h"

namespace gauntlet::engine::cuda {
namespace {

/// Kernels derive a token's position, and from that its slot, from where its item stands.
void check_order(const StepData& step) {
  for (const StepData::Item& item : step.items) {
    for (std::int32_t i = 0; i < item.num_tokens; ++i) {
      const StepToken& token = step.tokens[static_cast<std::size_t>(item.first_token) + i];
      check(token.position == item.context + i && token.slot == token.position,
            "on a GPU an item's tokens follow its context, each in the slot of its position");
    }
  }
}

void add_item(const StepData& step, std::int32_t index, StepPart& part) {
  const StepData::Item& item = step.items[static_cast<std::size_t>(index)];
  part.pieces.push_back({.item = index, .first = item.first_token, .num_tokens = item.num_tokens});
}

/// One piece a token, in new parts of at most so many.
void add_decoding(const StepData& step, int most_rows, std::vector<StepPart>& parts) {
  for (std::int32_t i = 0; i < std::ssize(step.items); ++i) {
    const StepData::Item& item = step.items[static_cast<std::size_t>(i)];
    if (item.role != ItemRole::decode) continue;
    for (std::int32_t t = 0; t < item.num_tokens; ++t) {
      if (parts.empty() || std::ssize(parts.back().pieces) == most_rows) parts.emplace_back();
      parts.back().pieces.push_back({.item = i, .first = item.first_token + t, .num_tokens = 1});
      if (t > 0) parts.back().shape.guesses = true;
    }
  }
}

std::vector<StepPart> cut(const StepData& step, Determinism determinism,
                          const DecodeLimits& limits) {
  std::vector<StepPart> parts;
  const bool all_decode = std::ranges::all_of(
      step.items, [](const auto& item) { return item.role == ItemRole::decode; });
  if (determinism == Determinism::per_request ||
      (all_decode && step.num_tokens() <= limits.most_rows())) {
    add_decoding(step, limits.most_rows(), parts);
    if (all_decode) return parts;
  }
  StepPart& whole = parts.emplace_back();
  for (std::int32_t i = 0; i < std::ssize(step.items); ++i) {
    const bool is_placed = determinism == Determinism::per_request &&
                           step.items[static_cast<std::size_t>(i)].role == ItemRole::decode;
    if (!is_placed) add_item(step, i, whole);
  }
  return parts;
}

void describe(const StepData& step, StepPart& part, const DecodeLimits& limits,
              std::int64_t vocab) {
  StepShape& shape = part.shape;
  int pages = 1;
  for (const StepPiece& piece : part.pieces) {
    const StepData::Item& item = step.items[static_cast<std::size_t>(piece.item)];
    constexpr int kPage = kernels::cuda::kPageTokens;
    pages = std::max(pages, (item.end() + kPage - 1) / kPage);
    shape.max_query = std::max(shape.max_query, piece.num_tokens);
    part.real_tokens += piece.num_tokens;
  }
  for (const std::int32_t r : part.rows) {
    const StepRow& row = step.rows[static_cast<std::size_t>(r)];
    shape.greedy = shape.greedy && row.is_greedy();
    shape.targets = shape.targets || row.target >= 0;
    if (row.mask >= 0) shape.mask_words = static_cast<int>((vocab + 31) / 32);
  }
  shape.tokens = part.real_tokens;
  shape.sequences = static_cast<int>(part.pieces.size());
  shape.logit_rows = static_cast<int>(part.rows.size());
  shape.table_stride = pages;
  if (shape.max_query > 1) return;
  shape.table_stride = padded_table(pages, limits);
  if (shape.logit_rows == shape.tokens) {
    shape.tokens = padded_batch(shape.tokens, limits);
    shape.sequences = shape.logit_rows = shape.tokens;
  }
}

/// Writes one row's targets, draw and mask.
void fill_row(const StepData& step, const StepRow& row, int at_row, const StepShape& shape,
              const StepPointers& at) {
  at.targets[at_row] = row.target;
  at.params[at_row] = {};
  if (row.sampling.temperature > 0) {
    at.params[at_row] = {.temperature = row.sampling.temperature,
                         .top_p = row.sampling.top_p,
                         .min_p = row.sampling.min_p,
                         .top_k = row.sampling.top_k,
                         .point = draw_point(row.sampling)};
  }
  if (shape.mask_words == 0) return;
  std::uint32_t* mask = at.allowed + std::int64_t{at_row} * shape.mask_words;
  if (row.mask >= 0) {
    std::copy_n(step.masks[static_cast<std::size_t>(row.mask)].begin(), shape.mask_words, mask);
  } else {
    std::fill_n(mask, shape.mask_words, ~0u);
  }
}

std::int32_t device_id(std::int32_t id, const LatePlaces& late_places) {
  if (!is_late(id)) return id;
  if (is_late_guess(id)) return late_row(late_places.first_guess + place_of_guess(id));
  const auto row = static_cast<std::size_t>(row_of_late(id));
  check(row < late_places.rows.size(),
        "a late token names a row that the step before does not have");
  return late_row(late_places.rows[row]);
}

}  // namespace

std::vector<StepPart> cut_step(const StepData& step, Determinism determinism,
                               const DecodeLimits& limits, std::int64_t vocab) {
  check_order(step);
  std::vector<StepPart> parts = cut(step, determinism, limits);
  check(std::ssize(parts) <= kMostParts,
        "a step decodes more guesses than its backend has room for");
  std::vector<std::size_t> part_of(step.tokens.size());
  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (const StepPiece& piece : parts[p].pieces) {
      std::fill_n(part_of.begin() + piece.first, piece.num_tokens, p);
    }
  }
  for (std::size_t r = 0; r < step.rows.size(); ++r) {
    parts[part_of[static_cast<std::size_t>(step.rows[r].token)]].rows.push_back(
        static_cast<std::int32_t>(r));
  }
  for (const StepPart& part : std::span(parts).subspan(1)) {
    // The first part's choices lie where those of the step before did.
    check(std::ranges::none_of(part.pieces,
                               [&](const StepPiece& piece) {
                                 const std::int32_t id =
                                     step.tokens[static_cast<std::size_t>(piece.first)].id;
                                 return is_late(id) && !is_late_guess(id);
                               }),
          "a token that is not known yet decodes in a step's first launch");
  }
  int first_row = 0;
  for (StepPart& part : parts) {
    describe(step, part, limits, vocab);
    part.first_row = first_row;
    first_row += part.shape.logit_rows;
  }
  return parts;
}

void fill_inputs(const StepData& step, const StepPart& part, const StepPointers& at,
                 const PaddingPages& padding, const LatePlaces& late_places) {
  const StepShape& shape = part.shape;
  *at.real_tokens = part.real_tokens;
  int token = 0, row = 0;
  for (int s = 0; s < shape.sequences; ++s) {
    const bool is_real = s < std::ssize(part.pieces);
    at.first_token[s] = token;
    at.context[s] = 0;
    for (int g = 0; g < kNumKvGroups; ++g) {
      std::int32_t* table = at.tables[g] + std::int64_t{s} * shape.table_stride;
      std::fill_n(table, shape.table_stride, is_real ? kNoPage : padding.of_group[g]);
    }
    if (!is_real) {
      at.ids[token] = 0;
      at.token_sequence[token] = s;
      at.logit_rows[row] = token++;
      fill_row(step, {}, row++, shape, at);
      continue;
    }
    const StepPiece& piece = part.pieces[static_cast<std::size_t>(s)];
    const auto index = static_cast<std::size_t>(piece.item);
    at.context[s] = step.tokens[static_cast<std::size_t>(piece.first)].position;
    for (const KvGroup group : {KvGroup::full, KvGroup::sliding}) {
      const auto pages = step.table(index, group);
      std::copy_n(pages.begin(), std::min<std::int64_t>(std::ssize(pages), shape.table_stride),
                  at.tables[static_cast<int>(group)] + std::int64_t{s} * shape.table_stride);
    }
    for (std::int32_t t = piece.first; t < piece.first + piece.num_tokens; ++t, ++token) {
      at.ids[token] = device_id(step.tokens[static_cast<std::size_t>(t)].id, late_places);
      at.token_sequence[token] = s;
      if (row == std::ssize(part.rows)) continue;
      const StepRow& wanted =
          step.rows[static_cast<std::size_t>(part.rows[static_cast<std::size_t>(row)])];
      if (wanted.token != t) continue;
      at.logit_rows[row] = token;
      fill_row(step, wanted, row++, shape, at);
    }
  }
  at.first_token[shape.sequences] = token;
}

std::vector<std::int32_t> choice_places(const StepData& step, const std::vector<StepPart>& parts) {
  std::vector<std::int32_t> places(step.rows.size());
  for (const StepPart& part : parts) {
    for (std::size_t r = 0; r < part.rows.size(); ++r) {
      places[static_cast<std::size_t>(part.rows[r])] =
          part.first_row + static_cast<std::int32_t>(r);
    }
  }
  return places;
}

}  // namespace gauntlet::engine::cuda
