// Guesses by a smaller model with the same tokens, over an executor and a pool of its own.
#pragma once
#include <memory>
#include <optional>
#include <unordered_map>

#include "engine/speculation/drafter.h"
#include "engine/speculation/tree_search.h"
#include "engine/steps/executor.h"

namespace gauntlet::engine::inline speculation {

class ModelDrafter final : public Drafter {
 public:
  explicit ModelDrafter(std::unique_ptr<Executor> executor) : executor_(std::move(executor)) {}
  ~ModelDrafter() override;
  std::string_view name() const override { return "draft"; }
  bool fans_out() const override { return true; }
  std::vector<Draft> propose(std::span<const DraftWish> wishes) override;
  void end(std::int64_t id) override;

 private:
  /// A text whose known tokens the model has computed, and no guess.
  struct Request {
    SequenceId sequence = 0;
    std::int64_t computed = 0;
  };
  /// A wish that is being answered.
  struct Going {
    const DraftWish* wish = nullptr;
    Draft* draft = nullptr;
    Request* request = nullptr;
    std::int64_t ahead = 0;                 // guesses whose positions hold data
    std::optional<TreeSearch> search = {};  // where they may branch
  };

  /// Brings all texts up to their last token, in as few steps as they fit; their first guesses.
  void catch_up(std::vector<Going>& going);
  /// One more guess of each.
  void guess(std::vector<Going>& going);
  /// All levels of trees but the first.
  void grow(std::vector<Going>& going);
  void add(TreeSearch& search, std::size_t index, const std::vector<float>& logits) const;
  bool reserve(Going& one, std::int64_t count);
  void run(std::vector<BatchItem> items, const std::vector<Going*>& asked);

  std::unique_ptr<Executor> executor_;
  std::unordered_map<std::int64_t, Request> requests_;
};

}  // namespace gauntlet::engine::inline speculation
