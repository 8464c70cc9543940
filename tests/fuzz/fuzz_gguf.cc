// Any bytes as a GGUF file: refused, or a model readable to the last row and metadata to the last
// key.
#include "model/files/gguf.h"
#include "model/tokens/token_list.h"
#include "tests/fuzz/read_all.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gauntlet;
  const model::ModelFile file = tests::as_file("fuzz.gguf", data, size);
  const auto gguf = model::GgufFile::parse(file);
  if (!gguf) return 0;
  for (const std::string& key : gguf->keys()) {
    gguf->integer(key);
    gguf->number(key);
    gguf->flag(key);
    gguf->text(key);
    gguf->integers(key);
    gguf->numbers(key);
    gguf->flags(key);
    gguf->texts(key);
  }
  if (const auto tokens = model::read_gguf_tokens(*gguf)) model::write_tokenizer_json(*tokens);
  const model::ModelFiles files("fuzz", {file});
  if (const auto weights = model::load_model(files)) tests::read_all(*weights);
  return 0;
}
