// The endpoints: who may ask what, and which parser, service and writer answer it. No sockets, so
// tests step the engine themselves.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "core/random.h"
#include "engine/service.h"
#include "model/config.h"
#include "model/harmony.h"
#include "server/http/http.h"
#include "server/metrics/metrics.h"
#include "server/openai/chat_request.h"
#include "server/openai/generation_reply.h"
#include "server/openai/response_store.h"

namespace gauntlet::server::inline openai {

/// As the `created` fields of answers count.
std::int64_t unix_now_s();

struct ServedModel {
  std::string name;
  std::int64_t vocab = 0;
  std::optional<std::int32_t> bos;  // put before a text; none: nothing is
};

struct ApiConfig {
  ServedModel model;
  std::string api_key;  // empty: anyone may ask
  std::size_t max_pending = 1024;
  const ConstraintCompiler* constraints = nullptr;  // none: requests for a form are refused
  const GpuSampler* gpus = nullptr;                 // none: no metrics of GPUs
  ResponseStoreLimits kept_responses = {};
};

class Api final : public Handler {
 public:
  /// All but the configuration outlive this. Without harmony's tokens there are no chats.
  Api(ApiConfig config, engine::Service& service, const model::Tokenizer& tokenizer,
      ServerMetrics& metrics);

  /// By path, key and method.
  std::shared_ptr<Reply> refuse_early(const HttpRequest& head) override;
  std::shared_ptr<Reply> handle(const HttpRequest& request) override;

  enum class State { ready, draining, failed };
  /// From any thread. Only a server that is ready takes work.
  void set_state(State state) { state_.store(state); }

 private:
  using Ids = std::vector<std::int32_t>;
  using Endpoint = std::shared_ptr<Reply> (Api::*)(const HttpRequest&);
  struct Route {
    const char* method;  // kAnyMethod: the endpoint looks at it
    const char* path;    // one that ends in a slash is the beginning of many
    Endpoint endpoint;
    bool is_open;  // needs no key
  };
  static constexpr const char* kAnyMethod = "*";
  static const std::vector<Route>& routes();
  static const Route* find_route(const std::string& path);
  static std::shared_ptr<Reply> refuse_method(const std::string& path, const std::string& allowed);

  std::shared_ptr<Reply> models(const HttpRequest& request);
  std::shared_ptr<Reply> completions(const HttpRequest& request);
  std::shared_ptr<Reply> chat_completions(const HttpRequest& request);
  std::shared_ptr<Reply> responses(const HttpRequest& request);
  std::shared_ptr<Reply> one_response(const HttpRequest& request);
  std::shared_ptr<Reply> cancel_response(const std::string& id);
  std::shared_ptr<Reply> embeddings(const HttpRequest& request);
  std::shared_ptr<Reply> tokenize(const HttpRequest& request);
  std::shared_ptr<Reply> detokenize(const HttpRequest& request);
  std::shared_ptr<Reply> health(const HttpRequest& request);
  std::shared_ptr<Reply> ready(const HttpRequest& request);
  std::shared_ptr<Reply> version(const HttpRequest& request);
  std::shared_ptr<Reply> metrics_text(const HttpRequest& request);

  std::optional<ApiError> check_key(const HttpRequest& request) const;
  std::optional<ApiError> check_ready() const;
  RequestScope scope() const { return {.model = config_.model.name, .vocab = config_.model.vocab}; }
  Ids encode(const std::string& text) const;
  ApiResult<Ids> chat_ids(const ChatRequest& request) const;
  /// What an endpoint calls the fields that a conversation may be refused for.
  struct FieldNames {
    const char* input = "messages";
    const char* format = "response_format";
    const char* max_tokens = "max_tokens";
  };
  /// All but the writer.
  ApiResult<GenerationPlan> chat_plan(const ChatRequest& request, const FieldNames& names);
  /// An output item of a response that is kept, as JSON.
  std::optional<std::string> kept_item(const std::string& item_id) const;
  /// A prompt's request to the service; `param` is what its length is blamed on.
  ApiResult<engine::ServiceRequest> service_request(Ids prompt, const GenerationParams& params,
                                                    const std::string& param) const;
  /// What can never be served, or would make a whole answer larger than this server builds.
  std::optional<ApiError> check_volume(std::size_t num_prompts,
                                       const GenerationParams& params) const;
  /// Holds the request's output to the form that was asked for, if one was.
  std::optional<ApiError> constrain(const std::optional<OutputConstraint>& constraint,
                                    engine::ServiceRequest& request) const;
  std::uint64_t chance() { return Random(chance_).bits(num_drawn_.fetch_add(1)); }

  const ApiConfig config_;
  engine::Service& service_;
  const model::Tokenizer& tokenizer_;
  const Expected<model::Harmony> harmony_;
  ServerMetrics& metrics_;
  const std::shared_ptr<ResponseStore> responses_;  // replies that are being made hold it, too
  const std::int64_t started_s_;
  const std::uint64_t chance_;
  std::atomic<std::uint64_t> num_drawn_{0};
  std::atomic<State> state_{State::ready};
};

}  // namespace gauntlet::server::inline openai
