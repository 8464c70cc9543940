// For tests of the endpoints: a small model's shape, and a reply read to its end by stepping the
// engine.
#pragma once
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "engine/serving/service.h"
#include "engine/tiny_tokenizer.h"
#include "server/http/http.h"
#include "server/openai/fields.h"

namespace gauntlet::server::inline openai {

struct Answered {
  int status = 0;
  std::string body;
  Json json() const { return Json::parse(body); }
};

inline Answered read_answer(Reply& reply, engine::Service& service) {
  Answered answered;
  for (int i = 0; i < 10000; ++i) {
    while (auto piece = reply.take()) {
      if (piece->head) answered.status = piece->head->status;
      answered.body += piece->body;
      if (piece->is_last) return answered;
    }
    service.step();
  }
  ADD_FAILURE() << "the reply never ended";
  return answered;
}

inline std::int32_t tiny_special(const char* text) {
  return *engine::tiny_tokenizer().special(text);
}

inline model::ModelConfig tiny_config() {
  model::ModelConfig config;
  config.name = "tiny";
  config.vocab = engine::tiny_tokenizer().vocab_size();
  config.max_positions = 2000;
  config.eos_ids = {tiny_special("<|return|>"), tiny_special("<|call|>")};
  return config;
}

}  // namespace gauntlet::server::inline openai
