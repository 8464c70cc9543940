#include "load/session.h"

#include <fmt/format.h>

namespace gauntlet::load {
namespace {

/// The settings as a reader of the report wants them.
std::vector<std::pair<std::string, std::string>> words_of(const SessionSpec& spec,
                                                          const std::string& prompt_words) {
  std::vector<std::pair<std::string, std::string>> words;
  const auto add = [&](const std::string& name, std::string value) {
    words.emplace_back(name, std::move(value));
  };
  add("endpoint", spec.prepare.endpoint == Endpoint::chat ? "chat" : "completions");
  add("arrivals", name_of(spec.arrivals.kind));
  if (spec.arrivals.burstiness != 1) add("burstiness", fmt::format("{}", spec.arrivals.burstiness));
  if (spec.workload.trace.empty()) {
    add("prompt tokens", spec.workload.prompt_tokens.text());
    add("output tokens", spec.workload.output_tokens.text());
  } else {
    add("trace", fmt::format("{} requests", spec.workload.trace.size()));
  }
  const SharedPrefix& prefix = spec.workload.prefix;
  if (prefix.groups > 0) {
    add("shared prefix", fmt::format("{} of {} tokens, before {:.0f}% of the prompts",
                                     prefix.groups, prefix.tokens, prefix.share * 100));
  }
  add("prompts", prompt_words);
  add("end of sequence", spec.ignore_eos ? "ignored" : "ends an answer");
  if (spec.temperature) add("temperature", fmt::format("{}", *spec.temperature));
  if (spec.num_requests > 0) add("requests", std::to_string(spec.num_requests));
  if (spec.duration_s > 0) add("duration", fmt::format("{} s", spec.duration_s));
  add("warm-up", fmt::format("{} requests", spec.num_warmup));
  add("time limit", fmt::format("{} s", spec.client.timeout_s));
  add("seed", std::to_string(spec.workload.seed));
  return words;
}

}  // namespace

Expected<LoadResult> run_session(const SessionSpec& spec) {
  auto client = Client::open(spec.client);
  if (!client) return client.error();
  const auto prepared = prepare(**client, spec.prepare);
  if (!prepared) return prepared.error();

  const auto run_at = [&](std::optional<double> load) {
    ArrivalSpec arrivals = spec.arrivals;
    if (load && spec.sweep->key == SweepKey::rate) {
      arrivals.rate_per_s = *load;
    } else if (load) {
      arrivals.concurrency = static_cast<std::int64_t>(*load);
    }
    RunOptions options{.arrivals = arrivals,
                       .workload = spec.workload,
                       .form = {.endpoint = spec.prepare.endpoint,
                                .model = prepared->model,
                                .ignore_eos = spec.ignore_eos,
                                .temperature = spec.temperature},
                       .prompts = prepared->prompts,
                       .num_requests = spec.num_requests,
                       .duration_s = spec.duration_s,
                       .num_warmup = spec.num_warmup,
                       .stop = spec.stop};
    if (spec.on_progress) {
      options.on_progress = [&spec, load](const Progress& progress) {
        spec.on_progress(load, progress);
      };
    }
    return summarize((*client)->run(options), arrivals, spec.slo, spec.workload.seed);
  };

  LoadResult result{.url = fmt::format("{}://{}{}", spec.client.url.is_tls ? "https" : "http",
                                       spec.client.url.authority(), spec.client.url.path),
                    .model = prepared->model,
                    .workload = words_of(spec, prepared->prompt_words),
                    .slo = spec.slo};
  if (!spec.sweep) {
    result.points.push_back(run_at(std::nullopt));
    result.capacity_per_s = completed_per_s(result.points.front());
    return result;
  }
  auto swept = sweep(*spec.sweep, spec.slo,
                     [&](double load) { return Expected<PointResult>(run_at(load)); });
  if (!swept) return swept.error();
  result.sweep_key = spec.sweep->key;
  result.points = std::move(swept->points);
  result.loads = std::move(swept->loads);
  result.best = swept->best;
  result.capacity_per_s = swept->capacity_per_s;
  result.sustained = swept->sustained;
  result.is_saturated = swept->is_saturated;
  return result;
}

}  // namespace gauntlet::load
