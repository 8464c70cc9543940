// The keys that --api-key and --api-keys give.
#pragma once
#include <string>

#include "core/expected.h"
#include "server/openai/api_keys.h"

namespace gauntlet::cli {

struct KeyOptions {
  std::string key;
  std::string file;

  bool any() const { return !key.empty() || !file.empty(); }
};

/// All of them together. Some are given.
Expected<server::ApiKeys> read_keys(const KeyOptions& options);

}  // namespace gauntlet::cli
