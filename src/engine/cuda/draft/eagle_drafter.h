// What an EAGLE-3 head on a GPU knows of each text: residuals it has not seen yet, and its pages.
#pragma once
#include <deque>
#include <unordered_map>
#include <vector>

#include "engine/cuda/draft/draft_head.h"
#include "engine/speculation/drafter.h"

namespace gauntlet::engine::cuda::inline draft {

class CudaEagleDrafter final : public Drafter {
 public:
  CudaEagleDrafter(std::unique_ptr<DraftHead> head, const DraftHead::Config& made);
  std::string_view name() const override { return "eagle3"; }
  std::vector<int> residuals_after() const override { return head_->config().export_layers(); }
  void computed(std::span<const ComputedTokens> tokens) override;
  std::vector<Draft> propose(std::span<const DraftWish> wishes) override;
  bool reads_on_device() const override { return has_seam_; }
  void reveal(Draft& draft) const override;
  double late_seconds() const override { return is_late_ ? head_->answer_s() : 0; }
  void end(std::int64_t id) override;

  std::int64_t free_pages() const { return std::ssize(free_pages_); }

 private:
  /// Residuals of one position.
  struct Unseen {
    std::vector<std::uint16_t> residuals;  // [features]
    int slot = -1;                         // where the head keeps them instead
  };
  struct Request {
    std::int64_t first = 0;     // position of the target where the head began
    std::int64_t length = 0;    // positions that its cache holds
    std::deque<Unseen> unseen;  // of positions behind those
    std::vector<std::int32_t> pages;
  };
  /// A wish that can be answered.
  struct Going {
    const DraftWish* wish = nullptr;
    Request* request = nullptr;
    Draft* draft = nullptr;
    std::int64_t count = 0;  // positions that the head has not seen
  };
  std::int64_t features() const { return head_->config().features(); }
  /// Of a step's token.
  std::vector<std::uint16_t> joined(const ComputedTokens& some, std::int64_t token) const;
  /// Behind what is known of a request, all but the first `skipped`.
  void add(const ComputedTokens& some, std::int64_t skipped, Request& request);
  /// All from there on.
  void forget(Request& request, std::int64_t from);
  bool hold(Request& request, std::int64_t positions);
  void begin_anew(Request& request, std::int64_t position);
  void answer(std::span<Going> going);

  std::unique_ptr<DraftHead> head_;
  const std::int64_t longest_;
  const bool has_seam_;
  bool is_late_ = false;  // the last guesses were
  std::vector<std::int32_t> free_pages_;
  std::vector<int> free_slots_;
  std::vector<kernels::cuda::JoinResiduals::Row> kept_;  // of the step that is told
  std::unordered_map<std::int64_t, Request> requests_;
};

}  // namespace gauntlet::engine::cuda::inline draft
