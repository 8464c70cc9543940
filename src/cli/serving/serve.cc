// gauntlet serve: a model behind OpenAI's API.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "cli/command.h"
#include "cli/engine_options.h"
#include "cli/serving/allocator.h"
#include "cli/serving/file_limit.h"
#include "cli/serving/serve_config.h"
#include "cli/serving/serve_doctor.h"
#include "cli/serving/serve_keys.h"
#include "cli/speculation_options.h"
#include "core/os/files.h"
#include "server/engine_loop.h"
#include "server/http/http_server.h"
#include "server/openai/api.h"
#include "server/structured/grammar_constraints.h"
#include "server/synthetic_tokenizer.h"

namespace gauntlet::cli {
namespace {

using json = nlohmann::ordered_json;

struct ServeOptions {
  EngineArguments engine;
  SpeculationArguments speculation;
  std::string tokenizer;
  server::HttpServerConfig http;
  KeyOptions keys;
  std::string served_name;
  engine::SchedulerConfig scheduler{.max_running = 64, .max_queue = 4096};
  std::int64_t kv_tokens = 0;
  std::string config;  // file
  bool print_config = false;
};

Expected<model::Tokenizer> tokenizer_for(const ServeOptions& options, OpenModel& model) {
  if (!options.tokenizer.empty()) {
    const auto text = read_file(options.tokenizer);
    if (!text) return text.error();
    return model::Tokenizer::from_json(*text, options.tokenizer);
  }
  if (model.tokenizer) return std::move(*model.tokenizer);
  return server::synthetic_tokenizer(model.weights.config.vocab);
}

void log_event(const json& event) { fmt::print(stderr, "{}\n", event.dump()); }

/// The last line of the log; 1 when the engine's books do not balance.
int report_end(const engine::Service& service) {
  const std::string fault = service.check_integrity();
  const engine::ServiceStats stats = service.stats();
  log_event({{"event", "ended"},
             {"integrity", fault.empty() ? "clean" : fault},
             {"requests_running", stats.num_running},
             {"requests_waiting", stats.num_waiting},
             {"kv_cache_usage", stats.kv_usage}});
  return fault.empty() ? 0 : 1;
}

/// What SIGHUP does: keys that cannot be read leave those that hold.
void read_keys_again(const KeyOptions& options, server::KeyRing& ring, engine::Service& service) {
  auto keys = read_keys(options);
  if (!keys) return log_event({{"event", "keys_kept"}, {"why", keys.error().message}});
  service.set_shares(keys->shares());
  const std::size_t num_accounts = keys->accounts().size();
  ring.replace(std::move(*keys));
  log_event({{"event", "keys_read"}, {"names", num_accounts}});
}

void log_failure(const std::string& why) { log_event({{"event", "engine_failed"}, {"why", why}}); }

/// The engine has a thread of its own. Where it fails, the server goes on to say so.
void run_alone(server::HttpServer& http, engine::Service& service, server::ServerMetrics& metrics,
               server::Api& api) {
  const server::EngineLoop loop(service, metrics, [&](const std::string& why) {
    api.set_state(server::Api::State::failed);
    log_failure(why);
  });
  http.run(server::Signals::handled, [&] { api.set_state(server::Api::State::draining); });
}

/// As rank 0 of several: the engine stays on the thread that joined them, and sockets get one. With
/// a rank lost there is nothing to go on with: open replies end by saying so, and then the server.
/// Holds what failed.
std::string lead_until_ended(server::HttpServer& http, engine::Service& service,
                             server::ServerMetrics& metrics, server::Api& api,
                             engine::RankPulse& pulse) {
  constexpr std::chrono::milliseconds kLastWords(1500);  // for clients to take the last of a reply
  std::atomic<bool> ends{false};
  std::atomic<bool> has_failed{false};
  std::promise<void> sockets_ended;
  auto no_more_sockets = sockets_ended.get_future();
  std::thread sockets([&] {
    http.run(server::Signals::handled, [&] {
      if (!has_failed) api.set_state(server::Api::State::draining);
    });
    ends = true;
    service.wake();
    sockets_ended.set_value();
  });
  std::string failure;
  const auto on_failure = [&](const std::string& why) {
    failure = why;
    has_failed = true;
    api.set_state(server::Api::State::failed);
    log_failure(why);
  };
  server::step_until(ends, service, metrics,
                     {.on_failure = on_failure,
                      .between_steps = [&] { pulse.beat_if_due(); },
                      // Or the last steps of a burst would be missing for a second.
                      .at_rest = [&] { pulse.beat(); }});
  try {
    // Whoever ends a job because of a rank ends rank 0 with a signal, too.
    if (failure.empty()) pulse.beat();
  } catch (const engine::RankFailure& lost) {
    on_failure(lost.what());
    service.fail(failure);
  }
  if (!failure.empty()) {
    http.drain();
    if (no_more_sockets.wait_for(kLastWords) != std::future_status::ready) http.stop();
  }
  sockets.join();
  return failure;
}

int serve(ServeOptions options) {
  return_freed_memory();
  std::optional<server::KeyRing> keys;
  if (options.keys.any()) {
    auto read = read_keys(options.keys);
    if (!read) return report_error(read.error());
    keys.emplace(std::move(*read));
  }
  auto model = open_model(options.engine);
  if (!model) return report_error(model.error());
  const auto tokenizer = tokenizer_for(options, *model);
  if (!tokenizer) return report_error(tokenizer.error());
  const auto exported = export_layers_for(options.speculation, *model);
  if (!exported) return report_error(exported.error());
  const Capacity capacity{.sequences = options.scheduler.max_running,
                          .positions = options.kv_tokens,
                          .export_layers = *exported};
  const auto executor = make_executor(*model, options.engine, capacity);
  if (!executor) return report_error(executor.error());
  const auto speculation =
      make_speculation(options.speculation, options.engine, capacity,
                       {.model = *model, .tokenizer = &*tokenizer, .executor = **executor});
  if (!speculation) return report_error(speculation.error());
  model->weights = {};  // packed by now
  raise_file_limit();

  options.scheduler.max_step_tokens = (*executor)->max_batch_tokens();
  engine::Service service(**executor, {.scheduler = options.scheduler,
                                       .shares = keys ? keys->keys()->shares() : 0,
                                       .speculation = *speculation});
  const model::ModelConfig& config = (*executor)->config();
  server::ServedModel served{
      .name = options.served_name.empty() ? config.name : options.served_name,
      .vocab = config.vocab};
  if (config.add_bos) served.bos = static_cast<std::int32_t>(config.bos_id);
  server::ServerMetrics metrics;
  const server::GrammarConstraints constraints(*tokenizer, config);
  const server::GpuSampler gpus;
  const auto pulse = options.engine.job ? options.engine.job->pulse : nullptr;
  server::Api api({.model = served,
                   .keys = keys ? &*keys : nullptr,
                   .constraints = &constraints,
                   .gpus = &gpus,
                   .ranks = pulse ? [pulse] { return pulse->counters(); } : server::RankCounts()},
                  service, *tokenizer, metrics);
  if (!options.keys.file.empty()) {
    options.http.on_hangup = [&] { read_keys_again(options.keys, *keys, service); };
  }
  options.http.log = [](std::string_view line) { fmt::print(stderr, "{}\n", line); };
  const auto http = server::HttpServer::listen(options.http, api);
  if (!http) return report_error(http.error());
  fmt::print("serving {} on {}://{}:{}\n", served.name,
             options.http.tls_certificate.empty() ? "http" : "https", options.http.host,
             (*http)->port());
  std::fflush(stdout);
  const RankJob* job = options.engine.job;
  const std::string failure = job == nullptr
                                  ? (run_alone(**http, service, metrics, api), std::string())
                                  : lead_until_ended(**http, service, metrics, api, *job->pulse);
  const int code = report_end(service);
  return failure.empty() ? code : report_error(Error{failure});
}

int start(const ServeOptions& options) {
  if (const auto valid = check_speculation(options.speculation); !valid) {
    return report_error(valid.error());
  }
  return run_on_ranks(options.engine,
                      [&](const EngineArguments& arguments) {
                        ServeOptions led = options;
                        led.engine = arguments;
                        return serve(std::move(led));
                      },
                      {.what = RankUse::For::serving});
}

void add_server_options(CLI::App& command, ServeOptions& options) {
  const auto add = [&](const std::string& name, auto& value, const std::string& help,
                       const char* text) {
    return command.add_option(name, value, help)->capture_default_str()->option_text(text);
  };
  server::HttpLimits& limits = options.http.limits;
  engine::SchedulerConfig& scheduler = options.scheduler;
  const CLI::Range counts(std::int64_t{1}, std::int64_t{1} << 20);
  const CLI::Range sizes(std::int64_t{1}, std::int64_t{1} << 40);
  const CLI::Range seconds(0.001, 86400.0);
  add("--tokenizer", options.tokenizer, "a tokenizer.json, for random weights", "FILE");
  add("--served-model-name", options.served_name, "what clients call it (default: its own name)",
      "NAME");
  add("--host", options.http.host, "address to listen on", "ADDRESS");
  add("--port", options.http.port, "0: any that is free", "N");
  add("--http-threads", options.http.threads, "that read and write", "N")->check(CLI::Range(1, 64));
  add("--api-key", options.keys.key, "that clients must send (better by environment)", "KEY");
  add("--api-keys", options.keys.file,
      "keys of several clients: a line is NAME KEY [SHARE]; SIGHUP reads it again", "FILE");
  add("--tls-cert", options.http.tls_certificate, "certificate chain, PEM", "FILE");
  add("--tls-key", options.http.tls_key, "its key, PEM", "FILE");
  add("--allowed-hosts", options.http.allowed_hosts,
      "that requests may be for, '*': any (default: on a loopback address its names, else any)",
      "NAME,...")
      ->delimiter(',');
  add("--allowed-origins", options.http.allowed_origins,
      "of web pages that may read answers, as in https://chat.example, '*': any (default: none)",
      "ORIGIN,...")
      ->delimiter(',');
  add("--max-batch-tokens,--chunk", options.engine.chunk,
      "tokens of one step (default: 512 on CPUs, 8192 on a GPU)", "N")
      ->check(CLI::Range(1, 16384));
  add("--max-sequences", scheduler.max_running, "that run at once", "N")->check(counts);
  add("--max-queue", scheduler.max_queue, "that wait, before 429", "N")->check(counts);
  add("--max-wait", scheduler.max_wait_s, "for a first step, before 503 (0: for ever)", "SECONDS")
      ->check(CLI::Range(0.0, 86400.0));
  add("--kv-tokens", options.kv_tokens, "positions the cache holds (0: as the backend chooses)",
      "N")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  add("--static-batch", scheduler.fixed_batch, "size with --batching static", "N")->check(counts);
  add("--stream-interval", options.http.stream_interval_s,
      "between two writes of a stream at least: tokens in between go together", "SECONDS")
      ->check(CLI::Range(0.0, 10.0));
  add("--max-body-bytes", limits.body_bytes, "of a request", "N")->check(sizes);
  add("--max-header-bytes", limits.header_bytes, "of a request", "N")->check(counts);
  add("--max-connections", limits.connections, "at once", "N")->check(counts);
  add("--max-all-bodies-bytes", limits.all_bodies_bytes, "of requests being read", "N")
      ->check(sizes);
  add("--header-timeout", limits.header_s, "for a first request's header", "SECONDS")
      ->check(seconds);
  add("--body-timeout", limits.body_s, "for a request's body", "SECONDS")->check(seconds);
  add("--write-timeout", limits.write_s, "for a client to take what it is sent", "SECONDS")
      ->check(seconds);
  add("--first-byte-timeout", limits.first_byte_s, "for a reply to begin", "SECONDS")
      ->check(seconds);
  add("--idle-timeout", limits.idle_s, "between requests of a connection", "SECONDS")
      ->check(seconds);
  add("--drain-timeout", limits.drain_s, "for running requests after SIGTERM", "SECONDS")
      ->check(CLI::Range(0.0, 86400.0));
}

/// --max-queue is GAUNTLET_MAX_QUEUE.
void name_variables(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option == command.get_help_ptr()) continue;
    std::string variable = "GAUNTLET_";
    for (const char c : option->get_lnames().front()) {
      variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    option->envname(variable);
  }
}

/// Everything a configuration file can hold.
void add_all_options(CLI::App& command, ServeOptions& options) {
  add_model_options(command, options.engine);
  add_engine_options(command, options.engine);
  add_rank_options(command, options.engine.ranks);
  add_speculation_options(command, options.speculation);
  // A server calls it --max-batch-tokens, too.
  command.remove_option(command.get_option("--chunk"));
  add_server_options(command, options);
  engine::SchedulerConfig& scheduler = options.scheduler;
  add_choice<engine::Batching>(
      command, "--batching", scheduler.batching,
      {{"continuous", engine::Batching::continuous}, {"static", engine::Batching::fixed}},
      "requests join at every step, or only when a batch is done (default: continuous)");
  add_choice<engine::FixedSlots>(
      command, "--static-slots", scheduler.fixed_slots,
      {{"freed", engine::FixedSlots::freed}, {"kept", engine::FixedSlots::kept}},
      "of answers that end before their static batch: computed no more, or on to its end, as in "
      "batches of a fixed shape (default: freed)");
  add_choice<engine::Chunking>(command, "--chunked-prefill", scheduler.chunking,
                               {{"on", engine::Chunking::on}, {"off", engine::Chunking::off}},
                               "prompts share steps with decoding (default: on)");
  add_choice<engine::PrefixCaching>(
      command, "--prefix-cache", scheduler.prefix_caching,
      {{"on", engine::PrefixCaching::on}, {"off", engine::PrefixCaching::off}},
      "prompts that begin alike share pages (default: on)");
  add_activations(command, options.engine, engine::Activations::automatic);
  name_variables(command);
}

int serve_or_print(CLI::App& command, const ServeOptions& options) {
  if (!options.config.empty()) {
    const auto applied = apply_config(command, options.config);
    if (!applied) return report_error(applied.error());
  }
  if (!options.print_config) return start(options);
  fmt::print("{}", config_text(command));
  return 0;
}

}  // namespace

