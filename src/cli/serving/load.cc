// gauntlet load: how an OpenAI-compatible server bears a load.
#include <fmt/format.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/serving/file_limit.h"
#include "cli/serving/load_print.h"
#include "core/build_info.h"
#include "core/os/files.h"
#include "load/session.h"

namespace gauntlet::cli {
namespace {

using load::ArrivalKind;

constexpr double kDefaultDuration_s = 30;

struct LoadOptions {
  std::string url = "http://127.0.0.1:8000";
  std::string prompt_tokens = "128";
  std::string output_tokens = "64";
  std::string shared_prefix;
  std::string trace;
  std::string slo;
  std::string sweep;
  std::optional<ArrivalKind> arrivals;
  std::optional<double> rate;
  std::optional<std::int64_t> concurrency;
  bool insecure = false;
  load::SessionSpec session;
  bool self_test = false;
  load::OverheadOptions self;
  std::vector<std::string> compare;
  Format format = Format::text;
  std::string output;
  std::string html;
};

Error wrong(const std::string& sentence) { return {sentence, ErrorKind::wrong_use}; }

template <class T>
Expected<void> read(T& into, Expected<T> parsed) {
  if (!parsed) return parsed.error();
  into = std::move(*parsed);
  return {};
}

Expected<void> read_workload(LoadOptions& options) {
  load::WorkloadSpec& workload = options.session.workload;
  for (const auto& step : {read(workload.prompt_tokens,
                                load::Lengths::parse(options.prompt_tokens, "--prompt-tokens")),
                           read(workload.output_tokens,
                                load::Lengths::parse(options.output_tokens, "--output-tokens"))}) {
    if (!step) return step;
  }
  if (!options.shared_prefix.empty()) {
    const auto prefix = read(workload.prefix, load::SharedPrefix::parse(options.shared_prefix));
    if (!prefix) return prefix;
  }
  if (!options.slo.empty()) {
    if (const auto slo = read(options.session.slo, load::Slo::parse(options.slo)); !slo) return slo;
  }
  if (options.trace.empty()) return {};
  const auto text = read_file(options.trace);
  if (!text) return text.error();
  return read(workload.trace, load::parse_trace(*text, options.trace));
}

/// What the other options say where --arrivals says nothing.
ArrivalKind arrivals_of(const LoadOptions& options) {
  const auto& sweep = options.session.sweep;
  if (options.arrivals) return *options.arrivals;
  if (sweep && sweep->key == load::SweepKey::concurrency) return ArrivalKind::closed;
  if (options.concurrency) return ArrivalKind::closed;
  return options.trace.empty() || options.rate || sweep ? ArrivalKind::poisson : ArrivalKind::trace;
}

Expected<void> read_arrivals(LoadOptions& options) {
  load::SessionSpec& session = options.session;
  if (!options.sweep.empty()) {
    auto sweep = load::SweepSpec::parse(options.sweep);
    if (!sweep) return sweep.error();
    session.sweep = *sweep;
  }
  const ArrivalKind kind = session.arrivals.kind = arrivals_of(options);
  const bool is_closed = kind == ArrivalKind::closed;
  const bool has_sweep = session.sweep.has_value();
  if (has_sweep && is_closed != (session.sweep->key == load::SweepKey::concurrency)) {
    return wrong("a sweep of rates is for open loops, one of concurrencies for --arrivals closed");
  }
  if (has_sweep && (options.rate || options.concurrency)) {
    return wrong("--sweep chooses the load: leave out --rate and --concurrency");
  }
  if (is_closed && options.rate) {
    return wrong("a closed loop has no rate: it sends when an answer is in");
  }
  if (!is_closed && options.concurrency) {
    return wrong("--concurrency is for --arrivals closed");
  }
  if (is_closed && !options.concurrency && !has_sweep)
    return wrong("a closed loop needs --concurrency");
  if (!is_closed && kind != ArrivalKind::trace && !options.rate && !has_sweep) {
    return wrong("how much load: give --rate, --concurrency, --sweep or --trace");
  }
  session.arrivals.rate_per_s = options.rate.value_or(1);
  session.arrivals.concurrency = options.concurrency.value_or(1);
  if (session.num_requests == 0 && session.duration_s == 0 && kind != ArrivalKind::trace) {
    session.duration_s = kDefaultDuration_s;
  }
  return {};
}

Expected<void> read_options(LoadOptions& options) {
  if (auto url = read(options.session.client.url, load::Url::parse(options.url)); !url) return url;
  if (options.insecure) options.session.client.certificates = load::Certificates::any;
  if (auto workload = read_workload(options); !workload) return workload;
  return read_arrivals(options);
}

std::string command_line(const Context& context) {
  std::string text = "gauntlet";
  bool is_secret = false;
  for (const std::string& argument : context.arguments) {
    const bool has_secret = argument.starts_with("--api-key=");
    text += " " + (is_secret ? "***" : has_secret ? "--api-key=***" : argument);
    is_secret = argument == "--api-key";
  }
  return text;
}

int write_or_print(const std::string& path, const std::string& text) {
  if (path.empty()) {
    fmt::print("{}", text);
    return 0;
  }
  const auto written = atomic_write_file(path, text);
  return written ? 0 : report_error(written.error());
}

int test(LoadOptions& options, const Context& context) {
  if (const auto valid = read_options(options); !valid) return report_error(valid.error());
  raise_file_limit();
  load::SessionSpec& session = options.session;
  std::atomic<bool>& stop = watch_signals({SIGINT, SIGTERM});
  session.stop = &stop;
  ProgressLine line;
  session.on_progress = [&](std::optional<double> at, const load::Progress& progress) {
    line.show(fmt::format("{}{:.0f} s: {} sent, {} done, {} failed",
                          at ? fmt::format("load {:.3g}, ", *at) : "", progress.elapsed_s,
                          progress.num_sent, progress.num_done, progress.num_failed));
  };
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  auto result = load::run_session(session);
  line.clear();
  if (!result) return report_error(result.error());
  result->started_at = std::chrono::duration_cast<std::chrono::seconds>(now).count();
  result->command_line = command_line(context);
  result->version = build_info().version + " (" + build_info().commit + ")";
  const std::string text =
      options.format == Format::json ? load::json_text(*result) : load_text(*result);
  if (const int code = write_or_print(options.output, text); code != 0) return code;
  if (!options.html.empty()) {
    const auto written = atomic_write_file(options.html, load::render_html(*result));
    if (!written) return report_error(written.error());
  }
  if (stop) return 130;
  const bool any = std::ranges::any_of(result->points, [](const auto& p) { return p.num_ok > 0; });
  return any ? 0 : report_error({"no request was answered", ErrorKind::check_failed});
}

int compare(const LoadOptions& options) {
  std::vector<load::LoadResult> results;
  for (const std::string& path : options.compare) {
    const auto text = read_file(path);
    if (!text) return report_error(text.error());
    auto result = load::load_result_from_json(*text, path);
    if (!result) return report_error(result.error());
    results.push_back(std::move(*result));
  }
  const auto comparisons = load::compare(results[0], results[1]);
  std::string text;
  if (options.format == Format::json) {
    text = load::json_text(comparisons);
  } else {
    text = fmt::format("A {}\nB {}\n\n{}", results[0].command_line, results[1].command_line,
                       comparison_text(comparisons));
  }
  return write_or_print(options.output, text);
}

int self_test(const LoadOptions& options) {
  raise_file_limit();
  const auto result = load::measure_overhead(options.self);
  if (!result) return report_error(result.error());
  const int code = write_or_print(options.output, options.format == Format::json
                                                      ? load::json_text(options.self, *result)
                                                      : overhead_text(options.self, *result));
  return code != 0 ? code : result->num_failed > 0 ? 1 : 0;
}

void add_load_options(CLI::App& command, LoadOptions& options) {
  add_choice<std::optional<ArrivalKind>>(command, "--arrivals", options.arrivals,
                                         {{"poisson", ArrivalKind::poisson},
                                          {"fixed", ArrivalKind::fixed},
                                          {"closed", ArrivalKind::closed}},
                                         "by the clock, or as answers come in (default: as the "
                                         "other options imply)");
  command.add_option("--rate", options.rate, "requests per second")
      ->check(CLI::Range(1e-3, 1e6))
      ->option_text("R");
  command
      .add_option("--burstiness", options.session.arrivals.burstiness,
                  "gamma shape of the gaps: 1 is Poisson, below is burstier")
      ->check(CLI::Range(1e-2, 1e4))
      ->capture_default_str()
      ->option_text("B");
  command.add_option("--concurrency", options.concurrency, "requests at once, of a closed loop")
      ->check(CLI::Range(1, 100000))
      ->option_text("N");
  command
      .add_option("--sweep", options.sweep,
                  "raise the load until it saturates: rate=1..64 or concurrency=1..256")
      ->option_text("KEY=A..B");
  command.add_option("--requests", options.session.num_requests, "of each run, after the warm-up")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{10000000}))
      ->option_text("N");
  command
      .add_option("--duration", options.session.duration_s,
                  "of each run, after the warm-up (default: 30, without --requests)")
      ->check(CLI::Range(0.01, 604800.0))
      ->option_text("SECONDS");
  command.add_option("--warmup", options.session.num_warmup, "requests before what is reported")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str()
      ->option_text("N");
  command.add_option("--slo", options.slo, "what is good: ttft=1,tpot=0.05 (seconds; e2e, too)")
      ->option_text("LIMITS");
}

