// What an answer must look like, and who turns that into masks over tokens. The server knows only
// this interface.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/expected.h"
#include "model/harmony.h"

namespace gauntlet::server {

enum class OutputForm {
  json_object,  // any object
  json_schema,  // what a schema describes
  tool_call,    // a call of one of the functions
};

struct OutputConstraint {
  OutputForm form = OutputForm::json_object;
  std::string schema;                          // of json_schema
  std::vector<model::ToolFunction> functions;  // of tool_call
};

/// As engine::ServiceRequest has it.
using TokenMask = std::function<std::vector<std::uint32_t>(std::span<const std::int32_t> output)>;

class ConstraintCompiler {
 public:
  virtual ~ConstraintCompiler() = default;
  /// For an assistant's turn in harmony, header included. An error is the request's fault and says
  /// what is not supported. From any thread.
  virtual Expected<TokenMask> compile(const OutputConstraint& constraint) const = 0;
};

}  // namespace gauntlet::server
