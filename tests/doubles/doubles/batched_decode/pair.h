// Does the lab hold a pair that runs the engine, whose worker threads wait for the next step?
#pragma once
#include <cstdint>
#include <memory>

namespace gauntlet::doubles::batched_decode {

class Engine;

struct Params {
  const std::int32_t* prompts;  // [sequences, kPromptTokens]
  std::int32_t* tokens;         // [sequences, kNewTokens]
  std::int64_t sequences;
  std::shared_ptr<Engine> engine;  // of all sets and both sides
};

inline constexpr std::int64_t kPromptTokens = 4;
inline constexpr std::int64_t kNewTokens = 4;
inline constexpr int kVocabulary = 128;

}  // namespace gauntlet::doubles::batched_decode
