#include "server/openai/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "core/build_info.h"
#include "server/http/request_head.h"
#include "server/page.h"

namespace gauntlet::server::inline openai {
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

constexpr std::string_view kOneModel = "/v1/models/";
constexpr std::string_view kBearer = "bearer ";

/// The name of a scheme is the same in small and in capital letters.
bool is_bearer(std::string_view scheme) {
  return std::ranges::equal(scheme, kBearer, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b;
  });
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
      responses_(std::make_shared<ResponseStore>(config_.kept_responses)),
      started_s_(unix_now_s()),
      chance_(seed_of_chance()) {}

const std::vector<Api::Route>& Api::routes() {
  static const std::vector<Route> kRoutes = {
      {"GET", "/v1/models", &Api::models, false},
      {"GET", "/v1/models/", &Api::models, false},
      {"POST", "/v1/completions", &Api::completions, false},
      {"POST", "/v1/chat/completions", &Api::chat_completions, false},
      {"POST", "/v1/responses", &Api::responses, false},
      {kAnyMethod, "/v1/responses/", &Api::one_response, false},
      {"POST", "/v1/embeddings", &Api::embeddings, false},
      {"POST", "/tokenize", &Api::tokenize, false},
      {"POST", "/detokenize", &Api::detokenize, false},
      {"GET", "/metrics", &Api::metrics_text, false},
      {"GET", "/health", &Api::health, true},
      {"GET", "/ready", &Api::ready, true},
      {"GET", "/version", &Api::version, true},
  };
  return kRoutes;
}

std::shared_ptr<Reply> Api::refuse_method(const std::string& path, const std::string& allowed) {
  const ApiError error{.status = 405, .message = fmt::format("{} takes {} only", path, allowed)};
  HttpHead head = head_of(error);
  head.headers.emplace_back("Allow", allowed);
  return make_reply(std::move(head), to_json(error));
}

const Api::Route* Api::find_route(const std::string& path) {
  const auto route = std::ranges::find_if(routes(), [&](const Route& one) {
    return std::string_view(one.path).ends_with('/') ? path.starts_with(one.path)
                                                     : path == one.path;
  });
  return route == routes().end() ? nullptr : &*route;
}

std::shared_ptr<Reply> Api::refuse_early(const HttpRequest& head) {
  const auto path = path_of(head.target);
  if (!path) return make_reply(ApiError{.message = "the path has an escape that is malformed"});
  // Whoever asks for the head is answered like all, and the socket keeps the body back.
  const std::string method = head.method == "HEAD" ? "GET" : head.method;
  if (find_page_file(*path)) return method == "GET" ? nullptr : refuse_method(*path, "GET, HEAD");
  const Route* route = find_route(*path);
  if (!route) {
    return make_reply(ApiError{.status = 404, .message = "there is nothing at this path"});
  }
  if (!route->is_open) {
    if (const auto error = check_key(head)) return make_reply(*error);
  }
  if (route->method == kAnyMethod || method == route->method) return nullptr;
  return refuse_method(route->path, route->method == std::string("GET") ? "GET, HEAD" : "POST");
}

std::shared_ptr<Reply> Api::handle(const HttpRequest& request) {
  if (auto refused = refuse_early(request)) return refused;
  const std::string path = *path_of(request.target);
  if (const PageFile* file = find_page_file(path)) return make_reply(*file);
  return (this->*find_route(path)->endpoint)(request);
}

std::optional<ApiError> Api::check_key(const HttpRequest& request) const {
  if (config_.api_key.empty()) return std::nullopt;
  std::string_view given = request.authorization;
  if (is_bearer(given.substr(0, kBearer.size()))) {
    given.remove_prefix(kBearer.size());
    while (given.starts_with(' ')) given.remove_prefix(1);
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
  const std::string path = path_of(request.target).value_or("");
  const Json model = {{"id", config_.model.name},
                      {"object", "model"},
                      {"created", started_s_},
                      {"owned_by", "gauntlet"},
                      {"max_model_len", service_.capacity()}};
  if (!path.starts_with(kOneModel)) {
    return make_reply({}, Json{{"object", "list"}, {"data", Json::array({model})}}.dump());
  }
  if (path.substr(kOneModel.size()) == config_.model.name) return make_reply({}, model.dump());
  return make_reply(
      ApiError{.status = 404,
               .message = fmt::format("this model is not served here; '{}' is", config_.model.name),
               .param = "model",
               .code = "model_not_found"});
}

std::shared_ptr<Reply> Api::embeddings(const HttpRequest&) {
  return make_reply(
      ApiError{.status = 404,
               .message = "there are no embeddings here: this model was trained to write text, and "
                          "what its layers hold on the way was never made to be compared",
               .code = "unsupported_endpoint"});
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

}  // namespace gauntlet::server::inline openai
