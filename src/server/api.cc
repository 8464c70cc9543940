#include "server/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "core/build_info.h"
#include "server/page.h"

namespace gauntlet::server {
namespace {

std::uint64_t seed_of_chance() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

/// In a time that does not tell how much of it was right.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned>(a[i] ^ (b.empty() ? 0 : b[i % b.size()]));
  }
  return difference == 0;
}

std::shared_ptr<Reply> refuse_method(const std::string& path, const std::string& allowed) {
  const ApiError error{.status = 405, .message = fmt::format("{} takes {} only", path, allowed)};
  HttpHead head = head_of(error);
  head.headers.emplace_back("Allow", allowed);
  return make_reply(std::move(head), to_json(error));
}

}  // namespace

std::int64_t unix_now_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Api::Api(ApiConfig config, engine::Service& service, const model::Tokenizer& tokenizer,
         ServerMetrics& metrics)
    : config_(std::move(config)),
      service_(service),
      tokenizer_(tokenizer),
      harmony_(model::Harmony::make(tokenizer)),
      metrics_(metrics),
      started_s_(unix_now_s()),
      chance_(seed_of_chance()) {}

const std::vector<Api::Route>& Api::routes() {
  static const std::vector<Route> kRoutes = {
      {"GET", "/v1/models", &Api::models, false},
      {"POST", "/v1/completions", &Api::completions, false},
      {"POST", "/v1/chat/completions", &Api::chat_completions, false},
      {"POST", "/tokenize", &Api::tokenize, false},
      {"POST", "/detokenize", &Api::detokenize, false},
      {"GET", "/metrics", &Api::metrics_text, false},
      {"GET", "/health", &Api::health, true},
      {"GET", "/ready", &Api::ready, true},
      {"GET", "/version", &Api::version, true},
  };
  return kRoutes;
}

std::shared_ptr<Reply> Api::handle(const HttpRequest& request) {
  const std::string path = request.target.substr(0, request.target.find('?'));
  if (const PageFile* file = find_page_file(path)) {
    return request.method == "GET" ? make_reply(*file) : refuse_method(path, "GET");
  }
  const bool is_one_model = path.starts_with("/v1/models/");
  const auto route = std::ranges::find_if(routes(), [&](const Route& one) {
    return is_one_model ? one.endpoint == &Api::models : path == one.path;
  });
  if (route == routes().end()) {
    return make_reply(ApiError{.status = 404, .message = "there is nothing at this path"});
  }
  if (!route->is_open) {
    if (const auto error = check_key(request)) return make_reply(*error);
  }
  if (request.method != route->method) return refuse_method(route->path, route->method);
  return (this->*route->endpoint)(request);
}

std::optional<ApiError> Api::check_key(const HttpRequest& request) const {
  constexpr std::string_view kBearer = "Bearer ";
  if (config_.api_key.empty()) return std::nullopt;
  std::string_view given = request.authorization;
  if (given.starts_with(kBearer)) {
    given.remove_prefix(kBearer.size());
    if (same_secret(given, config_.api_key)) return std::nullopt;
  }
  return ApiError{.status = 401,
                  .message = "the API key is missing or wrong: send it as 'Authorization: Bearer'",
                  .code = "invalid_api_key"};
}

std::optional<ApiError> Api::check_ready() const {
  switch (state_.load()) {
    case State::ready:
      return std::nullopt;
    case State::draining:
      return ApiError{.status = 503,
                      .message = "the server is shutting down and takes no more requests",
                      .retry_after_s = 5};
    case State::failed:
      break;
  }
  return ApiError{.status = 503, .message = "the engine has failed: the server must be restarted"};
}

std::shared_ptr<Reply> Api::models(const HttpRequest& request) {
  constexpr std::string_view kOne = "/v1/models/";
  const Json model = {{"id", config_.model.name},
                      {"object", "model"},
                      {"created", started_s_},
                      {"owned_by", "gauntlet"},
                      {"max_model_len", service_.capacity()}};
  if (!request.target.starts_with(kOne)) {
    return make_reply({}, Json{{"object", "list"}, {"data", Json::array({model})}}.dump());
  }
  if (request.target.substr(kOne.size()) == config_.model.name) return make_reply({}, model.dump());
  return make_reply(
      ApiError{.status = 404,
               .message = fmt::format("this model is not served here; '{}' is", config_.model.name),
               .param = "model",
               .code = "model_not_found"});
}

std::shared_ptr<Reply> Api::health(const HttpRequest&) {
  if (state_.load() == State::failed) return make_reply(*check_ready());
  return make_reply({}, R"({"status":"ok"})");
}

std::shared_ptr<Reply> Api::ready(const HttpRequest&) {
  if (const auto error = check_ready()) return make_reply(*error);
  return make_reply({}, R"({"status":"ready"})");
}

std::shared_ptr<Reply> Api::version(const HttpRequest&) {
  const BuildInfo build = build_info();
  return make_reply({}, Json{{"version", build.version}, {"commit", build.commit}}.dump());
}

std::shared_ptr<Reply> Api::metrics_text(const HttpRequest&) {
  MetricsView view{.server = metrics_,
                   .model = config_.model.name,
                   .stats = service_.stats(),
                   .num_experts = service_.num_experts(),
                   .expert_tokens = service_.expert_tokens(),
                   .gpus = {}};
  if (config_.gpus) view.gpus = config_.gpus->latest();
  return make_reply({.content_type = "text/plain; version=0.0.4; charset=utf-8"},
                    render_metrics(view));
}

}  // namespace gauntlet::server
