#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/os/files.h"
#include "model/files/folder_texts.h"
#include "model/files/model_writer.h"
#include "model/mxfp4.h"

namespace gauntlet::model::inline files {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

const char* name_of(TensorType type) {
  switch (type) {
    case TensorType::f16:
      return "F16";
    case TensorType::bf16:
      return "BF16";
    case TensorType::u8:
      return "U8";
    default:
      return "F32";
  }
}

bool are_mxfp4(const LayerWeights& layer) {
  const ExpertWeights& expert = layer.experts[0];
  return expert.gate.type == WeightType::mxfp4 && expert.up.type == WeightType::mxfp4 &&
         expert.down.type == WeightType::mxfp4;
}

/// The type that holds all of them exactly and takes least room.
TensorType common_type(const std::vector<const Matrix*>& views) {
  const auto all = [&](auto holds) { return std::all_of(views.begin(), views.end(), holds); };
  if (all([](const Matrix* view) { return view->type == WeightType::f16; })) {
    return TensorType::f16;
  }
  return all([](const Matrix* view) { return is_exact_in_bf16(*view); }) ? TensorType::bf16
                                                                         : TensorType::f32;
}

/// The tensors under Hugging Face's names.
class FolderPlan {
 public:
  explicit FolderPlan(const ModelWeights& weights) {
    matrix("model.embed_tokens.weight", weights.embedding);
    if (!weights.config.tied_embeddings) matrix("lm_head.weight", weights.lm_head);
    vector("model.norm.weight", weights.final_norm);
    for (std::size_t i = 0; i < weights.layers.size(); ++i) {
      layer(fmt::format("model.layers.{}.", i), weights.layers[i]);
    }
  }
  const std::vector<PlannedTensor>& tensors() const { return tensors_; }

 private:
  void matrix(const std::string& name, const Matrix& view) {
    const TensorType type = common_type({&view});
    const auto write = [type, &view](FileWriter& file) {
      for (std::int64_t row = 0; row < view.rows && !file.failed(); ++row) {
        write_row(view, row, type, file);
      }
    };
    tensors_.push_back(
        {.name = name, .type = type, .shape = {view.rows, view.cols}, .write = write});
  }

  void vector(const std::string& name, const Vector& values) {
    numbers(name, {static_cast<std::int64_t>(values.size())}, values);
  }

  void numbers(const std::string& name, const std::vector<std::int64_t>& shape, Vector values) {
    const TensorType type = is_exact_in_bf16(values) ? TensorType::bf16 : TensorType::f32;
    const auto write = [type, values = std::move(values)](FileWriter& file) {
      write_values(values.data(), values.size(), type, file);
    };
    tensors_.push_back({.name = name, .type = type, .shape = shape, .write = write});
  }

  void layer(const std::string& at, const LayerWeights& layer) {
    vector(at + "input_layernorm.weight", layer.attention_norm);
    vector(at + "post_attention_layernorm.weight", layer.mlp_norm);
    const std::string attention = at + "self_attn.";
    matrix(attention + "q_proj.weight", layer.q);
    vector(attention + "q_proj.bias", layer.q_bias);
    matrix(attention + "k_proj.weight", layer.k);
    vector(attention + "k_proj.bias", layer.k_bias);
    matrix(attention + "v_proj.weight", layer.v);
    vector(attention + "v_proj.bias", layer.v_bias);
    matrix(attention + "o_proj.weight", layer.o);
    vector(attention + "o_proj.bias", layer.o_bias);
    vector(attention + "sinks", layer.sinks);
    matrix(at + "mlp.router.weight", layer.router);
    vector(at + "mlp.router.bias", layer.router_bias);
    biases(at + "mlp.experts.", layer.experts);
    if (are_mxfp4(layer)) {
      mxfp4(at + "mlp.experts.", layer.experts);
    } else {
      transposed(at + "mlp.experts.", layer.experts);
    }
  }

  void biases(const std::string& at, const std::vector<ExpertWeights>& experts) {
    Vector gate_up, down;
    for (const ExpertWeights& expert : experts) {
      for (std::size_t i = 0; i < expert.gate_bias.size(); ++i) {
        gate_up.push_back(expert.gate_bias[i]);
        gate_up.push_back(expert.up_bias[i]);
      }
      down.insert(down.end(), expert.down_bias.begin(), expert.down_bias.end());
    }
    const auto count = static_cast<std::int64_t>(experts.size());
    const std::int64_t intermediate = experts[0].gate.rows, hidden = experts[0].down.rows;
    numbers(at + "gate_up_proj_bias", {count, 2 * intermediate}, std::move(gate_up));
    numbers(at + "down_proj_bias", {count, hidden}, std::move(down));
  }

  enum class Half { nibbles, scales };