Expected<ServePlan> plan_serving(const std::string& config) {
  ServeOptions options;
  CLI::App command("", "serve");
  add_all_options(command, options);
  add_config_options(command, options.config, options.print_config);
  try {
    command.parse(std::vector<std::string>{});
  } catch (const CLI::ParseError& error) {
    return wrong_use(std::string("the environment: ") + error.what());
  }
  if (!config.empty()) options.config = config;
  if (!options.config.empty()) {
    const auto applied = apply_config(command, options.config);
    if (!applied) return applied.error();
  }
  return ServePlan{.http = options.http,
                   .keys = options.keys,
                   .engine = options.engine,
                   .tokenizer = options.tokenizer,
                   .max_sequences = options.scheduler.max_running,
                   .kv_tokens = options.kv_tokens};
}

void add_serve(CLI::App& app, Context& context) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app.add_subcommand("serve", "serve a model by OpenAI's HTTP API");
  add_all_options(*command, *options);
  add_config_options(*command, options->config, options->print_config);
  command->footer(
      "Example:  gauntlet serve --port 8000\nEach option can come from the environment, as in "
      "GAUNTLET_PORT, and from a --config file.");
  command->callback(
      [options, command, &context] { context.exit_code = serve_or_print(*command, *options); });
}

}  // namespace gauntlet::cli
