// Which tokens may follow an output: a cursor that moves along it and forks, so that what lies
// ahead can be looked at without being said.
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace gauntlet::engine::inline sampling {

class MaskCursor {
 public:
  virtual ~MaskCursor() = default;
  /// A bit per token id; nothing where all may follow.
  virtual std::vector<std::uint32_t> mask() = 0;
  /// Moves past a token that the mask allows; throws for another.
  virtual void accept(std::int32_t token) = 0;
  /// One that stands at the same place, and moves alone.
  virtual std::unique_ptr<MaskCursor> fork() const = 0;
};

/// What masks a request's outputs: each starts a cursor of its own. Empty: all tokens, always.
class TokenMask {
 public:
  using OfOutput = std::function<std::vector<std::uint32_t>(std::span<const std::int32_t> output)>;

  TokenMask() = default;
  /// `start` stands before the first token, and is only forked, by one thread at a time.
  explicit TokenMask(std::shared_ptr<const MaskCursor> start) : start_(std::move(start)) {}
  /// A function of the output alone.
  template <class F>
    requires(!std::same_as<std::decay_t<F>, TokenMask> && std::convertible_to<F, OfOutput>)
  TokenMask(F mask) : start_(std::make_shared<Function>(OfOutput(std::move(mask)))) {}

  explicit operator bool() const { return start_ != nullptr; }
  std::unique_ptr<MaskCursor> start() const { return start_->fork(); }
  /// After an output, from its beginning.
  std::vector<std::uint32_t> operator()(std::span<const std::int32_t> output) const {
    const auto cursor = start();
    for (const std::int32_t token : output) cursor->accept(token);
    return cursor->mask();
  }

 private:
  class Function final : public MaskCursor {
   public:
    explicit Function(OfOutput mask) : mask_(std::move(mask)) {}
    std::vector<std::uint32_t> mask() override { return mask_(output_); }
    void accept(std::int32_t token) override { output_.push_back(token); }
    std::unique_ptr<MaskCursor> fork() const override { return std::make_unique<Function>(*this); }

   private:
    OfOutput mask_;
    std::vector<std::int32_t> output_;
  };

  std::shared_ptr<const MaskCursor> start_;
};

inline bool allows(std::span<const std::uint32_t> mask, std::int32_t token) {
  return mask.empty() || (mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0;
}

}  // namespace gauntlet::engine::inline sampling
