// Does the lab hold a pair that starts a server and puts a load on it?
#pragma once
#include <cstdint>
#include <memory>

namespace gauntlet::doubles::served_load {

class Server;

struct Params {
  const std::int32_t* prompts;  // [requests, kPromptTokens]
  std::int32_t* answers;        // [requests]: a hash of each text
  std::int64_t requests;
  std::shared_ptr<Server> server;  // of all sets and both sides
};

inline constexpr std::int64_t kPromptTokens = 4;

}  // namespace gauntlet::doubles::served_load
