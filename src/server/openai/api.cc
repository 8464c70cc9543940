#include "server/openai/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>

#include "core/build_info.h"
#include "server/http/wire/request_head.h"
#include "server/page.h"

namespace gauntlet::server::inline openai {
namespace {

std::uint64_t seed_of_chance() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

constexpr std::string_view kOneModel = "/v1/models/";
constexpr std::string_view kBearer = "bearer ";
/// Compiling a form may take as long as parsing so much.
constexpr std::size_t kFormBytes = 512 << 10;
constexpr std::string_view kFormWords[] = {"schema", "\"tools\"", "\"guided_",
                                           "\"structured_outputs\"", "\"json_object\""};

/// The name of a scheme is the same in small and in capital letters.
bool is_bearer(std::string_view scheme) {
  return std::ranges::equal(scheme, kBearer, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b;
  });
}

bool is_listed(const std::string& method, const std::string& methods) {
  return fmt::format(", {},", methods).find(fmt::format(", {},", method)) != std::string::npos;
}

/// A pattern is the path, its beginning where it ends in a slash, or has a star for one part of it.
bool is_at(std::string_view path, std::string_view pattern) {
  if (pattern.ends_with('/')) return path.starts_with(pattern);
  const std::size_t star = pattern.find('*');
  if (star == pattern.npos) return path == pattern;
  const std::string_view before = pattern.substr(0, star);
  const std::string_view after = pattern.substr(star + 1);
  if (!path.starts_with(before) || !path.ends_with(after)) return false;
  if (path.size() <= before.size() + after.size()) return false;
  path.remove_prefix(before.size());
  path.remove_suffix(after.size());
  return path.find('/') == path.npos;
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
  using enum Access;
  using enum Admission::Work;
  static const std::vector<Route> kRoutes = {
      {"GET, HEAD", "/v1/models", &Api::models, with_key, quick},
      {"GET, HEAD", "/v1/models/", &Api::models, with_key, quick},
      {"POST", "/v1/completions", &Api::completions, with_key, long_},
      {"POST", "/v1/chat/completions", &Api::chat_completions, with_key, long_},
      {"POST", "/v1/responses", &Api::responses, with_key, long_},
      {"GET, HEAD, DELETE", "/v1/responses/*", &Api::one_response, with_key, long_},
      {"POST", "/v1/responses/*/cancel", &Api::cancel_response, with_key, long_},
      {"POST", "/v1/embeddings", &Api::embeddings, with_key, quick},
      {"POST", "/tokenize", &Api::tokenize, with_key, long_},
      {"POST", "/detokenize", &Api::detokenize, with_key, long_},
      {"GET, HEAD", "/metrics", &Api::metrics_text, with_key, long_},
      {"GET, HEAD", "/health", &Api::health, open, quick},
      {"GET, HEAD", "/ready", &Api::ready, open, quick},
      {"GET, HEAD", "/version", &Api::version, open, quick},
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
  const auto route =
      std::ranges::find_if(routes(), [&](const Route& one) { return is_at(path, one.path); });
  return route == routes().end() ? nullptr : &*route;
}

Admission Api::admit(const HttpRequest& head) {
  const auto refuse = [](const ApiError& error) { return Admission{.refusal = make_reply(error)}; };
  const auto path = path_of(head.target);
  if (!path) return refuse({.message = "the path has an escape that is malformed"});
  // Whoever asks for the head is answered like all, and the socket keeps the body back.
  if (find_page_file(*path)) {
    constexpr const char* kMethods = "GET, HEAD";
    if (is_listed(head.method, kMethods)) return {.work = Admission::Work::quick};
    return {.refusal = refuse_method(*path, kMethods)};
  }
  const Route* route = find_route(*path);
  if (!route) return refuse({.status = 404, .message = "there is nothing at this path"});
  Admission admission{.work = route->work};
  if (route->access == Access::with_key) {
    const auto account = account_of(head);
    if (!account) return refuse(account.error());
    admission.account = account->name;
    admission.share = account->share;
  }
  if (!is_listed(head.method, route->methods)) {
    admission.refusal = refuse_method(route->path, route->methods);
  }
  return admission;
}

std::size_t Api::weight(const HttpRequest& request) {
  const std::string_view body = request.body;
  if (body.size() >= kFormBytes) return body.size();
  const bool has_form = std::ranges::any_of(
      kFormWords, [&](std::string_view word) { return body.find(word) != body.npos; });
  return body.size() + (has_form ? kFormBytes : 0);
}

std::shared_ptr<Reply> Api::handle(const HttpRequest& request) {
  if (Admission admission = admit(request); admission.refusal) return admission.refusal;
  const std::string path = *path_of(request.target);
  if (const PageFile* file = find_page_file(path)) return make_reply(*file);
  const Route& route = *find_route(path);
  Asked asked{.request = request, .account = {}};
  if (route.access == Access::with_key) {
    // Keys may have changed since it was admitted.
    auto account = account_of(request);
    if (!account) return make_reply(account.error());
    asked.account = std::move(*account);
  }
  metrics_.accounts.add(asked.account.name, {.requests = 1});
  return (this->*route.endpoint)(asked);
}

ApiResult<Account> Api::account_of(const HttpRequest& request) const {
  if (!config_.keys) return Account{};
  std::string_view given = request.authorization;
  if (is_bearer(given.substr(0, kBearer.size()))) {
    given.remove_prefix(kBearer.size());
    while (given.starts_with(' ')) given.remove_prefix(1);
    const auto keys = config_.keys->keys();
    if (const Account* account = keys->find(given)) return *account;
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

std::shared_ptr<Reply> Api::models(const Asked& asked) {
  const std::string path = path_of(asked.request.target).value_or("");
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

std::shared_ptr<Reply> Api::embeddings(const Asked&) {
  return make_reply(
      ApiError{.status = 404,
               .message = "there are no embeddings here: this model was trained to write text, and "
                          "what its layers hold on the way was never made to be compared",
               .code = "unsupported_endpoint"});
}

std::shared_ptr<Reply> Api::health(const Asked&) {
  if (state_.load() == State::failed) return make_reply(*check_ready());
  return make_reply({}, R"({"status":"ok"})");
}

std::shared_ptr<Reply> Api::ready(const Asked&) {
  if (const auto error = check_ready()) return make_reply(*error);
  return make_reply({}, R"({"status":"ready"})");
}

std::shared_ptr<Reply> Api::version(const Asked&) {
  const BuildInfo build = build_info();
  return make_reply({}, Json{{"version", build.version}, {"commit", build.commit}}.dump());
}

std::shared_ptr<Reply> Api::metrics_text(const Asked&) {
  MetricsView view{.server = metrics_,
                   .model = config_.model.name,
                   .stats = service_.stats(),
                   .num_experts = service_.num_experts(),
                   .expert_tokens = service_.expert_tokens(),
                   .gpus = {}};
  if (config_.gpus) view.gpus = config_.gpus->latest();
  if (config_.ranks) view.ranks = config_.ranks();
  return make_reply({.content_type = "text/plain; version=0.0.4; charset=utf-8"},
                    render_metrics(view));
}

}  // namespace gauntlet::server::inline openai
