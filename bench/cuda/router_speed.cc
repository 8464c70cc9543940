// How fast tokens find their experts: norm, logits, the best four and their softmax; dispatch by
// expert; and their results combined again.
#include <cuda_bf16.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "bench/cuda/speed.h"
#include "kernels/cuda/routing/router.h"
#include "kernels/cuda/rows/unfused.h"
#include "kernels/ref/ops.h"

namespace {

using namespace gauntlet;
using namespace gauntlet::bench;
using namespace gauntlet::kernels::cuda;

constexpr float kEpsilon = 1e-5f;
constexpr std::int64_t kPicks = kExpertsPerToken;
/// Decode batches, the most that are dispatched in the same launch, prompts.
constexpr std::array<std::int64_t, 6> kTokens = {1, 8, 64, 256, 2048, 4096};

/// Tokens, a router, and what it makes of them, for each launch.
class Routing {
 public:
  explicit Routing(std::int64_t tokens)
      : tokens_(tokens),
        copies_(rotation(route_bytes())),
        x_(random_floats(tokens * kHidden, 1, 2)),
        norm_weight_(random_floats(kHidden, 2)),
        bias_(random_floats(kExperts, 3)),
        weight_(random_bf16(kExperts * kHidden, 4, 0.1f)),
        device_x_(copies_, x_),
        device_norm_weight_(copies_, norm_weight_),
        device_bias_(copies_, bias_),
        logits_(copies_, tokens * kExperts),
        device_weight_(copies_, weight_),
        normed_(copies_, tokens * kHidden),
        chosen_(copies_, tokens * kPicks),
        weights_(copies_, tokens * kPicks),
        first_slot_(copies_, kExperts + 1),
        slot_token_(copies_, tokens * kPicks),
        slot_row_(copies_, tokens * kPicks),
        slot_weight_(copies_, tokens * kPicks) {}

  std::int64_t tokens() const { return tokens_; }
  int copies() const { return copies_; }
  std::int64_t weight_bytes() const { return kExperts * (kHidden * 2 + 4); }
  std::int64_t route_bytes() const {
    return weight_bytes() + kHidden * 4 + tokens_ * (kHidden * 6 + kPicks * 8);
  }
  std::int64_t dispatch_bytes() const { return tokens_ * kPicks * 20 + (kExperts + 1) * 4; }

  Router router(int i, int num_sms) const {
    return {.x = device_x_.at(i),
            .norm_weight = device_norm_weight_.at(i),
            .epsilon = kEpsilon,
            .weight = device_weight_.as<__nv_bfloat16>(i),
            .bias = device_bias_.at(i),
            .hidden = kHidden,
            .num_tokens = tokens_,
            .num_experts = kExperts,
            .experts_per_token = kExpertsPerToken,
            .num_sms = num_sms,
            .normed = normed_.as<__nv_bfloat16>(i),
            .normed_stride = kHidden,
            .chosen = chosen_.at(i),
            .weights = weights_.at(i)};
  }
  Dispatch dispatched(int i) const {
    return {.chosen = chosen_.at(i),
            .weights = weights_.at(i),
            .num_tokens = tokens_,
            .num_experts = kExperts,
            .experts_per_token = kExpertsPerToken,
            .first_slot = first_slot_.at(i),
            .slot_token = slot_token_.at(i),
            .slot_row = slot_row_.at(i),
            .slot_weight = slot_weight_.at(i)};
  }
  /// From rows that are not normed.
  RouterLogits logits(int i) const {
    return {.x = device_x_.at(i),
            .weight = device_weight_.as<__nv_bfloat16>(i),
            .bias = device_bias_.at(i),
            .hidden = kHidden,
            .num_tokens = tokens_,
            .num_experts = kExperts,
            .logits = logits_.at(i)};
  }
  ChooseExperts choice(int i) const {
    return {.logits = logits_.at(i),
            .logits_stride = kExperts,
            .num_tokens = tokens_,
            .num_experts = kExperts,
            .experts_per_token = kExpertsPerToken,
            .chosen = chosen_.at(i),
            .weights = weights_.at(i)};
  }

