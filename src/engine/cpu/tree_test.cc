// Does each guess of a tree get the logits that its path alone gets, bit by bit, and does the path
// that is kept go on as if there had been no tree?
#include <gtest/gtest.h>

#include "core/random.h"
#include "engine/cpu/layers_cases.h"
#include "engine/speculation/draft.h"

namespace gauntlet::engine::cpu {
namespace {

using Tokens = std::vector<std::int32_t>;
using Logits = std::vector<float>;

/// A text that is computed twice: by trees, and a token after the other.
struct Text {
  SequenceId by_trees = 0;
  SequenceId plain = 0;
  std::int32_t next = 0;  // known, and not computed
};

/// One item of a step: a known token with guesses, or tokens of a prompt.
struct Asked {
  std::size_t text = 0;
  Draft guesses;
  BatchItem item;
};

class Trees {
 public:
  Trees(const EngineOptions& options, std::uint64_t seed)
      : random_(seed),
        executor_(std::move(make_cpu_executor(small_model(), {.options = options,
                                                              .max_sequences = 12,
                                                              .max_tokens = 4096,
                                                              .max_batch_tokens = 200})
                                .value())) {}

  void open() {
    texts_.push_back({.by_trees = executor_->kv().create(), .plain = executor_->kv().create()});
    const Tokens prompt = some_tokens(1 + below(40));
    compute(texts_.back().by_trees, prompt);
    compute(texts_.back().plain, prompt);
    texts_.back().next = some_token();
  }

  /// A step of all texts, each with a tree, a chain or a prompt.
  void step(std::uint64_t most_guesses) {
    std::vector<Asked> asked(texts_.size());
    for (std::size_t i = 0; i < texts_.size(); ++i) ask(i, most_guesses, asked[i]);
    std::vector<BatchItem> items;
    for (const Asked& one : asked) {
      check(executor_->kv().reserve(one.item.sequence, std::ssize(one.item.tokens)), "no pages");
      items.push_back(one.item);
    }
    const std::vector<ItemResult> results = executor_->collect(executor_->submit(items));
    for (std::size_t i = 0; i < asked.size(); ++i) {
      std::vector<Logits> logits;
      for (const RowResult& row : results[i].rows) logits.push_back(row.logits);
      logits.push_back(results[i].logits);
      asked[i].item.num_drafts == 0 ? go_on(asked[i], logits) : accept(asked[i], logits);
    }
    ASSERT_EQ(executor_->kv().check_integrity(), "");
  }
  void close() {
    for (const Text& text : texts_) {
      executor_->kv().free(text.by_trees);
      executor_->kv().free(text.plain);
    }
    texts_.clear();
  }
  int branched = 0;
  int moved = 0;

 private:
  std::uint64_t below(std::uint64_t bound) { return random_.next_below(bound); }
  std::int32_t some_token() { return static_cast<std::int32_t>(below(203)); }
  Tokens some_tokens(std::uint64_t count) {
    Tokens tokens;
    while (tokens.size() < count) tokens.push_back(some_token());
    return tokens;
  }
  /// Logits after each token.
  std::vector<Logits> compute(SequenceId sequence, const Tokens& tokens) {
    std::vector<Logits> all;
    for (const std::int32_t token : tokens) {
      all.push_back(decode(*executor_, sequence, token).logits);
    }
    return all;
  }

  void ask(std::size_t text, std::uint64_t most_guesses, Asked& asked) {
    asked.text = text;
    asked.item = {.sequence = texts_[text].by_trees, .tokens = {texts_[text].next}};
    const auto kind = below(6);
    const auto count = kind == 0 ? below(20) : 1 + below(most_guesses);
    for (std::uint64_t i = 0; i < count; ++i) {
      if (kind == 0) {  // more of a prompt
        asked.item.tokens.push_back(some_token());
      } else if (kind == 1) {
        asked.guesses.push_back(some_token());
      } else {  // as often as not behind the last one, so that paths get long
        const auto last = static_cast<std::int32_t>(i) - 1;
        const auto any = static_cast<std::int32_t>(below(i + 1)) - 1;
        asked.guesses.add(some_token(), below(2) == 0 ? last : any);
      }
    }
    branched += asked.guesses.is_tree();
    asked.item.tokens.insert(asked.item.tokens.end(), asked.guesses.begin(), asked.guesses.end());
    asked.item.num_drafts = std::ssize(asked.guesses);
    asked.item.parents = asked.guesses.parents;
    asked.item.want = Want::logits;
    if (kind != 0) asked.item.role = ItemRole::decode;
    for (std::int64_t t = 0; t + 1 < std::ssize(asked.item.tokens); ++t) {
      asked.item.rows.push_back({.token = t, .want = Want::logits});
    }
  }

