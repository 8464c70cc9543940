// The small files of a Hugging Face folder, written from a model's shape.
#pragma once
#include <string>

#include "model/config.h"

namespace gauntlet::model::inline files {

enum class ExpertFormat { mxfp4, plain };

std::string config_text(const ModelConfig& config, ExpertFormat experts);
std::string generation_text(const ModelConfig& config);
std::string tokenizer_config_text(const ModelConfig& config);

}  // namespace gauntlet::model::inline files
