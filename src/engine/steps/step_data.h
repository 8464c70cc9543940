// One step as plain data: what a backend needs to compute it, or another rank, to which it can be
// sent. No pool, no pointers into one; positions and pages are numbers.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/expected.h"
#include "engine/kv/kv_pool.h"
#include "engine/sampling/sampler.h"
#include "model/config.h"

namespace gauntlet::engine::inline steps {

/// Whose pages a layer's keys and values lie in.
constexpr KvGroup group_of(model::AttentionSpan span) {
  return span == model::AttentionSpan::full ? KvGroup::full : KvGroup::sliding;
}

/// Tokens that an item with a tree of guesses can have: a bit for each.
inline constexpr std::int64_t kMostTreeTokens = 64;

/// What is wanted of a token in this step; each includes the one before.
enum class Want {
  nothing,          // a chunk of a prompt that goes on
  token,            // sample one after it
  log_probability,  // of that token
  logits,           // all of them after it
};

/// Decides kernels and graphs: a chunk of a prompt, or the known token of a sequence that decodes,
/// with guesses behind it.
enum class ItemRole { prompt, decode };

struct StepToken {
  std::int32_t id = 0;        // or late_row(...)
  std::int32_t position = 0;  // what it is rotated by, and sees no further than
  /// Where its keys and values go: a place in its item's pages. Its position, but in a tree.
  std::int32_t slot = 0;
};

/// A token that is not known when its step is started: the one that row `row` of the step started
/// before samples.
constexpr std::int32_t late_row(std::int64_t row) { return static_cast<std::int32_t>(-1 - row); }
constexpr bool is_late(std::int32_t id) { return id < 0; }
constexpr std::int64_t row_of_late(std::int32_t id) { return -1 - std::int64_t{id}; }

/// A guess that is not known when its step is started: what a draft head left in that place of a
/// DeviceSeam. No step has as many rows as come before the first of these.
inline constexpr std::int64_t kFirstLateGuess = 1 << 20;
constexpr std::int32_t late_guess(std::int64_t place) { return late_row(kFirstLateGuess + place); }
constexpr bool is_late_guess(std::int32_t id) {
  return is_late(id) && row_of_late(id) >= kFirstLateGuess;
}
constexpr std::int64_t place_of_guess(std::int32_t id) { return row_of_late(id) - kFirstLateGuess; }

/// A token whose logits are wanted.
struct StepRow {
  std::int32_t token = 0;    // index into the step's tokens
  std::int32_t target = -1;  // an id whose log-probability is wanted; -1: none
  std::int32_t mask = -1;    // index into the step's masks; -1: every id is allowed
  Want want = Want::nothing;
  bool wants_normed = false;  // what the output head reads comes back, too
  SamplingParams sampling;    // its step is this row's own

  bool is_greedy() const { return sampling.temperature == 0 && mask < 0; }
};

struct StepData {
  struct Item {
    std::int32_t first_token = 0;
    std::int32_t num_tokens = 0;
    std::int32_t context = 0;  // positions that were there before
    ItemRole role = ItemRole::prompt;
    bool exports = false;  // its tokens' residuals come back, after each layer that exports them

    std::int32_t end() const { return context + num_tokens; }
  };

  std::vector<StepToken> tokens;
  std::vector<Item> items;                         // their tokens follow each other
  std::int64_t table_stride = 0;                   // pages of the longest item
  std::vector<std::int32_t> tables[kNumKvGroups];  // [items, table_stride]; kNoPage behind the last
  std::vector<StepRow> rows;                       // in the order of tokens
  std::vector<std::vector<std::uint32_t>> masks;   // a bit per id
  std::vector<PageCopy> copies;                    // to be made before anything is written
  /// Experts that each token goes to; 0: as many as the model has it. Fewer of them guess: what
  /// they leave in the pages is not what the model would have.
  std::int32_t experts_per_token = 0;
  /// Residuals of items that export stay on the device where the backend can leave them there.
  bool residuals_stay = false;
  std::vector<RowMove> moves;  // before the copies: a path to its place
  /// Per token: which tokens of its item it sees, itself included, a bit each. 0: those before it,
  /// as in all items but trees. Empty: there is no tree.
  std::vector<std::uint64_t> ancestors;

  std::int64_t num_tokens() const { return std::ssize(tokens); }
  bool is_tree(const Item& item) const {
    return !ancestors.empty() && ancestors[static_cast<std::size_t>(item.first_token)] != 0;
  }
  /// Tokens of those items that export: of all, and of the first so many.
  std::int64_t num_exported() const { return exported_before(std::ssize(items)); }
  std::int64_t exported_before(std::int64_t item) const;
  std::span<const std::int32_t> table(std::size_t item, KvGroup group) const;
};

/// What came of one row.
struct RowResult {
  std::int32_t token = -1;
  float log_probability = 0;  // of that token, before temperature; where wanted
  double target_log_probability = 0;
  std::vector<float> logits;  // [vocab] where wanted
  std::vector<float>
      normed;  // [hidden] where wanted: the last residual, normed, as it is multiplied
};

/// Limits that a backend was made for.
struct StepLimits {
  std::int64_t tokens = 0;
  std::int64_t items = 0;
  std::int64_t vocab = 0;
  std::int64_t page_tokens = 0;
  std::int64_t export_layers = 0;      // after which residuals can come back
  std::int64_t experts_per_token = 0;  // that a step may ask for; 0: the model's number alone
  bool takes_trees = false;            // items whose guesses branch
  std::int64_t guess_places = 0;       // that late guesses can name
};

/// Throws, saying what is wrong, where no backend within these limits can compute this.
void check_step(const StepData& step, const StepLimits& limits);

/// Layers after which residuals are exported ascend and are the model's.
Expected<void> check_export_layers(std::span<const int> layers, const model::ModelConfig& config);

/// Bytes of keys and values that the step's tokens see, over all layers.
std::int64_t kv_bytes_seen(const StepData& step, const model::ModelConfig& config,
                           std::int64_t position_bytes);

}  // namespace gauntlet::engine::inline steps
