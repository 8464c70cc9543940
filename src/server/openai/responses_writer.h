// What a client of /v1/responses reads: output items made of deltas, as one object or as a stream
// of numbered events that tell how the object comes about.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "server/openai/generate/answer_writer.h"
#include "server/openai/responses_request.h"

namespace gauntlet::server::inline openai {

struct ResponseHead {
  Json response;   // the object before there is any output, in progress
  std::string id;  // its id without "resp_", which the items' ids are made of
  LogProbs log_probs = LogProbs::omitted;
  OpaqueReasoning opaque = OpaqueReasoning::omitted;
  Delivery delivery = Delivery::whole;
};

/// The object as it stands at the end; not called for one that fails.
using OnResponse = std::function<void(const Json& response)>;

class ResponsesWriter final : public AnswerWriter {
 public:
  ResponsesWriter(ResponseHead head, OnResponse on_done);

  void delta(int choice, const Delta& delta, std::string& out) override;
  std::string finish(int choice, const std::string& finish_word) override;
  std::string done(const Usage& usage) override;
  std::string failed(const ApiError& error) override;
  std::size_t unwritten_bytes() const override;

 private:
  enum class Kind { reasoning, message, call };

  void begin();
  /// Adds an event with the next number, and the fields of the item it is about.
  void event(const char* type, const Json& fields);
  void item_event(const char* type, const Json& fields);
  void open(Kind kind, const ToolCallDelta* call = nullptr);
  void close(const char* status);
  void add_text(Kind kind, const std::string& text, const std::vector<ShownLogProb>& log_probs);
  void add_call(const ToolCallDelta& call);
  Json part() const;
  Json item(const char* status) const;
  std::string take() { return std::exchange(out_, {}); }

  const ResponseHead head_;
  const OnResponse on_done_;
  Json response_;
  bool begun_ = false;
  bool was_cut_ = false;
  std::int64_t next_number_ = 0;
  std::string out_;

  // Of the item that is open:
  std::optional<Kind> kind_;
  std::string item_id_;
  std::string text_;  // or arguments
  std::string call_id_;
  std::string name_;
  Json log_probs_ = Json::array();
};

/// The output item that an id names, of the response that it is made of: "resp_..." and its place.
struct ItemPlace {
  std::string response_id;
  std::size_t index = 0;
};
std::optional<ItemPlace> item_place(const std::string& item_id);

}  // namespace gauntlet::server::inline openai
