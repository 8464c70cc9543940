// gauntlet tokenize: text to token ids, and back.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "core/os/files.h"
#include "model/tokens/load_tokenizer.h"

namespace gauntlet::cli {
namespace {

using model::SpecialTokens;
using model::Tokenizer;
using Ids = std::vector<std::int32_t>;

using Clock = std::chrono::steady_clock;

struct TokenizeOptions {
  std::string model = "gauntlet-tiny";
  std::optional<std::string> text;
  std::string file = "-";
  std::optional<std::string> decode;
  SpecialTokens specials = SpecialTokens::as_text;
  bool count = false;
  bool pieces = false;
  bool lines_json = false;
  Format format = Format::text;
};

Expected<Tokenizer> load_tokenizer(const std::string& model) {
  const auto files = model::open_model(model);
  if (!files) return files.error();
  return model::load_tokenizer(*files);
}

Expected<std::string> read_input(const TokenizeOptions& options) {
  if (options.text) return *options.text;
  if (options.file != "-") return read_file(options.file);
  std::string text;
  std::array<char, 1 << 16> buffer;
  while (const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), stdin)) {
    text.append(buffer.data(), size);
  }
  return text;
}

Expected<Ids> parse_ids(std::string_view text) {
  constexpr std::string_view kBetween = ", \t\r\n";
  Ids ids;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kBetween), text.size()));
    if (text.empty()) return ids;
    const std::string_view word = text.substr(0, text.find_first_of(kBetween));
    std::int32_t id = 0;
    const auto [end, wrong] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (wrong != std::errc() || end != word.data() + word.size() || id < 0) {
      return Error{fmt::format("--decode takes ids as in 1,2,3; '{}' is none", word),
                   ErrorKind::wrong_use};
    }
    ids.push_back(id);
    text.remove_prefix(word.size());
  }
}

/// For JSON and terminals: whole UTF-8, with U+FFFD for what is none.
std::string valid_text(std::string_view bytes) {
  model::Utf8Holder holder;
  std::string text = holder.push(bytes);
  return text + holder.finish();
}

std::string to_hex(std::string_view bytes) {
  std::string hex;
  for (const char c : bytes) {
    fmt::format_to(std::back_inserter(hex), "{:02x}", static_cast<unsigned char>(c));
  }
  return hex;
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 2 <= hex.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
    bytes += static_cast<char>(value);
  }
  return bytes;
}

void write(std::string_view bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stdout); }

int encode(const Tokenizer& tokenizer, const TokenizeOptions& options, double load_ms) {
  const auto text = read_input(options);
  if (!text) return report_error(text.error());
  const bool as_json = options.format == Format::json;
  std::size_t count = 0;
  const auto start = Clock::now();
  if (as_json && !options.count) write(options.pieces ? "{\"tokens\": [" : "{\"ids\": [");
  tokenizer.encode(*text, options.specials, [&](std::span<const std::int32_t> ids) {
    std::string out;
    for (const std::int32_t id : ids) {
      const bool first = count++ == 0;
      if (options.count) continue;
      if (!options.pieces) {
        fmt::format_to(std::back_inserter(out), "{}{}", first ? "" : ",", id);
        continue;
      }
      const std::string piece = nlohmann::json(valid_text(tokenizer.token_bytes(id))).dump();
      const auto* form = as_json ? "{}{{\"id\": {}, \"text\": {}}}" : "{}{:>7}  {}\n";
      fmt::format_to(std::back_inserter(out), fmt::runtime(form), first || !as_json ? "" : ",\n  ",
                     id, piece);
    }
    write(out);
  });
  if (as_json && options.count) {
    const double encode_ms = milliseconds_since(start);
    fmt::print("{}\n", nlohmann::json{{"count", count},
                                      {"bytes", text->size()},
                                      {"timing", {{"load_ms", load_ms}, {"encode_ms", encode_ms}}}}
                           .dump());
  } else if (as_json) {
    fmt::print("], \"count\": {}}}\n", count);
  } else if (options.count) {
    fmt::print("{}\n", count);
  } else if (!options.pieces) {
    write("\n");
  }
  return 0;
}

