// The commands that need the engine, the server or a model.
#include "cli/command.h"
#include "cli/ranks/rank_doctor.h"
#include "cli/serving/serve_doctor.h"

namespace gauntlet::cli {

void add_engine_commands(CLI::App& app, Context& context) {
  add_convert(app, context);
  add_generate(app, context);
  add_chat(app, context);
  add_perplexity(app, context);
  add_bench(app, context);
  add_analyze(app, context);
  add_serve(app, context);
  add_serve_doctor(app, context);
  add_rank_doctor(app, context);
  add_load(app, context);
  add_tokenize(app, context);
  add_mesh(app, context);
}

}  // namespace gauntlet::cli
