#include "cli/serving/serve_doctor.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "core/cuda/device.h"
#include "core/os/cgroup.h"
#include "core/os/files.h"
#include "engine/steps/cpu_executor.h"

namespace gauntlet::cli {
namespace {

using lab::doctor::Finding;
using Level = Finding::Level;

/// Beside connections: log, models, libraries, the engine's own.
constexpr std::int64_t kOwnFiles = 64;
constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

Finding finding_of(const char* name, Level level, std::string reason, std::string fix = "") {
  return {.area = "serve",
          .name = name,
          .level = level,
          .reason = std::move(reason),
          .fix = std::move(fix)};
}

Finding check_files(const ServePlan& plan) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) {
    return finding_of("file limit", Level::unknown, "the system does not say");
  }
  const std::int64_t wanted = plan.http.limits.connections + kOwnFiles;
  const bool enough =
      files.rlim_max == RLIM_INFINITY || static_cast<std::int64_t>(files.rlim_max) >= wanted;
  const std::string reason = fmt::format("{} files for max-connections = {}", files.rlim_max,
                                         plan.http.limits.connections);
  if (enough) return finding_of("file limit", Level::ok, reason);
  return finding_of("file limit", Level::fail, "only " + reason,
                    fmt::format("LimitNOFILE={} in the unit, or ulimit -Hn {}", wanted, wanted));
}

Finding check_user() {
  if (geteuid() != 0) {
    return finding_of("user", Level::ok, fmt::format("user {} is not root", geteuid()));
  }
  return finding_of("user", Level::warn, "root: a fault in the server would be a fault of root's",
                    "a user of its own, as the package and gauntlet.service make one");
}

std::int64_t kv_bytes(const model::ModelConfig& shape, const ServePlan& plan,
                      std::int64_t element_bytes, std::int64_t positions) {
  const std::int64_t full = std::ranges::count(shape.attention, model::AttentionSpan::full);
  const std::int64_t sliding = shape.num_layers - full;
  const std::int64_t window = plan.max_sequences * shape.sliding_window;
  return 2 * shape.kv_width() * element_bytes * (full * positions + sliding * window);
}

struct MemoryHere {
  std::int64_t bytes = 0;
  std::string of;
};

/// What is free, or may be used where a container has a limit.
MemoryHere free_memory() {
  const SystemFiles files;
  const auto available = files.field("/proc/meminfo", "MemAvailable");
  const std::int64_t kibibytes = available ? leading_number(*available).value_or(0) : 0;
  MemoryHere here{.bytes = kibibytes * 1024, .of = "memory"};
  const CgroupLimits limits = read_cgroup_limits(files);
  if (limits.memory_bytes) {
    const std::int64_t left = *limits.memory_bytes - limits.memory_used_bytes.value_or(0);
    if (left < here.bytes) here = {.bytes = left, .of = "memory, which this container may use"};
  }
  return here;
}

Finding check_memory(const model::ModelWeights& weights, const ServePlan& plan,
                     engine::Backend backend) {
  const bool gpu = backend == engine::Backend::cuda;
  MemoryHere here;
  if (gpu) {
    const GpuQuery found = query_gpus();
    if (found.gpus.empty()) return finding_of("memory", Level::unknown, found.reason);
    here = {.bytes = static_cast<std::int64_t>(static_cast<double>(found.gpus[0].memory_bytes) *
                                               plan.engine.gpu_memory),
            .of = fmt::format("memory of the GPU (gpu-memory = {})", plan.engine.gpu_memory)};
  } else {
    here = free_memory();
  }
  const model::ModelConfig& shape = weights.config;
  const auto kv = plan.engine.options.kv.value_or(engine::KvType::bf16);
  const std::int64_t element_bytes = kv == engine::KvType::f32   ? 4
                                     : kv == engine::KvType::fp8 ? 1
                                                                 : 2;
  const std::int64_t most = shape.max_positions * plan.max_sequences;
  // The engine takes what fits where the configuration leaves it to it, and one context at least.
  const std::int64_t positions =
      plan.kv_tokens > 0 ? std::min(plan.kv_tokens, most) : shape.max_positions;
  const std::int64_t cache = kv_bytes(shape, plan, element_bytes, positions);
  const double needed = static_cast<double>(weights.file_bytes + cache) / kGibibyte;
  const double there = static_cast<double>(here.bytes) / kGibibyte;
  const std::string reason =
      fmt::format("weights {:.2f} GiB and {} positions {:.2f} GiB, of {:.1f} GiB of {}",
                  static_cast<double>(weights.file_bytes) / kGibibyte, positions,
                  static_cast<double>(cache) / kGibibyte, there, here.of);
  if (needed > there) {
    return finding_of("memory", Level::fail, reason,
                      cache > weights.file_bytes ? "a smaller kv-tokens or max-sequences"
                                                 : "a smaller model, or a machine with more");
  }
  return finding_of("memory", Level::ok, reason);
}

std::vector<Finding> check_model(const ServePlan& plan) {
  const auto model = open_model(plan.engine);
  if (!model) {
    return {finding_of("model", Level::fail, model.error().message,
                       "model = \"DIR\": a folder that the server's user can read")};
  }
  std::vector<Finding> findings{
      finding_of("model", Level::ok, model->weights.config.name + " is readable")};
  if (!plan.tokenizer.empty()) {
    const auto text = read_file(plan.tokenizer);
    findings.push_back(text ? finding_of("tokenizer", Level::ok, plan.tokenizer + " is readable")
                            : finding_of("tokenizer", Level::fail, text.error().message,
                                         "a tokenizer.json that the server's user can read"));
  }
  const auto backend = choose_backend(plan.engine);
  if (!backend) {
    findings.push_back(finding_of("backend", Level::fail, backend.error().message,
                                  "backend = \"cpu\", or a GPU and its driver"));
    return findings;
  }
  findings.push_back(check_memory(model->weights, plan, *backend));
  return findings;
}

}  // namespace

std::vector<Finding> check_serving(const ServePlan& plan) {
  std::vector<Finding> findings = check_access(plan);
  for (Finding& one : check_model(plan)) findings.push_back(std::move(one));
  findings.push_back(check_files(plan));
  findings.push_back(check_user());
  return findings;
}

void add_serve_doctor(CLI::App& app, Context& context) {
  auto config = std::make_shared<std::string>();
  CLI::App* command = app.get_subcommand("doctor");
  command->add_flag_callback(
      "--serve",
      [config, &context] {
        context.checks = [config]() -> Expected<std::vector<Finding>> {
          const auto plan = plan_serving(*config);
          if (!plan) return plan.error();
          return check_serving(*plan);
        };
      },
      "check what 'gauntlet serve' would start with instead: address, key, certificate, model, "
      "memory");
  command->add_option("--config", *config, "of the server, with --serve")
      ->option_text("FILE")
      ->needs("--serve");
}

}  // namespace gauntlet::cli