  std::vector<double> logits_of(const std::vector<double>& row) const {
    std::vector<double> weight;
    for (const std::uint16_t bits : weight_) weight.push_back(bf16_float(bits));
    return kernels::ref::linear(weight, row, row_of(bias_, 0, kExperts));
  }
  void verify_logits() const {
    const auto got = logits_.first();
    for (const std::int64_t t : spots(tokens_)) {
      const auto wanted = logits_of(row_of(x_, t, kHidden));
      for (std::size_t e = 0; e < wanted.size(); ++e) {
        expect_near("a router logit", got[static_cast<std::size_t>(t * kExperts) + e], wanted[e],
                    1e-3);
      }
    }
  }
  /// A choice may be either of two that are as good within rounding.
  void verify_choice(
      const std::function<std::vector<double>(std::int64_t)>& logits_of_token) const {
    const auto chosen = chosen_.first();
    const auto weights = weights_.first();
    for (const std::int64_t t : spots(tokens_)) {
      const auto logits = logits_of_token(t);
      auto best = logits;
      std::ranges::sort(best, std::greater());
      double total = 0;
      for (std::size_t r = 0; r < kPicks; ++r) total += std::exp(best[r] - best[0]);
      for (std::size_t r = 0; r < kPicks; ++r) {
        const std::size_t at = static_cast<std::size_t>(t * kPicks) + r;
        check(chosen[at] >= 0 && chosen[at] < kExperts, "a chosen expert does not exist");
        expect_near("the logit of a chosen expert", logits[static_cast<std::size_t>(chosen[at])],
                    best[r], 1e-3);
        expect_near("the weight of an expert", weights[at], std::exp(best[r] - best[0]) / total,
                    1e-3);
      }
    }
  }
  void verify_route() const {
    verify_choice([&](std::int64_t t) {
      return logits_of(kernels::ref::rms_norm(row_of(x_, t, kHidden),
                                              row_of(norm_weight_, 0, kHidden), kEpsilon));
    });
  }
  void verify_chosen_from_logits() const {
    verify_choice([&](std::int64_t t) { return row_of(logits_.first(), t, kExperts); });
  }
  void verify_dispatch() const {
    const auto chosen = chosen_.first(), first = first_slot_.first(), row = slot_row_.first();
    std::vector<std::int32_t> order(chosen.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](std::int32_t pick) {
      return std::pair(chosen[static_cast<std::size_t>(pick)], pick);
    });
    check(row == order, "dispatch: slots are not in the order of experts, then tokens");
    for (int e = 0; e <= kExperts; ++e) {
      expect_near("dispatch: the first slot of an expert", first[static_cast<std::size_t>(e)],
                  static_cast<double>(std::ranges::count_if(chosen, [&](int c) { return c < e; })),
                  0);
    }
  }
  /// Routed and dispatched in every copy.
  void prepare(int num_sms) const {
    for (int i = 0; i < copies_; ++i) {
      route(router(i, num_sms), {});
      dispatch(dispatched(i), {});
    }
    cuda_check(cudaDeviceSynchronize());
  }
  WeightedCombine combine(int i, float* x, const float* y) const {
    return {.x = x,
            .y = y,
            .hidden = kHidden,
            .num_tokens = tokens_,
            .experts_per_token = kExpertsPerToken,
            .chosen = chosen_.at(i),
            .weights = weights_.at(i),
            .first_slot = first_slot_.at(i),
            .slot_token = slot_token_.at(i)};
  }
  void verify_combine(const std::vector<float>& x, const std::vector<float>& y,
                      const std::vector<float>& got) const {
    const auto row = slot_row_.first();
    const auto weights = weights_.first();
    for (const std::int64_t t : spots(tokens_)) {
      for (const std::int64_t c : spots(kHidden)) {
        double wanted = x[static_cast<std::size_t>(t * kHidden + c)];
        for (std::int64_t slot = 0; slot < tokens_ * kPicks; ++slot) {
          const std::int32_t pick = row[static_cast<std::size_t>(slot)];
          if (pick / kPicks != t) continue;
          wanted += double{weights[static_cast<std::size_t>(pick)]} *
                    y[static_cast<std::size_t>(slot * kHidden + c)];
        }
        expect_near("weighted_combine", got[static_cast<std::size_t>(t * kHidden + c)], wanted,
                    1e-5);
      }
    }
  }

