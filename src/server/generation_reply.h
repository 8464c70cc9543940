// A reply whose tokens are still being made: the engine's thread decodes them into a bounded queue,
// and whoever reads the reply writes them out. A reader that falls behind loses its request, and
// never holds up the engine.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "engine/service.h"
#include "server/answer_writer.h"
#include "server/http.h"
#include "server/metrics.h"

namespace gauntlet::server {

struct GenerationPlan {
  AnswerHead head;
  Delivery delivery = Delivery::whole;
  std::vector<engine::ServiceRequest> requests;  // one per prompt, each with as many choices
  std::function<std::unique_ptr<ChoiceDecoder>(int choice)> make_decoder;
  std::size_t max_pending = 1024;  // deltas of a choice that wait for the reader of a stream
};

class GenerationReply final : public Reply, public std::enable_shared_from_this<GenerationReply> {
 public:
  /// Submits everything, or nothing. Service and metrics outlive the reply.
  static ApiResult<std::shared_ptr<Reply>> start(engine::Service& service, ServerMetrics& metrics,
                                                 GenerationPlan plan);

  void on_ready(std::function<void()> wake) override;
  std::optional<Piece> take() override;
  void abandon() override;
  std::optional<ReplySummary> summary() const override;

 private:
  using Writer = std::variant<StreamWriter, WholeWriter>;
  struct Event {
    int choice = 0;
    Delta delta;
    std::optional<engine::FinishEvent> end;
    std::string finish_word;
  };
  struct Choice {  // of the engine's thread
    std::unique_ptr<ChoiceDecoder> decoder;
    double last_token_s = 0;
    bool begun = false;
  };

  GenerationReply(engine::Service& service, ServerMetrics& metrics, const GenerationPlan& plan);

  engine::Verdict on_token(int choice, const engine::TokenEvent& event);
  void on_finish(int choice, const engine::FinishEvent& event);
  /// False when nobody can take it any more.
  bool push(Event event);
  void write(const Event& event, std::string& out);
  void count(const engine::FinishEvent& end);
  Piece fail(const ApiError& error, const std::string& out);

  engine::Service& service_;
  ServerMetrics& metrics_;
  const Delivery delivery_;
  const int choices_per_prompt_;
  const std::size_t max_pending_;
  const double started_s_;
  std::vector<Choice> choices_;

  // Of the reader:
  std::vector<engine::RequestId> ids_;
  Writer writer_;
  Usage usage_;
  ReplySummary summary_;
  int num_ended_ = 0;
  bool head_sent_ = false;

  mutable std::mutex mutex_;  // of all below
  std::function<void()> wake_;
  std::deque<Event> pending_;
  std::optional<double> first_token_s_;
  bool overflowed_ = false;
  bool abandoned_ = false;
};

}  // namespace gauntlet::server
