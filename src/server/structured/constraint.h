// What an answer must look like, and who turns that into masks over tokens. The server knows only
// this interface.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "model/harmony.h"
#include "server/http/api_error.h"

namespace gauntlet::server::inline structured {

enum class OutputForm {
  json_object,  // any object
  json_schema,  // what a schema describes
  tool_call,    // a call of one of the functions
};

/// What the form is of.
enum class OutputFrame {
  text,  // the whole output
  turn,  // an assistant's turn in harmony, whose header it settles, too
};

struct OutputConstraint {
  OutputForm form = OutputForm::json_object;
  std::string schema;                          // of json_schema
  std::vector<model::ToolFunction> functions;  // to call, or with JSON: that may be called instead
  OutputFrame frame = OutputFrame::turn;
  std::int64_t max_reasoning_tokens = 0;  // that a turn may begin with
};

/// As engine::ServiceRequest has it.
using TokenMask = std::function<std::vector<std::uint32_t>(std::span<const std::int32_t> output)>;

class ConstraintCompiler {
 public:
  virtual ~ConstraintCompiler() = default;
  /// An error says what of the request is not supported, and where. From any thread;
  /// the mask is for one at a time.
  virtual ApiResult<TokenMask> compile(const OutputConstraint& constraint) const = 0;
};

}  // namespace gauntlet::server::inline structured