  void go_on(const Asked& asked, const std::vector<Logits>& logits) {
    Text& text = texts_[asked.text];
    EXPECT_EQ(logits, compute(text.plain, asked.item.tokens)) << "a prompt";
    text.next = some_token();
  }

  /// Each path alone, from a fork; then one of them is kept.
  void accept(const Asked& asked, const std::vector<Logits>& logits) {
    Text& text = texts_[asked.text];
    KvPool& pool = executor_->kv();
    std::vector<std::vector<std::int32_t>> paths = {{}};  // to the known token, and to each guess
    for (std::size_t i = 0; i < asked.guesses.size(); ++i) {
      paths.push_back(paths[static_cast<std::size_t>(asked.guesses.parent(i) + 1)]);
      paths.back().push_back(static_cast<std::int32_t>(i));
    }
    for (std::size_t row = 0; row < paths.size(); ++row) {
      const SequenceId fork = pool.fork(text.plain);
      ASSERT_EQ(logits[row], compute(fork, tokens_of(asked, paths[row])).back())
          << "row " << row << " of " << paths.size();
      pool.free(fork);
    }
    std::vector<std::int32_t> kept = paths[below(paths.size())];
    std::vector<std::int64_t> places;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      places.push_back(pool.length(text.by_trees) + kept[i]);
      moved += kept[i] != static_cast<std::int32_t>(i);
    }
    pool.bring_together(text.by_trees, places);
    pool.commit(text.by_trees, std::ssize(places));
    pool.trim(text.by_trees);
    compute(text.plain, tokens_of(asked, kept));
    text.next = some_token();
  }
  static Tokens tokens_of(const Asked& asked, const std::vector<std::int32_t>& path) {
    Tokens tokens = {asked.item.tokens[0]};
    for (const std::int32_t guess : path) tokens.push_back(asked.guesses[guess]);
    return tokens;
  }

  Random random_;
  std::unique_ptr<Executor> executor_;
  std::vector<Text> texts_;
};

/// Texts of up to some 150 tokens, over the window of 16 and several pages.
void expect_paths_bits(const EngineOptions& options) {
  Trees trees(options, 3);
  for (const std::uint64_t texts : {1, 4}) {
    for (const std::uint64_t most_guesses : {3, 9, 63}) {
      SCOPED_TRACE(testing::Message() << texts << " texts, up to " << most_guesses << " guesses");
      for (std::uint64_t i = 0; i < texts; ++i) trees.open();
      for (int step = 0; step < 8 && !testing::Test::HasFailure(); ++step) {
        trees.step(texts == 1 ? most_guesses : std::min<std::uint64_t>(most_guesses, 40));
      }
      trees.close();
    }
  }
  EXPECT_GT(trees.branched, 20);
  EXPECT_GT(trees.moved, 20);
}

TEST(Trees, have_their_paths_bits_at_every_level) {
  for (const kernels::cpu::SimdLevel level : kernels::cpu::available_levels()) {
    for (const KvType kv : {KvType::f32, KvType::bf16}) {
      SCOPED_TRACE(kernels::cpu::name_of(level));
      expect_paths_bits({.simd = level, .threads = 2, .kv = kv});
    }
  }
}

TEST(Trees, have_their_paths_bits_by_either_attention_and_any_number_of_threads) {
  for (const AttentionKind attention : {AttentionKind::flash, AttentionKind::naive}) {
    for (const int threads : {1, 2}) {
      expect_paths_bits({.threads = threads, .attention = attention});
    }
  }
}

TEST(Trees, have_their_paths_bits_op_by_op_and_with_stages_apart) {
  expect_paths_bits({.threads = 2, .fusion = Fusion::op_by_op});
  expect_paths_bits({.threads = 2, .stages = Stages::apart});
}

}  // namespace
}  // namespace gauntlet::engine::cpu
