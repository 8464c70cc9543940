// safetensors: eight bytes of length, a JSON header, then the tensors one behind the other.
#pragma once
#include "model/files/model_files.h"
#include "model/tensor.h"

namespace gauntlet::model::inline files {

/// Adds the tensors of one file. Refuses a header that lies: about its length, about a tensor's
/// size, with ranges that overlap or lie outside the file.
Expected<void> add_safetensors(const ModelFile& file, TensorTable& table);

/// The tensors of a folder: model.safetensors, or the shards its index names, or all there are.
Expected<TensorTable> read_safetensors(const ModelFiles& files);

}  // namespace gauntlet::model::inline files
