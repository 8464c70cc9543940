// doctor --serve: would this configuration serve here, and what should be changed? Nothing is
// started and no weights are loaded.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/engine_options.h"
#include "cli/serving/serve_keys.h"
#include "lab/doctor/doctor.h"
#include "server/http/http_server.h"

namespace gauntlet::cli {

/// What the checks look at in a server's options.
struct ServePlan {
  server::HttpServerConfig http;
  KeyOptions keys;
  EngineArguments engine;
  std::string tokenizer;
  std::int64_t max_sequences = 0;
  std::int64_t kv_tokens = 0;
};

/// The options that `serve` would have with this file, or without one where it is empty.
Expected<ServePlan> plan_serving(const std::string& config);

std::vector<lab::doctor::Finding> check_serving(const ServePlan& plan);

/// The part of them that is about sockets, certificates and keys.
std::vector<lab::doctor::Finding> check_access(const ServePlan& plan);

/// Adds --serve and --config to the command doctor.
void add_serve_doctor(CLI::App& app, Context& context);

}  // namespace gauntlet::cli
