// What an EAGLE-3 head on a GPU knows of each text: residuals it has not seen yet, and its pages.
#pragma once
#include <unordered_map>
#include <vector>

#include "engine/cuda/draft/draft_head.h"
#include "engine/speculation/drafter.h"

namespace gauntlet::engine::cuda::inline draft {

class CudaEagleDrafter final : public Drafter {
 public:
  CudaEagleDrafter(std::unique_ptr<DraftHead> head, std::int64_t num_pages, std::int64_t longest);
  std::string_view name() const override { return "eagle3"; }
  std::vector<int> residuals_after() const override { return head_->config().export_layers(); }
  void computed(std::span<const ComputedTokens> tokens) override;
  std::vector<Draft> propose(std::span<const DraftWish> wishes) override;
  void end(std::int64_t id) override;

  std::int64_t free_pages() const { return std::ssize(free_pages_); }

 private:
  struct Request {
    std::int64_t first = 0;                // position of the target where the head began
    std::int64_t length = 0;               // positions that its cache holds
    std::vector<std::uint16_t> residuals;  // of positions behind those, [.., features]
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
  void join(const ComputedTokens& some, std::int64_t skipped, std::vector<std::uint16_t>& to) const;
  bool hold(Request& request, std::int64_t positions);
  void begin_anew(Request& request, std::int64_t position);
  void answer(std::span<Going> going);

  std::unique_ptr<DraftHead> head_;
  const std::int64_t longest_;
  std::vector<std::int32_t> free_pages_;
  std::unordered_map<std::int64_t, Request> requests_;
};

}  // namespace gauntlet::engine::cuda::inline draft
