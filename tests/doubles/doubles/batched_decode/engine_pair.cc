#include "core/check.h"
#include "core/os/threads.h"
#include "engine/serving/service.h"
#include "engine/steps/cpu_executor.h"
#include "lab/author/pair.h"
#include "tests/doubles/doubles/batched_decode/engine.h"
#include "tests/doubles/doubles/batched_decode/pair.h"

namespace gauntlet::doubles::batched_decode {

engine::Executor& Engine::executor() {
  if (executor_) return *executor_;
  const model::ModelWeights weights =
      model::random_model({.name = "double",
                           .num_layers = 2,
                           .hidden = 64,
                           .intermediate = 64,
                           .num_heads = 2,
                           .num_kv_heads = 1,
                           .head_dim = 32,
                           .num_experts = 4,
                           .experts_per_token = 2,
                           .vocab = kVocabulary,
                           .max_positions = 64,
                           .sliding_window = 32,
                           .attention = model::alternating_attention(2),
                           .bos_id = 0},
                          1);
  engine::CpuExecutorConfig config{.max_sequences = 16, .max_tokens = 1024};
  config.options.threads = threads_;
  // The lab's thread is on the last CPU, and the engine's pool pins the thread that makes it.
  config.first_cpu = static_cast<int>(allowed_cpus().size()) - 1;
  auto made = engine::make_cpu_executor(weights, config);
  if (!made) fail(made.error().message);
  executor_ = std::move(*made);
  return *executor_;
}

void Engine::generate(const std::int32_t* prompts, std::int32_t* tokens, std::int64_t sequences,
                      std::int64_t together) {
  engine::Service service(executor(), {.scheduler = {.prefix_caching = engine::PrefixCaching::off,
                                                     .max_running = together}});
  for (std::int64_t i = 0; i < sequences; ++i) {
    const std::int32_t* prompt = prompts + i * kPromptTokens;
    const auto made = std::make_shared<std::int64_t>(0);
    const auto id =
        service.submit({.prompt = {prompt, prompt + kPromptTokens},
                        .max_tokens = kNewTokens,
                        .end_of_sequence = engine::EndOfSequence::ignored},
                       {.on_token =
                            [out = tokens + i * kNewTokens, made](const engine::TokenEvent& event) {
                              out[(*made)++] = event.token;
                              return engine::Verdict::go_on;
                            },
                        .on_finish = [](const engine::FinishEvent&) {}});
    if (!id) fail(id.error().message);
  }
  while (service.step()) ++steps_;
}

lab::Pair<Params> pair() {
  return {
      .title = "one sequence at a time → all of them in each step",
      .technique = "batching",
      .knobs = {{.name = "sequences", .cpu = 8, .max = 16, .help = "prompts to go on with"}},
      .cpu =
          lab::BackendFacts{.claim = "A step costs about as much for eight sequences as for one.",
                            .cost =
                                [](const lab::Knobs& knobs) {
                                  const auto bytes = 4 * static_cast<double>(knobs["sequences"]);
                                  return lab::Cost{.read_bytes = bytes * kPromptTokens,
                                                   .write_bytes = bytes * kNewTokens,
                                                   .level = lab::Cost::Level::cache};
                                },
                            .witness = lab::Witness::outcome("steps", lab::Witness::Moves::falls, 2,
                                                             "steps that the engine took")},
      .bind =
          [engine = std::make_shared<Engine>(2)](lab::Binder& b) {
            const auto sequences = b.knob("sequences");
            return Params{.prompts = b.input<std::int32_t>("prompts", sequences * kPromptTokens,
                                                           lab::Fill::integers(0, kVocabulary)),
                          .tokens = b.output<std::int32_t>("tokens", sequences * kNewTokens),
                          .sequences = sequences,
                          .engine = engine};
          },
      // Another engine, of one thread, which leaves nothing running behind.
      .reference =
          [engine = std::make_shared<Engine>(1)](const Params& p, lab::Reference& r) {
            engine->generate(p.prompts, r.exact<std::int32_t>("tokens").data(), p.sequences, 1);
          },
  };
}

}  // namespace gauntlet::doubles::batched_decode