int decode(const Tokenizer& tokenizer, const TokenizeOptions& options) {
  const auto ids = parse_ids(*options.decode);
  if (!ids) return report_error(ids.error());
  for (const std::int32_t id : *ids) {
    if (tokenizer.token_bytes(id).empty()) {
      return report_error({fmt::format("{} has no token {}; its ids end at {}", options.model, id,
                                       tokenizer.vocab_size() - 1),
                           ErrorKind::wrong_use});
    }
  }
  const std::string bytes = tokenizer.decode(*ids);
  if (options.format == Format::json) {
    fmt::print("{}\n", nlohmann::json{{"count", ids->size()}, {"text", valid_text(bytes)}}.dump());
  } else {
    write(bytes);
  }
  return 0;
}

/// {"text": T} or {"hex": BYTES}, with "special": true -> {"ids": [...]}; {"ids": [...]} ->
/// {"text", "hex"}.
nlohmann::json answer(const Tokenizer& tokenizer, const nlohmann::json& request) {
  if (request.contains("ids")) {
    const std::string bytes = tokenizer.decode(request["ids"].get<Ids>());
    return {{"text", valid_text(bytes)}, {"hex", to_hex(bytes)}};
  }
  const std::string text = request.contains("hex")
                               ? from_hex(request["hex"].get_ref<const std::string&>())
                               : request.at("text").get<std::string>();
  return {
      {"ids", tokenizer.encode(text, request.value("special", false) ? SpecialTokens::as_special
                                                                     : SpecialTokens::as_text)}};
}

int serve_lines(const Tokenizer& tokenizer) {
  std::unique_ptr<char, decltype(&std::free)> line(nullptr, &std::free);
  for (std::size_t room = 0, number = 1;; ++number) {
    char* text = line.release();
    const ssize_t size = getline(&text, &room, stdin);
    line.reset(text);
    if (size < 0) return 0;
    try {
      const nlohmann::json request =
          nlohmann::json::parse(std::string_view(text, static_cast<std::size_t>(size)));
      write(answer(tokenizer, request).dump() + "\n");
      std::fflush(stdout);
    } catch (const nlohmann::json::exception& wrong) {
      return report_error(
          {fmt::format("line {} is no request: {}", number, wrong.what()), ErrorKind::wrong_use});
    }
  }
}

int tokenize(const TokenizeOptions& options) {
  const auto start = Clock::now();
  const auto tokenizer = load_tokenizer(options.model);
  const double load_ms = milliseconds_since(start);
  if (!tokenizer) return report_error(tokenizer.error());
  if (options.lines_json) return serve_lines(*tokenizer);
  return options.decode ? decode(*tokenizer, options) : encode(*tokenizer, options, load_ms);
}

}  // namespace

void add_tokenize(CLI::App& app, Context& context) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command = app.add_subcommand("tokenize", "Token ids of a text, or the text of ids");
  command->add_option("--model", options->model, "a model's folder, .gguf file or name")
      ->capture_default_str();
  CLI::Option* text = command->add_option("--text", options->text, "the text");
  CLI::Option* file = command->add_option("--file", options->file,
                                          "a file of text; standard input when nothing is given");
  CLI::Option* ids = command->add_option("--decode", options->decode,
                                         "ids as in 1,2,3: writes their text, byte for byte");
  CLI::Option* lines = command->add_flag(
      "--lines-json", options->lines_json,
      "answers each line {\"text\": T} with {\"ids\": [...]} and back; \"hex\" carries any bytes, "
      "\"special\": true finds special tokens");
  text->excludes(file)->excludes(ids)->excludes(lines);
  file->excludes(ids)->excludes(lines);
  ids->excludes(lines);
  add_choice<SpecialTokens>(
      *command, "--special", options->specials,
      {{"as-text", SpecialTokens::as_text}, {"as-special", SpecialTokens::as_special}},
      "whether '<|end|>' in the text is that token; as-text unless said otherwise");
  command->add_flag("--count", options->count,
                    "only how many tokens; in JSON also how long it took");
  command->add_flag("--pieces", options->pieces, "each token's text beside its id");
  add_format(*command, options->format);
  command->footer("Example:  gauntlet tokenize --text 'Once upon a time' --pieces");
  command->callback([options, &context] { context.exit_code = tokenize(*options); });
}

}  // namespace gauntlet::cli
