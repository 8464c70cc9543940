#include "model/config.h"

#include <gtest/gtest.h>

namespace gauntlet::model {
namespace {

TEST(ModelConfig, widths_follow_from_heads) {
  const ModelConfig config{.num_heads = 64, .num_kv_heads = 8, .head_dim = 64};
  EXPECT_EQ(config.query_width(), 4096);
  EXPECT_EQ(config.kv_width(), 512);
}

}  // namespace
}  // namespace gauntlet::model