void add_workload_options(CLI::App& command, LoadOptions& options) {
  load::SessionSpec& session = options.session;
  command
      .add_option("--prompt-tokens", options.prompt_tokens,
                  "128, uniform:64..512 or lognormal:128,0.8 (median, sigma; then a maximum)")
      ->capture_default_str()
      ->option_text("LENGTHS");
  command.add_option("--output-tokens", options.output_tokens, "likewise, as max_tokens")
      ->capture_default_str()
      ->option_text("LENGTHS");
  command.add_flag("--ignore-eos", session.ignore_eos,
                   "have answers of exactly that length (vLLM's and our servers)");
  command
      .add_option("--shared-prefix", options.shared_prefix,
                  "one of G prefixes of N tokens before prompts, or a share of them: 4:256:80%")
      ->option_text("G:N[:SHARE]");
  command
      .add_option("--trace", options.trace,
                  "JSON lines: at_s, prompt_tokens or prompt, output_tokens")
      ->option_text("FILE");
  add_choice<load::PromptKind>(command, "--prompts", session.prepare.prompts,
                               {{"auto", load::PromptKind::automatic},
                                {"ids", load::PromptKind::ids},
                                {"words", load::PromptKind::words}},
                               "token ids where the server takes them, or words");
  command.add_option("--vocab", session.prepare.vocab, "draw token ids below this, ask nobody")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24))
      ->option_text("N");
  command.add_option("--temperature", session.temperature, "(default: the server's)")
      ->check(CLI::Range(0.0, 2.0))
      ->option_text("T");
  command.add_option("--seed", session.workload.seed, "of lengths, times and prompts")
      ->capture_default_str()
      ->option_text("N");
}

