// A reply whose tokens are still being made: the engine's thread decodes them into a queue, and
// whoever reads the reply writes them out. A reader whose socket is full while the queue grows
// loses its request, and never holds up the engine.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/serving/service.h"
#include "server/http/http.h"
#include "server/metrics/metrics.h"
#include "server/openai/generate/answer_writer.h"

namespace gauntlet::server::inline openai {

struct GenerationPlan {
  std::unique_ptr<AnswerWriter> writer;
  Delivery delivery = Delivery::whole;
  std::vector<engine::ServiceRequest> requests;  // one per prompt, each with as many choices
  std::function<std::unique_ptr<ChoiceDecoder>(int choice)> make_decoder;
  TokenIds token_ids = TokenIds::omitted;
  std::vector<std::pair<std::string, std::string>> headers;  // of the reply
  std::string account;             // whose tokens they are, in metrics; empty: nobody's
  std::size_t max_pending = 1024;  // deltas of a choice that wait for the reader of a stream
};

class GenerationReply final : public Reply, public std::enable_shared_from_this<GenerationReply> {
 public:
  /// Submits everything, or nothing. Service and metrics outlive the reply.
  static ApiResult<std::shared_ptr<GenerationReply>> start(engine::Service& service,
                                                           ServerMetrics& metrics,
                                                           GenerationPlan plan);

  /// From any thread: its choices end as cancelled, and whoever reads it is told.
  void cancel();

  void on_ready(std::function<void()> wake) override;
  std::optional<Piece> take() override;
  std::size_t effort() const override;
  void abandon() override;
  void reader_is_blocked() override;
  std::optional<ReplySummary> summary() const override;

 private:
  struct End {
    engine::FinishEvent event;
    std::string finish_word;
    std::int64_t reasoning_tokens = 0;
  };
  /// One per token, written by one core and read by another: what most tokens have is in one cache
  /// line, and the rest apart.
  struct Event {
    int choice = 0;
    std::string content;
    std::unique_ptr<Delta> more = nullptr;  // where there is more than that, all of it
    std::unique_ptr<const End> end = nullptr;

    /// Tokens, and what is shown beside them.
    std::size_t num_values() const;
  };
  static_assert(sizeof(Event) <= 64);
  struct Choice {  // of the engine's thread
    std::unique_ptr<ChoiceDecoder> decoder;
    double last_token_s = 0;
    bool begun = false;
  };

  GenerationReply(engine::Service& service, ServerMetrics& metrics, GenerationPlan& plan);

  void on_prompt(int choice, const engine::PromptEvent& event);
  engine::Verdict on_token(int choice, const engine::TokenEvent& event);
  void on_finish(int choice, const engine::FinishEvent& event);
  /// False when nobody can take it any more.
  bool push(Event&& event);
  static Event event_of(int choice, Delta&& delta);
  void write(Event&& event, std::string& out);
  void count(const End& end);
  /// Of what waits, as much as is written at a time: the next of `taken_`.
  std::span<Event> next_events();
  /// The next part of what is to be sent.
  Piece next_part();
  Piece fail(const ApiError& error, const std::string& out);

  engine::Service& service_;
  ServerMetrics& metrics_;
  const Delivery delivery_;
  const TokenIds token_ids_;
  const int choices_per_prompt_;
  const std::string account_;
  const std::size_t max_pending_;
  const double started_s_;
  std::vector<Choice> choices_;

  std::vector<engine::RequestId> ids_;  // as started

  // Of the reader:
  const std::unique_ptr<AnswerWriter> writer_;
  std::vector<std::pair<std::string, std::string>> headers_;
  Usage usage_;
  ReplySummary summary_;
  int num_ended_ = 0;
  bool head_sent_ = false;
  TextBlocks unsent_;
  Delta text_;                 // of an event that has nothing else
  std::vector<Event> taken_;   // what was pending; swapped with that, so that neither is made anew
  std::size_t num_taken_ = 0;  // of its events, written already

  mutable std::mutex mutex_;  // of all below
  std::function<void()> wake_;
  std::vector<Event> pending_;
  std::size_t num_pending_ = 0;  // with what is left of taken_; the next two count that, too
  std::size_t pending_values_ = 0;
  std::ptrdiff_t pending_ends_ = 0;
  std::optional<double> first_token_s_;
  bool overflowed_ = false;
  bool abandoned_ = false;
};

}  // namespace gauntlet::server::inline openai
