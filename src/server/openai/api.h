// The endpoints: who may ask what, and which parser, service and writer answer it. No sockets, so
// tests step the engine themselves.
#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "core/random.h"
#include "engine/serving/service.h"
#include "model/config.h"
#include "model/harmony/harmony.h"
#include "server/http/http.h"
#include "server/metrics/metrics.h"
#include "server/openai/api_keys.h"
#include "server/openai/chat_request.h"
#include "server/openai/generate/generation_reply.h"
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
  const KeyRing* keys = nullptr;  // none: anyone may ask
  std::size_t max_pending = 1024;
  const ConstraintCompiler* constraints = nullptr;  // none: requests for a form are refused
  const GpuSampler* gpus = nullptr;                 // none: no metrics of GPUs
  RankCounts ranks = {};                            // none: the model is on one
  ResponseStoreLimits kept_responses = {};
};

class Api final : public Handler {
 public:
  /// All but the configuration outlive this. Without harmony's tokens there are no chats.
  Api(ApiConfig config, engine::Service& service, const model::Tokenizer& tokenizer,
      ServerMetrics& metrics);

  /// By path, key and method.
  Admission admit(const HttpRequest& head) override;
  /// What has a form to compile is as heavy as a large body.
  std::size_t weight(const HttpRequest& request) override;
  std::shared_ptr<Reply> handle(const HttpRequest& request) override;

  enum class State { ready, draining, failed };
  /// From any thread. Only a server that is ready takes work.
  void set_state(State state) { state_.store(state); }

 private:
  using Ids = std::vector<std::int32_t>;
  using Headers = std::vector<std::pair<std::string, std::string>>;
  enum class AnswerVolume {
    large,  // written as it comes
    small,  // its end repeats all of it as one tree, even of a stream
  };
  struct Asked {
    const HttpRequest& request;
    Account account;
    engine::Caller caller() const { return {.account = account.id, .share = account.share}; }
  };
  using Endpoint = std::shared_ptr<Reply> (Api::*)(const Asked&);
  enum class Access { open, with_key };
  struct Route {
    const char* methods;  // as Allow lists them
    const char* path;     // one that ends in a slash is the beginning of many; a star is any id
    Endpoint endpoint;
    Access access;
    Admission::Work work;
  };
  static const std::vector<Route>& routes();
  static const Route* find_route(const std::string& path);
  static std::shared_ptr<Reply> refuse_method(const std::string& path, const std::string& allowed);

  std::shared_ptr<Reply> models(const Asked& asked);
  std::shared_ptr<Reply> completions(const Asked& asked);
  std::shared_ptr<Reply> chat_completions(const Asked& asked);
  std::shared_ptr<Reply> responses(const Asked& asked);
  std::shared_ptr<Reply> one_response(const Asked& asked);
  std::shared_ptr<Reply> cancel_response(const Asked& asked);
  std::shared_ptr<Reply> embeddings(const Asked& asked);
  std::shared_ptr<Reply> tokenize(const Asked& asked);
  std::shared_ptr<Reply> detokenize(const Asked& asked);
  std::shared_ptr<Reply> health(const Asked& asked);
  std::shared_ptr<Reply> ready(const Asked& asked);
  std::shared_ptr<Reply> version(const Asked& asked);
  std::shared_ptr<Reply> metrics_text(const Asked& asked);

  /// Whose key was sent, or everybody where there are none.
  ApiResult<Account> account_of(const HttpRequest& request) const;
  std::optional<ApiError> check_ready() const;
  RequestScope scope() const { return {.model = config_.model.name, .vocab = config_.model.vocab}; }
  Ids encode(const std::string& text) const;
  ApiResult<Ids> chat_ids(const ChatRequest& request) const;
  /// What an endpoint calls the fields that a conversation may be refused for, and what its answers
  /// may hold.
  struct FieldNames {
    const char* input = "messages";
    const char* format = "response_format";
    const char* max_tokens = "max_tokens";
    AnswerVolume volume = AnswerVolume::large;
  };
  /// All but the writer.
  ApiResult<GenerationPlan> chat_plan(const Asked& asked, const ChatRequest& request,
                                      const FieldNames& names);
  /// An output item of a response that is kept, as JSON.
  std::optional<std::string> kept_item(const Account& account, const std::string& item_id) const;
  /// A prompt's request to the service; `param` is what its length is blamed on.
  ApiResult<engine::ServiceRequest> service_request(Ids prompt, const GenerationParams& params,
                                                    const std::string& param) const;
  /// What can never be served, or would make a whole answer larger than this server builds.
  std::optional<ApiError> check_volume(const Asked& asked, std::size_t num_prompts,
                                       const GenerationParams& params, AnswerVolume volume) const;
  /// How many tokens each choice of an answer can have.
  static std::int64_t max_answer_tokens(std::size_t num_prompts, const GenerationParams& params,
                                        AnswerVolume volume);
  /// Holds the request's output to the form that was asked for, if one was; holds the headers that
  /// say what of it is not enforced.
  ApiResult<Headers> constrain(const std::optional<OutputConstraint>& constraint,
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