 private:
  std::int64_t tokens_;
  int copies_;
  std::vector<float> x_, norm_weight_, bias_;
  std::vector<std::uint16_t> weight_;
  PerLaunch<float> device_x_, device_norm_weight_, device_bias_, logits_;
  PerLaunch<std::uint16_t> device_weight_, normed_;
  PerLaunch<std::int32_t> chosen_;
  PerLaunch<float> weights_;
  PerLaunch<std::int32_t> first_slot_, slot_token_, slot_row_;
  PerLaunch<float> slot_weight_;
};

Kernel kernel_of(const char* name, const Routing& routing, std::int64_t bytes) {
  return {.name = name,
          .shape = fmt::format("{} tokens, {} of {} experts", routing.tokens(), kPicks, kExperts),
          .bytes = static_cast<double>(bytes)};
}

void time_route(const Bench& bench, const Routing& routing) {
  Kernel kernel = kernel_of("route", routing, routing.route_bytes());
  kernel.flop = 2.0 * static_cast<double>(routing.tokens() * kExperts * kHidden);
  kernel.launch = [&](int i, const Launch& how) { route(routing.router(i, bench.num_sms()), how); };
  kernel.verify = [&] { routing.verify_route(); };
  bench.report(kernel);
}

void time_dispatch(const Bench& bench, const Routing& routing) {
  routing.prepare(bench.num_sms());
  Kernel kernel = kernel_of("dispatch", routing, routing.dispatch_bytes());
  kernel.launch = [&](int i, const Launch& how) { dispatch(routing.dispatched(i), how); };
  kernel.verify = [&] { routing.verify_dispatch(); };
  bench.report(kernel);
}

void time_route_and_dispatch(const Bench& bench, const Routing& routing) {
  const Buffer finished(4);
  Kernel kernel =
      kernel_of("route_and_dispatch", routing, routing.route_bytes() + routing.dispatch_bytes());
  kernel.flop = 2.0 * static_cast<double>(routing.tokens() * kExperts * kHidden);
  kernel.launch = [&](int i, const Launch& how) {
    route_and_dispatch(routing.router(i, bench.num_sms()), routing.dispatched(i),
                       finished.as<std::int32_t>(), how);
  };
  kernel.verify = [&] {
    routing.verify_route();
    routing.verify_dispatch();
  };
  bench.report(kernel);
}

void time_logits(const Bench& bench, const Routing& routing) {
  Kernel kernel = kernel_of("router_logits", routing,
                            routing.weight_bytes() + routing.tokens() * (kHidden + kExperts) * 4);
  kernel.flop = 2.0 * static_cast<double>(routing.tokens() * kExperts * kHidden);
  kernel.launch = [&](int i, const Launch& how) { router_logits(routing.logits(i), how); };
  kernel.verify = [&] { routing.verify_logits(); };
  bench.report(kernel);
}

/// After time_logits: it chooses by those logits.
void time_choice(const Bench& bench, const Routing& routing) {
  Kernel kernel =
      kernel_of("choose_experts", routing, routing.tokens() * (kExperts * 4 + kPicks * 8));
  kernel.launch = [&](int i, const Launch& how) { choose_experts(routing.choice(i), how); };
  kernel.verify = [&] { routing.verify_chosen_from_logits(); };
  bench.report(kernel);
}

void time_combine(const Bench& bench, const Routing& routing) {
  routing.prepare(bench.num_sms());
  const std::int64_t bytes = routing.tokens() * ((2 + kPicks) * kHidden * 4 + kPicks * 12);
  const int copies = rotation(bytes);
  const auto x = random_floats(routing.tokens() * kHidden, 5);
  const auto y = random_floats(routing.tokens() * kPicks * kHidden, 6);
  const PerLaunch<float> device_x(copies, x), device_y(copies, y);
  Kernel kernel = kernel_of("weighted_combine", routing, bytes);
  kernel.launch = [&](int i, const Launch& how) {
    weighted_combine(routing.combine(i, device_x.at(i), device_y.at(i)), how);
  };
  kernel.verify = [&] { routing.verify_combine(x, y, device_x.first()); };
  bench.report(kernel);
}

void run(const Bench& bench) {
  for (const std::int64_t tokens : kTokens) {
    const Routing routing(tokens);
    time_route(bench, routing);
    time_dispatch(bench, routing);
    if (tokens <= kMostDispatchTokens) time_route_and_dispatch(bench, routing);
    time_logits(bench, routing);
    time_choice(bench, routing);
    time_combine(bench, routing);
  }
}

}  // namespace

int main() { return gauntlet::bench::run_on_gpu(run); }