void add_server_options(CLI::App& command, LoadOptions& options) {
  load::SessionSpec& session = options.session;
  command.add_option("--url", options.url, "the server, with or without /v1")
      ->capture_default_str()
      ->option_text("URL");
  command
      .add_option("--model", session.prepare.model, "(default: the first that the server lists)")
      ->option_text("NAME");
  add_choice<load::Endpoint>(
      command, "--endpoint", session.prepare.endpoint,
      {{"completions", load::Endpoint::completions}, {"chat", load::Endpoint::chat}},
      "(default: completions)");
  command.add_option("--api-key", session.client.api_key, "(better by environment)")
      ->envname("GAUNTLET_API_KEY")
      ->option_text("KEY");
  command.add_flag("--insecure", options.insecure, "accept any certificate");
  command.add_option("--timeout", session.client.timeout_s, "of a request")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str()
      ->option_text("SECONDS");
}

}  // namespace

void add_load(CLI::App& app, Context& context) {
  auto options = std::make_shared<LoadOptions>();
  CLI::App* command =
      app.add_subcommand("load", "latency, throughput and goodput of a server under load");
  add_server_options(*command, *options);
  add_load_options(*command, *options);
  add_workload_options(*command, *options);
  refuse_option(*command, "--speculate", "it is the server that guesses: gauntlet serve takes it");
  add_format(*command, options->format);
  command->add_option("--output", options->output, "write there instead of printing")
      ->option_text("FILE");
  command->add_option("--html", options->html, "and a self-contained page with charts")
      ->option_text("FILE");
  CLI::Option* compared =
      command->add_option("--compare", options->compare, "two results in JSON: ratios B/A")
          ->expected(2)
          ->option_text("A.json B.json");
  command
      ->add_flag("--self-test", options->self_test,
                 "what this client costs, against a server that computes nothing")
      ->excludes(compared);
  command->add_option("--self-test-streams", options->self.num_streams, "at once")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str()
      ->option_text("N");
  command->add_option("--self-test-tokens", options->self.num_tokens, "of each, ten a second")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str()
      ->option_text("N");
  command->footer(
      "Example:  gauntlet load --rate 8 --prompt-tokens lognormal:128,0.8 --slo ttft=1,tpot=0.05");
  command->callback([options, &context] {
    context.exit_code = options->self_test          ? self_test(*options)
                        : !options->compare.empty() ? compare(*options)
                                                    : test(*options, context);
  });
}

}  // namespace gauntlet::cli
