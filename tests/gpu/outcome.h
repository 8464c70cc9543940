// What programs leave behind, as verdicts: the JSON of `gauntlet run` and of GoogleTest.
#pragma once
#include <map>
#include <string>

#include "core/expected.h"
#include "tests/gpu/record.h"

namespace gauntlet::tests::gpu {

struct TargetVerdicts {
  std::string run_id;
  std::map<std::string, Verdict> by_id;  // on CUDA
};

/// Reads results.json or what `--format json` prints, of either version.
Expected<TargetVerdicts> target_verdicts(const std::string& json_text);

/// How a test program ended.
struct TestEnd {
  std::string json_text;  // of --gtest_output; empty when there is none
  int exit_code = 0;      // 124 or 137: stopped by `timeout`
  double seconds = 0;
};

/// An error when no test ran, so that there is nothing to record.
Expected<Verdict> test_verdict(const TestEnd& end);

}  // namespace gauntlet::tests::gpu
