// gauntlet serve: a model behind OpenAI's API.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/file_limit.h"
#include "core/files.h"
#include "server/api.h"
#include "server/engine_loop.h"
#include "server/grammar_constraints.h"
#include "server/http_server.h"
#include "server/synthetic_tokenizer.h"

namespace gauntlet::cli {
namespace {

using json = nlohmann::ordered_json;

struct ServeOptions {
  EngineArguments engine;
  std::string tokenizer;
  server::HttpServerConfig http;
  std::string api_key;
  std::string served_name;
  engine::SchedulerConfig scheduler{.max_running = 64, .max_queue = 4096};
  std::int64_t kv_tokens = 0;
  bool print_config = false;
};

json config_json(const ServeOptions& options) {
  const server::HttpLimits& limits = options.http.limits;
  const engine::SchedulerConfig& scheduler = options.scheduler;
  const auto on_off = [](bool on) { return on ? "on" : "off"; };
  return {
      {"model", options.engine.model.value_or("gauntlet-tiny")},
      {"served_model_name", options.served_name},
      {"tokenizer", options.tokenizer},
      {"host", options.http.host},
      {"port", options.http.port},
      {"http_threads", options.http.threads},
      {"api_key", options.api_key.empty() ? "none" : "set"},
      {"tls_cert", options.http.tls_certificate},
      {"tls_key", options.http.tls_key},
      {"max_batch_tokens", options.engine.chunk ? json(*options.engine.chunk) : json()},
      {"max_sequences", scheduler.max_running},
      {"max_queue", scheduler.max_queue},
      {"max_wait_s", scheduler.max_wait_s},
      {"kv_tokens", options.kv_tokens},
      {"batching", scheduler.batching == engine::Batching::continuous ? "continuous" : "static"},
      {"static_batch", scheduler.fixed_batch},
      {"static_slots", scheduler.fixed_slots == engine::FixedSlots::kept ? "kept" : "freed"},
      {"chunked_prefill", on_off(scheduler.chunking == engine::Chunking::on)},
      {"prefix_cache", on_off(scheduler.prefix_caching == engine::PrefixCaching::on &&
                              options.engine.options.cuda.kv_layout == engine::KvLayout::paged)},
      {"stream_interval_s", options.http.stream_interval_s},
      {"activations", engine::name_of(options.engine.options.activations)},
      {"kv_dtype",
       options.engine.options.kv ? engine::name_of(*options.engine.options.kv) : "auto"},
      {"max_header_bytes", limits.header_bytes},
      {"max_body_bytes", limits.body_bytes},
      {"max_connections", limits.connections},
      {"max_all_bodies_bytes", limits.all_bodies_bytes},
      {"header_timeout_s", limits.header_s},
      {"body_timeout_s", limits.body_s},
      {"write_timeout_s", limits.write_s},
      {"first_byte_timeout_s", limits.first_byte_s},
      {"idle_timeout_s", limits.idle_s},
      {"drain_timeout_s", limits.drain_s}};
}

Expected<model::Tokenizer> tokenizer_for(const ServeOptions& options, OpenModel& model) {
  if (!options.tokenizer.empty()) {
    const auto text = read_file(options.tokenizer);
    if (!text) return text.error();
    return model::Tokenizer::from_json(*text, options.tokenizer);
  }
  if (model.tokenizer) return std::move(*model.tokenizer);
  return server::synthetic_tokenizer(model.weights.config.vocab);
}

/// The last line of the log; 1 when the engine's books do not balance.
int report_end(const engine::Service& service) {
  const std::string fault = service.check_integrity();
  const engine::ServiceStats stats = service.stats();
  fmt::print(stderr, "{}\n",
             json{{"event", "ended"},
                  {"integrity", fault.empty() ? "clean" : fault},
                  {"requests_running", stats.num_running},
                  {"requests_waiting", stats.num_waiting},
                  {"kv_cache_usage", stats.kv_usage}}
                 .dump());
  return fault.empty() ? 0 : 1;
}

int serve(ServeOptions options) {
  if (options.print_config) {
    fmt::print("{}\n", config_json(options).dump(2));
    return 0;
  }
  auto model = open_model(options.engine);
  if (!model) return report_error(model.error());
  const auto tokenizer = tokenizer_for(options, *model);
  if (!tokenizer) return report_error(tokenizer.error());
  const auto executor =
      make_executor(*model, options.engine,
                    {.sequences = options.scheduler.max_running, .positions = options.kv_tokens});
  if (!executor) return report_error(executor.error());
  model->weights = {};  // packed by now
  raise_file_limit();

  options.scheduler.max_step_tokens = (*executor)->max_batch_tokens();
  engine::Service service(**executor, {.scheduler = options.scheduler});
  const model::ModelConfig& config = (*executor)->config();
  server::ServedModel served{
      .name = options.served_name.empty() ? config.name : options.served_name,
      .vocab = config.vocab};
  if (config.add_bos) served.bos = static_cast<std::int32_t>(config.bos_id);
  server::ServerMetrics metrics;
  const server::GrammarConstraints constraints(*tokenizer, config);
  const server::GpuSampler gpus;
  server::Api api(
      {.model = served, .api_key = options.api_key, .constraints = &constraints, .gpus = &gpus},
      service, *tokenizer, metrics);
  options.http.log = [](std::string_view line) { fmt::print(stderr, "{}\n", line); };
  const auto http = server::HttpServer::listen(options.http, api);
  if (!http) return report_error(http.error());
  std::optional<server::EngineLoop> loop;
  loop.emplace(service, metrics, [&](const std::string& why) {
    api.set_state(server::Api::State::failed);
    fmt::print(stderr, "{}\n", json{{"event", "engine_failed"}, {"why", why}}.dump());
  });
  fmt::print("serving {} on {}://{}:{}\n", served.name,
             options.http.tls_certificate.empty() ? "http" : "https", options.http.host,
             (*http)->port());
  std::fflush(stdout);
  (*http)->run(server::Signals::handled, [&] { api.set_state(server::Api::State::draining); });
  loop.reset();
  return report_end(service);
}

void add_server_options(CLI::App& command, ServeOptions& options) {
  const auto add = [&](const std::string& name, auto& value, const std::string& help,
                       const char* text) {
    std::string variable = "GAUNTLET_";
    for (const char c : name.substr(2)) {
      variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    return command.add_option(name, value, help)
        ->envname(variable)
        ->capture_default_str()
        ->option_text(text);
  };
  server::HttpLimits& limits = options.http.limits;
  engine::SchedulerConfig& scheduler = options.scheduler;
  const CLI::Range counts(std::int64_t{1}, std::int64_t{1} << 20);
  add("--tokenizer", options.tokenizer, "a tokenizer.json, for random weights", "FILE");
  add("--served-model-name", options.served_name, "what clients call it (default: its own name)",
      "NAME");
  add("--host", options.http.host, "address to listen on", "ADDRESS");
  add("--port", options.http.port, "0: any that is free", "N");
  add("--http-threads", options.http.threads, "that read and write", "N")->check(CLI::Range(1, 64));
  add("--api-key", options.api_key, "that clients must send (better by environment)", "KEY");
  add("--tls-cert", options.http.tls_certificate, "certificate chain, PEM", "FILE");
  add("--tls-key", options.http.tls_key, "its key, PEM", "FILE");
  add("--max-batch-tokens", options.engine.chunk, "tokens of one step, as --chunk", "N")
      ->check(CLI::Range(1, 16384));
  add("--max-sequences", scheduler.max_running, "that run at once", "N")->check(counts);
  add("--max-queue", scheduler.max_queue, "that wait, before 429", "N")->check(counts);
  add("--max-wait", scheduler.max_wait_s, "for a first step, before 503 (0: for ever)", "SECONDS")
      ->check(CLI::Range(0.0, 86400.0));
  add("--kv-tokens", options.kv_tokens, "positions the cache holds (0: as the backend chooses)",
      "N");
  add("--static-batch", scheduler.fixed_batch, "size with --batching static", "N")->check(counts);
  add("--stream-interval", options.http.stream_interval_s,
      "between two writes of a stream at least: tokens in between go together", "SECONDS")
      ->check(CLI::Range(0.0, 10.0));
  add("--max-body-bytes", limits.body_bytes, "of a request", "N");
  add("--max-header-bytes", limits.header_bytes, "of a request", "N");
  add("--max-connections", limits.connections, "at once", "N")->check(counts);
  add("--max-all-bodies-bytes", limits.all_bodies_bytes, "of requests being read", "N");
  add("--header-timeout", limits.header_s, "for a first request's header", "SECONDS");
  add("--body-timeout", limits.body_s, "for a request's body", "SECONDS");
  add("--write-timeout", limits.write_s, "for a client to take what it is sent", "SECONDS");
  add("--first-byte-timeout", limits.first_byte_s, "for a reply to begin", "SECONDS");
  add("--idle-timeout", limits.idle_s, "between requests of a connection", "SECONDS");
  add("--drain-timeout", limits.drain_s, "for running requests after SIGTERM", "SECONDS");
}

}  // namespace

void add_serve(CLI::App& app, Context& context) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand("serve", "serve a model by OpenAI's HTTP API");
  add_model_options(*command, options->engine);
  add_server_options(*command, *options);
  engine::SchedulerConfig& scheduler = options->scheduler;
  add_choice<engine::Batching>(
      *command, "--batching", scheduler.batching,
      {{"continuous", engine::Batching::continuous}, {"static", engine::Batching::fixed}},
      "requests join at every step, or only when a batch is done (default: continuous)");
  add_choice<engine::FixedSlots>(
      *command, "--static-slots", scheduler.fixed_slots,
      {{"freed", engine::FixedSlots::freed}, {"kept", engine::FixedSlots::kept}},
      "of answers that end before their static batch: computed no more, or on to its end, as in "
      "batches of a fixed shape (default: freed)");
  add_choice<engine::Chunking>(*command, "--chunked-prefill", scheduler.chunking,
                               {{"on", engine::Chunking::on}, {"off", engine::Chunking::off}},
                               "prompts share steps with decoding (default: on)");
  add_choice<engine::PrefixCaching>(
      *command, "--prefix-cache", scheduler.prefix_caching,
      {{"on", engine::PrefixCaching::on}, {"off", engine::PrefixCaching::off}},
      "prompts that begin alike share pages (default: on)");
  add_activations(*command, options->engine, engine::Activations::automatic);
  add_engine_options(*command, options->engine);
  command->add_flag("--print-config", options->print_config, "show what holds, and end");
  command->footer(
      "Example:  gauntlet serve --port 8000\nEach option with a value of its own can "
      "come from the environment, as in GAUNTLET_PORT.");
  command->callback([options, &context] { context.exit_code = serve(*options); });
}

}  // namespace gauntlet::cli
