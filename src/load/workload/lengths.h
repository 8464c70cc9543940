// How many tokens prompts and answers have.
#pragma once
#include <cstdint>
#include <string>

#include "core/expected.h"
#include "load/workload/variates.h"

namespace gauntlet::load::inline workload {

class Lengths {
 public:
  /// "128", "uniform:64..512", "lognormal:128,0.8" (median and σ of the logarithm) or
  /// "lognormal:128,0.8,1024", which draws again what is above 1024. `option` names it in errors.
  static Expected<Lengths> parse(const std::string& text, const std::string& option);
  static Lengths fixed(std::int64_t count);

  /// At least 1.
  std::int64_t draw(Variates& variates) const;
  const std::string& text() const { return text_; }

 private:
  enum class Kind { fixed, uniform, lognormal };
  Kind kind_ = Kind::fixed;
  std::int64_t low_ = 1;
  std::int64_t high_ = 1;
  double median_ = 1;
  double sigma_ = 0;
  std::string text_;
};

}  // namespace gauntlet::load::inline workload
