#include "engine/measure/guessing.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "core/random.h"

namespace gauntlet::engine::inline measure {
namespace {

using Clock = std::chrono::steady_clock;

/// Prompts are computed whole each time, so that a head sees all of them.
ServiceConfig service_of(const Executor& executor, std::int64_t streams,
                         const Speculation& speculation) {
  return {.scheduler = {.prefix_caching = PrefixCaching::off,
                        .max_step_tokens = executor.max_batch_tokens(),
                        .max_running = streams,
                        .max_queue = streams},
          .speculation = speculation};
}

}  // namespace

GuessMeter::GuessMeter(Executor& executor, Guessers guessers, std::int64_t max_streams)
    : guessers_(std::move(guessers)),
      vocab_(executor.config().vocab),
      plain_(executor, service_of(executor, max_streams, {})),
      guessing_(executor, service_of(executor, max_streams, guessers_.speculation)) {}

std::vector<GuessMeter::Text> GuessMeter::random_prompts(const DecodeTest& test) {
  constexpr std::uint64_t kSeed = 0x2545F4914F6CDD1D;
  std::vector<Text> prompts(static_cast<std::size_t>(test.streams));
  for (Text& prompt : prompts) {
    for (std::int64_t i = 0; i < test.prompt_tokens; ++i) {
      const auto id = Random(kSeed).below(static_cast<std::uint64_t>(vocab_), num_drawn_++);
      prompt.push_back(static_cast<std::int32_t>(id));
    }
  }
  return prompts;
}

Expected<GuessMeter::Wave> GuessMeter::run(Service& service, const std::vector<Text>& prompts,
                                           std::int64_t output_tokens) {
  Wave wave{.texts = prompts};
  std::size_t num_begun = 0, num_ended = 0;
  Clock::time_point start;
  std::optional<std::string> fault;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::size_t prompt_tokens = prompts[i].size();
    RequestEvents events;
    events.on_token = [&wave, &num_begun, &start, &prompts, i,
                       prompt_tokens](const TokenEvent& event) {
      Text& text = wave.texts[i];
      text.push_back(event.token);
      if (text.size() == prompt_tokens + 1 && ++num_begun == prompts.size()) start = Clock::now();
      return Verdict::go_on;
    };
    events.on_finish = [&wave, &num_ended, &fault](const FinishEvent& event) {
      ++num_ended;
      wave.guessed.steps += event.speculation.steps;
      wave.guessed.drafted += event.speculation.drafted;
      wave.guessed.accepted += event.speculation.accepted;
      if (event.reason != FinishReason::length) fault = event.error;
    };
    const auto id = service.submit({.prompt = prompts[i],
                                    .max_tokens = output_tokens,
                                    .end_of_sequence = EndOfSequence::ignored},
                                   std::move(events));
    if (!id) return id.error();
  }
  while (num_ended < prompts.size()) service.step();
  wave.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (fault) return Error{"a stream failed: " + *fault};
  return wave;
}

Expected<GuessSample> GuessMeter::measure(const DecodeTest& test) {
  const std::vector<Text> prompts = random_prompts(test);
  auto plain = run(plain_, prompts, test.output_tokens);
  if (!plain) return plain.error();
  if (guessers_.oracle) guessers_.oracle->know(plain->texts);
  const auto guessed = run(guessing_, prompts, test.output_tokens);
  if (!guessed) return guessed.error();
  if (guessed->texts != plain->texts) {
    return Error{kOtherTokens, ErrorKind::check_failed};
  }
  if (const std::string why = guessing_.stats().draft_fault; !why.empty()) {
    return Error{"who guesses has failed: " + why};
  }
  return GuessSample{
      .plain_s = plain->seconds, .guessed_s = guessed->seconds, .guessed = guessed->guessed};
}

}  // namespace gauntlet::engine::inline measure
