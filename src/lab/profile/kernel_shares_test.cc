// Does a trace become shares that add up to the time it spans?
#include "lab/profile/kernel_shares.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace gauntlet::lab::inline profile {
namespace {

nlohmann::json event(const std::string& name, double start_us, double us,
                     const std::string& category = "kernel") {
  return {{"name", name}, {"cat", category}, {"ts", start_us}, {"dur", us}};
}

std::map<std::string, KernelShare> shares_of(const nlohmann::json& events, std::int64_t steps) {
  const auto shares = kernel_shares(nlohmann::json{{"traceEvents", events}}.dump(), steps);
  std::map<std::string, KernelShare> by_name;
  for (const KernelShare& share : shares.value()) by_name[share.name] = share;
  return by_name;
}

const std::string kPrefix = "void gauntlet::kernels::cuda::(anonymous namespace)::";

TEST(KernelShares, count_shared_time_once_and_name_the_gaps) {
  const auto shares = shares_of({event(kPrefix + "norm_kernel<768, 1>(Norm)", 10, 4),
                                 event(kPrefix + "attend<int>(Attention)", 12, 6),
                                 event("copy device to host", 20, 1, "copy")},
                                1);
  EXPECT_DOUBLE_EQ(shares.at("norm_kernel").us_per_step, 4);
  EXPECT_DOUBLE_EQ(shares.at("attend").us_per_step, 4);  // the part after the norm ended
  EXPECT_DOUBLE_EQ(shares.at("idle").us_per_step, 2);
  EXPECT_DOUBLE_EQ(shares.at("copy device to host").us_per_step, 1);
}

TEST(KernelShares, tell_products_apart_by_their_neighbours) {
  nlohmann::json events = nlohmann::json::array();
  double at = 0;
  for (const char* name :
       {"norm_kernel", "decode_bf16_kernel", "rotate_and_store", "attend", "decode_bf16_kernel",
        "route_and_dispatch_kernel", "decode_bf16_kernel", "decode_bf16_kernel", "norm_kernel",
        "decode_bf16_kernel", "sample_kernel"}) {
    events.push_back(event(kPrefix + name + "<1>(Product)", at, 2));
    at += 2;
  }
  const auto shares = shares_of(events, 2);
  for (const char* role : {"qkv", "o", "gate_up", "down", "lm_head"}) {
    const KernelShare& share = shares.at(std::string(role) + ": decode_bf16_kernel");
    EXPECT_DOUBLE_EQ(share.us_per_step, 1) << role;
    EXPECT_DOUBLE_EQ(share.launches_per_step, 0.5) << role;
  }
}

TEST(KernelShares, tell_products_apart_where_attention_rotates) {
  nlohmann::json events = nlohmann::json::array();
  double at = 0;
  for (const char* name :
       {"norm_kernel", "decode_bf16_kernel", "attend", "decode_bf16_kernel",
        "route_and_dispatch_kernel", "decode_mxfp4_bulk_kernel", "decode_mxfp4_bulk_kernel"}) {
    events.push_back(event(kPrefix + name + "<1>(Product)", at, 2));
    at += 2;
  }
  const auto shares = shares_of(events, 1);
  for (const char* name : {"qkv: decode_bf16_kernel", "o: decode_bf16_kernel",
                           "gate_up: decode_mxfp4_bulk_kernel", "down: decode_mxfp4_bulk_kernel"}) {
    EXPECT_DOUBLE_EQ(shares.at(name).us_per_step, 2) << name;
  }
}

TEST(KernelShares, refuse_what_is_no_trace) {
  EXPECT_FALSE(kernel_shares("", 1));
  EXPECT_FALSE(kernel_shares("{\"traceEvents\": []}", 1));
}

}  // namespace
}  // namespace gauntlet::lab::inline profile
