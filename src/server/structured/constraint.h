// What an answer must look like, and who turns that into masks over tokens. The server knows only
// this interface.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/sampling/token_mask.h"
#include "model/harmony/harmony.h"
#include "server/http/api_error.h"

namespace gauntlet::server::inline structured {

enum class OutputForm {
  json_object,  // any object
  json_schema,  // what a schema describes
  regex,        // text that matches a regular expression, all of it
  choice,       // one of a few texts
  tool_call,    // a call of one of the functions
  free,         // anything, but for calls of the functions
};

/// What becomes of the parts of a schema that cannot be enforced: refused, or left out and said.
enum class Strictness { strict, lenient };

/// What the form is of.
enum class OutputFrame {
  text,  // the whole output
  turn,  // an assistant's turn in harmony, whose header it settles, too
};

/// A function whose arguments are held to its parameters.
struct HeldFunction {
  std::string name;
  std::string parameters;  // a JSON schema; empty: the function takes none
  Strictness strictness = Strictness::strict;
};

struct OutputConstraint {
  OutputForm form = OutputForm::json_object;
  std::string schema;                // of json_schema; of regex, the expression
  std::vector<std::string> choices;  // of choice
  Strictness strictness = Strictness::strict;
  std::string param = "response_format";  // what an error is blamed on
  std::vector<HeldFunction> functions;    // to call, or with others: that may be called instead
  OutputFrame frame = OutputFrame::turn;
  std::int64_t max_reasoning_tokens = 0;  // that a turn may begin with
};

using engine::TokenMask;

struct CompiledConstraint {
  TokenMask mask;                       // none: everything is allowed
  std::vector<std::string> unenforced;  // as in "not at /properties/a"
};

class ConstraintCompiler {
 public:
  virtual ~ConstraintCompiler() = default;
  /// An error says what of the request is not supported, and where. From any thread;
  /// the mask is for one at a time.
  virtual ApiResult<CompiledConstraint> compile(const OutputConstraint& constraint) const = 0;
};

}  // namespace gauntlet::server::inline structured