  /// Rows of the matrices in turn, of every expert: their nibbles or their scales.
  void mxfp4_half(const std::string& name, const std::vector<ExpertWeights>& experts,
                  const std::vector<Matrix ExpertWeights::*>& parts, Half half) {
    const Matrix& first = experts[0].*parts[0];
    const std::int64_t groups = first.cols / kMxfp4Block;
    std::vector<std::int64_t> shape = {static_cast<std::int64_t>(experts.size()),
                                       first.rows * static_cast<std::int64_t>(parts.size()),
                                       groups};
    if (half == Half::nibbles) shape.push_back(kMxfp4NibbleBytes);
    const auto write = [&experts, parts, half, groups](FileWriter& file) {
      std::vector<std::uint8_t> nibbles(static_cast<std::size_t>(groups * kMxfp4NibbleBytes));
      std::vector<std::uint8_t> scales(static_cast<std::size_t>(groups));
      for (const ExpertWeights& expert : experts) {
        for (std::int64_t row = 0; row < (expert.*parts[0]).rows && !file.failed(); ++row) {
          for (const auto part : parts) {
            (expert.*part).read_row_mxfp4(row, nibbles.data(), scales.data());
            file.write(std::as_bytes(std::span(half == Half::nibbles ? nibbles : scales)));
          }
        }
      }
    };
    tensors_.push_back({.name = name, .type = TensorType::u8, .shape = shape, .write = write});
  }

  void mxfp4(const std::string& at, const std::vector<ExpertWeights>& experts) {
    const std::vector gate_up = {&ExpertWeights::gate, &ExpertWeights::up};
    const std::vector down = {&ExpertWeights::down};
    mxfp4_half(at + "gate_up_proj_blocks", experts, gate_up, Half::nibbles);
    mxfp4_half(at + "gate_up_proj_scales", experts, gate_up, Half::scales);
    mxfp4_half(at + "down_proj_blocks", experts, down, Half::nibbles);
    mxfp4_half(at + "down_proj_scales", experts, down, Half::scales);
  }

  /// Inputs before outputs, which are the rows of the matrices in turn.
  void transposed_part(const std::string& name, const std::vector<ExpertWeights>& experts,
                       const std::vector<Matrix ExpertWeights::*>& parts, TensorType type) {
    const Matrix& first = experts[0].*parts[0];
    const auto step = static_cast<std::int64_t>(parts.size());
    const std::int64_t inputs = first.cols, outputs = first.rows * step;
    const auto write = [=, &experts](FileWriter& file) {
      Vector row(static_cast<std::size_t>(inputs));
      Vector turned(static_cast<std::size_t>(inputs * outputs));
      for (const ExpertWeights& expert : experts) {
        for (std::int64_t output = 0; output < outputs && !file.failed(); ++output) {
          (expert.*parts[static_cast<std::size_t>(output % step)])
              .read_row(output / step, row.data());
          for (std::int64_t input = 0; input < inputs; ++input) {
            turned[static_cast<std::size_t>(input * outputs + output)] =
                row[static_cast<std::size_t>(input)];
          }
        }
        write_values(turned.data(), turned.size(), type, file);
      }
    };
    tensors_.push_back({.name = name,
                        .type = type,
                        .shape = {static_cast<std::int64_t>(experts.size()), inputs, outputs},
                        .write = write});
  }

  void transposed(const std::string& at, const std::vector<ExpertWeights>& experts) {
    std::vector<const Matrix*> views;
    for (const ExpertWeights& expert : experts) {
      for (const Matrix* view : {&expert.gate, &expert.up, &expert.down}) views.push_back(view);
    }
    const TensorType type =
        common_type(views) == TensorType::bf16 ? TensorType::bf16 : TensorType::f32;
    transposed_part(at + "gate_up_proj", experts, {&ExpertWeights::gate, &ExpertWeights::up}, type);
    transposed_part(at + "down_proj", experts, {&ExpertWeights::down}, type);
  }

  std::vector<PlannedTensor> tensors_;
};

Expected<void> write_safetensors(const FolderPlan& plan, const fs::path& path,
                                 const WriteProgress& progress) {
  ordered_json header = {{"__metadata__", {{"format", "pt"}}}};
  std::uint64_t offset = 0;
  for (const PlannedTensor& tensor : plan.tensors()) {
    const std::uint64_t end = offset + tensor.bytes();
    header[tensor.name] = {
        {"dtype", name_of(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  auto file = FileWriter::create(path);
  if (!file) return file.error();
  const std::uint64_t size = text.size();
  file->write(std::as_bytes(std::span(&size, 1)));
  file->write(text);
  write_tensors(plan.tensors(), 1, *file, progress);
  return file->finish();
}

}  // namespace

Expected<void> write_folder(const ModelWeights& weights,
                            const std::optional<std::string>& tokenizer_json,
                            const fs::path& folder, const WriteProgress& progress) {
  if (const auto made = make_folders(folder); !made) return made.error();
  const auto written =
      write_safetensors(FolderPlan(weights), folder / "model.safetensors", progress);
  if (!written) return written.error();
  const ExpertFormat experts =
      are_mxfp4(weights.layers[0]) ? ExpertFormat::mxfp4 : ExpertFormat::plain;
  std::vector<std::pair<const char*, std::string>> files = {
      {"generation_config.json", generation_text(weights.config)}};
  if (tokenizer_json) {
    files.emplace_back("tokenizer.json", *tokenizer_json);
    files.emplace_back("tokenizer_config.json", tokenizer_config_text(weights.config));
  }
  files.emplace_back("config.json", config_text(weights.config, experts));
  for (const auto& [name, text] : files) {
    if (const auto saved = atomic_write_file(folder / name, text); !saved) return saved.error();
  }
  return {};
}

}  // namespace gauntlet::model::inline files
