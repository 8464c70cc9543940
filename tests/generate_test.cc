// Do the commands that run a model keep their promises: golden text, exit codes, JSON keys, pipes?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tests/program.h"

namespace gauntlet::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;
using testing::UnorderedElementsAre;

using Words = std::vector<std::string>;

constexpr const char* kSource = GAUNTLET_SOURCE_DIR;

Words words(const std::string& text) {
  std::stringstream stream(text);
  Words result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

/// On the CPU, whose results are exact, whatever else the machine has.
Outcome gauntlet(const Words& arguments, const std::string& folder = "") {
  Words argv = {GAUNTLET_BINARY};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  const Words engine = {"generate", "perplexity", "chat", "bench"};
  if (!arguments.empty() && std::ranges::count(engine, arguments[0]) > 0) {
    argv.insert(argv.end(), {"--backend", "cpu"});
  }
  return run_program(argv, folder);
}

json parsed(const Words& arguments) {
  const Outcome outcome = gauntlet(arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return json::parse(outcome.out, nullptr, false);
}

Words keys_of(const json& object) {
  Words keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

json golden(const std::string& model) {
  return json::parse(read_text(fs::path(kSource) / "tests/golden" / (model + ".json")));
}

std::string validation() { return std::string(kSource) + "/tests/golden/validation.txt"; }

Words generate(const std::string& prompt, const std::string& options) {
  Words all = words("generate " + options);
  all.insert(all.end(), {"--prompt", prompt});
  return all;
}

/// The ids must be equal up to the first choice that was close to a tie.
void expect_golden(const json& made, const json& expected) {
  EXPECT_EQ(made.at("prompt_ids"), expected.at("ids"));
  for (std::size_t i = 0; i < expected.at("greedy").size(); ++i) {
    if (expected.at("margins")[i].get<double>() < 0.02) return;
    ASSERT_EQ(made.at("output_ids")[i], expected.at("greedy")[i]) << "token " << i;
  }
  EXPECT_EQ(made.at("text"), expected.at("greedy_text"));
}

TEST(GenerateCommand, gives_the_golden_text_with_the_promised_keys) {
  const json expected = golden("gauntlet-tiny").at("cases")[5];
  const json made = parsed(generate(expected.at("text"), "--max-tokens 48 --format json"));
  EXPECT_THAT(keys_of(made), UnorderedElementsAre("prompt_ids", "output_ids", "text",
                                                  "finish_reason", "speculation", "timing"));
  EXPECT_THAT(keys_of(made.at("timing")),
              UnorderedElementsAre("load_ms", "ttft_ms", "prefill_tok_s", "decode_tok_s"));
  EXPECT_EQ(made.at("finish_reason"), "length");
  EXPECT_EQ(made.at("output_ids").size(), 48u);
  expect_golden(made, expected);
}

TEST(GenerateCommand, gives_the_golden_text_of_a_folder_and_of_a_converted_file) {
  const json expected = golden("gauntlet-draft").at("cases")[3];
  const TemporaryFolder folder;
  const std::string file = folder / "draft.gguf";
  const std::string model = std::string(kSource) + "/models/gauntlet-draft";
  const Outcome converted = gauntlet({"convert", model, file});
  ASSERT_EQ(converted.code, 0) << converted.err;
  for (const std::string& from : {model, file}) {
    expect_golden(
        parsed(generate(expected.at("text"), "--max-tokens 48 --format json --model " + from)),
        expected);
  }
}

TEST(GenerateCommand, guesses_and_says_the_same) {
  const json plain =
      parsed(generate("one two three one two three one", "--max-tokens 40 --format json"));
  EXPECT_EQ(plain.at("speculation").at("steps"), 0);
  const std::string models = std::string(kSource) + "/models/";
  for (const std::string& how :
       {std::string("ngram"), "draft --draft-model " + models + "gauntlet-draft",
        "eagle3 --draft-model " + models + "gauntlet-tiny-eagle3",
        std::string("ngram --draft-tree 2,3"),
        "draft --draft-tree 2,3 --draft-model " + models + "gauntlet-draft",
        "eagle3 --draft-tree 3,2 --draft-model " + models + "gauntlet-tiny-eagle3"}) {
    const json made = parsed(generate("one two three one two three one",
                                      "--max-tokens 40 --format json --draft-lengths fixed "
                                      "--draft-tokens 3 --speculate " +
                                          how));
    EXPECT_EQ(made.at("output_ids"), plain.at("output_ids")) << how;
    const json& guessed = made.at("speculation");
    EXPECT_GT(guessed.at("drafted"), 0) << how;
    EXPECT_LE(guessed.at("accepted"), guessed.at("drafted")) << how;
    std::int64_t sum = 0;
    for (const json& count : guessed.at("by_position")) sum += count.get<std::int64_t>();
    EXPECT_EQ(guessed.at("accepted"), sum) << how;
  }
}

TEST(GenerateCommand, refuses_a_drafter_that_does_not_fit) {
  const std::string models = std::string(kSource) + "/models/";
  const auto refused = [&](const std::string& options, const std::string& why) {
    const Outcome outcome = gauntlet(generate("once", "--max-tokens 2 --speculate " + options));
    EXPECT_NE(outcome.code, 0) << options;
    EXPECT_THAT(outcome.err, HasSubstr(why));
  };
  refused("draft", "need a --draft-model");
  refused("ngram --draft-model x", "--draft-model is for");
  for (const char* tree : {"3", "3,", "1,4", "17,2", "2,64", "3,5x", ",4"}) {
    refused(std::string("ngram --draft-tree ") + tree, "give a width from 2 to 16");
  }
  refused("off --draft-tree 2,2", "--draft-tree is for");
  refused("ngram,experts --draft-tree 2,2", "experts guesses one token after the other");
  refused("eagle3 --draft-model " + models + "gauntlet-draft", "gauntlet-draft/config.json");
  refused("eagle3 --model " + models + "gauntlet-draft --draft-model " + models +
              "gauntlet-tiny-eagle3",
          "the head is for a model of width 256");
}

TEST(GenerateCommand, says_the_same_as_text_from_a_file_and_from_ids) {
  const json made = parsed(generate("In the middle of the night", "--max-tokens 20 --format json"));
  const std::string text = made.at("text").get<std::string>() + "\n";
  EXPECT_EQ(gauntlet(generate("In the middle of the night", "--max-tokens 20")).out, text);
  const TemporaryFolder folder;
  std::ofstream(folder / "prompt.txt") << "In the middle of the night";
  EXPECT_EQ(
      gauntlet({"generate", "--max-tokens", "20", "--prompt-file", folder / "prompt.txt"}).out,
      text);
  std::string ids;
  for (const json& id : made.at("prompt_ids")) ids += (ids.empty() ? "" : ",") + id.dump();
  EXPECT_EQ(gauntlet({"generate", "--max-tokens", "20", "--prompt-ids", ids}).out, text);
}

TEST(GenerateCommand, says_the_same_whatever_the_engine_options_when_exact) {
  const std::string text =
      gauntlet(generate("The captain looked at the sea and", "--max-tokens 24")).out;
  for (const char* options :
       {"--threads 1", "--threads 3", "--chunk 3", "--simd portable", "--attention naive",
        "--experts dequantised", "--head full", "--fusion op-by-op"}) {
    EXPECT_EQ(gauntlet(generate("The captain looked at the sea and",
                                std::string("--max-tokens 24 ") + options))
                  .out,
              text)
        << options;
  }
  for (const char* options : {"--activations int8", "--activations auto", "--kv-dtype bf16"}) {
    const Outcome made = gauntlet(
        generate("The captain looked at the sea and", std::string("--max-tokens 24 ") + options));
    EXPECT_EQ(made.code, 0) << options << made.err;
    EXPECT_GT(made.out.size(), 20u) << options;
  }
}

TEST(GenerateCommand, ends_before_a_stop_string) {
  const json all = parsed(generate("Once upon a time", "--max-tokens 40 --format json"));
  const std::string text = all.at("text");
  const std::string stop = text.substr(text.size() / 2, 4);
  Words arguments = generate("Once upon a time", "--max-tokens 40 --format json");
  arguments.insert(arguments.end(), {"--stop", "never to be said", "--stop", stop});
  const json made = parsed(arguments);
  EXPECT_EQ(made.at("finish_reason"), "stop");
  EXPECT_EQ(made.at("text"), text.substr(0, text.find(stop)));
}

TEST(GenerateCommand, repeats_itself_with_a_seed_only) {
  const auto with = [](const std::string& options) {
    return gauntlet(generate("She", "--max-tokens 30 --temperature 1 " + options)).out;
  };
  const std::string one = with("--seed 1");
  EXPECT_EQ(with("--seed 1"), one);
  EXPECT_EQ(with("--seed 1 --threads 1 --chunk 1"), one) << "not a matter of threads or chunks";
  EXPECT_NE(with("--seed 2"), one);
  EXPECT_NE(with(""), with("")) << "chance";
  EXPECT_EQ(with("--seed 3 --top-k 1"), with("--seed 4 --top-p 0.0001"));
}

TEST(GenerateCommand, stops_with_what_it_has_when_interrupted) {
  Words argv = {GAUNTLET_BINARY};
  // Slow enough to be still at it.
  const Words arguments = generate("Once",
                                   "--max-tokens 4000 --simd portable --threads 1 "
                                   "--ignore-eos --format json");
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  Program program(argv);
  // While it loads, it has nothing to stop with.
  for (int i = 0; i < 6000 && !program.handles_interrupts(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  program.interrupt();
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  const json made = json::parse(outcome.out, nullptr, false);
  EXPECT_EQ(made.at("finish_reason"), "cancelled");
  EXPECT_LT(made.at("output_ids").size(), 4000u);
}

TEST(GenerateCommand, runs_random_weights_of_a_shape) {
  const std::string shape = std::string(kSource) + "/models/gauntlet-draft/config.json";
  const std::string options =
      "generate --weights random --prompt-ids 1,2,3 --max-tokens 5 --ignore-eos --format json "
      "--layers 1 --shape ";
  const json made = parsed(words(options + shape));
  EXPECT_EQ(made.at("output_ids").size(), 5u);
  EXPECT_EQ(made.at("text"), "");
  EXPECT_EQ(parsed(words(options + shape)).at("output_ids"), made.at("output_ids"));
}

TEST(GenerateCommand, says_in_one_sentence_what_is_wrong_with_a_model) {
  const TemporaryFolder folder;
  const fs::path broken = folder.path() / "broken";
  fs::copy(fs::path(kSource) / "models/gauntlet-draft", broken);
  fs::resize_file(broken / "model.safetensors", 100000);
  std::ofstream(folder / "no.gguf") << "this is no model";
  fs::create_directory(folder.path() / "empty");
  for (const std::string& model : {broken.string(), folder / "no.gguf", folder / "empty",
                                   folder / "nothing", std::string("gauntlet-tny")}) {
    for (const Words& command : {generate("x", ""), Words{"perplexity", "--file", validation()},
                                 Words{"chat"}, Words{"bench", "--no-ceilings"}}) {
      Words arguments = command;
      arguments.insert(arguments.end(), {"--model", model});
      const Outcome outcome = gauntlet(arguments);
      EXPECT_EQ(outcome.code, 3) << command[0] << " " << model;
      EXPECT_THAT(outcome.err, StartsWith("gauntlet: "));
      EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
      EXPECT_EQ(outcome.out, "");
    }
  }
}

struct WrongUse {
  std::string arguments;
  std::string sentence;  // part of it
};
void PrintTo(const WrongUse& use, std::ostream* out) { *out << use.arguments; }

std::string test_name(const testing::TestParamInfo<WrongUse>& info) {
  std::string name = info.param.arguments;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

class WrongUseOfModels : public testing::TestWithParam<WrongUse> {};

TEST_P(WrongUseOfModels, costs_one_sentence) {
  const Outcome outcome = gauntlet(words(GetParam().arguments));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr(GetParam().sentence));
  EXPECT_THAT(outcome.err, StartsWith("gauntlet: "));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  EXPECT_EQ(outcome.out, "");
}

INSTANTIATE_TEST_SUITE_P(
    Commands, WrongUseOfModels,
    testing::Values(
        WrongUse{"generate", "one of --prompt, --prompt-file and --prompt-ids"},
        WrongUse{"generate --prompt a --prompt-ids 1", "one of --prompt"},
        WrongUse{"generate --prompt a --temperature -1", "a temperature is 0 or more"},
        WrongUse{"generate --prompt a --temperature nan", "a temperature is 0 or more"},
        WrongUse{"generate --prompt a --top-p 0", "top-p is above 0"},
        WrongUse{"generate --prompt a --top-p 1.01", "top-p is above 0"},
        WrongUse{"generate --prompt a --top-k -1", "top-k is 0"},
        WrongUse{"generate --prompt a --min-p 2", "min-p is between"},
        WrongUse{"generate --prompt a --max-tokens 0", "--max-tokens"},
        WrongUse{"generate --prompt a --threads 0", "--threads"},
        WrongUse{"generate --prompt a --chunk 0", "--chunk"},
        WrongUse{"generate --prompt a --simd neon", "'neon' is not one of portable"},
        WrongUse{"generate --prompt a --activations int4", "'int4' is not one of f32"},
        WrongUse{"generate --prompt-ids 4096", "not in the vocabulary (0 to 4095)"},
        WrongUse{"generate --prompt-ids 1,-2", "token -2"},
        WrongUse{"generate --prompt-ids 1,x", "takes ids as in 1,2,3"},
        WrongUse{"generate --prompt-ids 1,", "takes ids as in 1,2,3"},
        WrongUse{"generate --prompt a --layers 2", "for --weights random"},
        WrongUse{"generate --prompt a --weights random --model x", "takes a --shape"},
        WrongUse{"generate --prompt a --weights random --shape gpt-oss-21b", "gpt-oss-20b"},
        WrongUse{"perplexity --window 512", "--file is required"},
        WrongUse{"perplexity --file " GAUNTLET_SOURCE_DIR "/LICENSE --window 5000",
                 "give 1 to 4096"},
        WrongUse{"bench --no-ceilings --context 4000 --decode 128 --prefill 1", "4096 positions"},
        WrongUse{"bench --no-ceilings --batch 0", "--batch"},
        WrongUse{"bench --activations f32,f64", "'f64' is not one of f32"},
        WrongUse{"bench --no-ceilings --breakdown", "--breakdown traces a GPU"},
        WrongUse{"generate --prompt a --kv-dtype fp8", "f32 or bf16, not fp8"},
        WrongUse{"chat --effort huge", "'huge' is not one of low"},
        WrongUse{"chat --temperature -1", "a temperature is 0 or more"}),
    test_name);

TEST(PerplexityCommand, gives_the_golden_values) {
  for (const char* model : {"gauntlet-tiny", "gauntlet-draft"}) {
    const json expected = golden(model).at("perplexity");
    const json score = parsed({"perplexity", "--model", std::string(kSource) + "/models/" + model,
                               "--file", validation(), "--window", "512", "--format", "json"});
    EXPECT_THAT(keys_of(score), UnorderedElementsAre("tokens", "perplexity"));
    EXPECT_EQ(score.at("tokens"), expected.at("tokens"));
    const double value = expected.at("value");
    EXPECT_NEAR(score.at("perplexity").get<double>(), value, 0.002 * value) << model;
  }
}

TEST(BenchCommand, gives_a_row_per_test_batch_context_and_activations) {
  const json report = parsed(
      words("bench --no-ceilings --prefill 16,32 --decode 4 --batch 1,2 --context 0,8 --seconds 0 "
            "--repetitions 1 --threads 1 --activations f32,int8,f32 --format json"));
  const json& rows = report.at("rows");
  EXPECT_EQ(rows.size(), 2u * 2 * 2 * 3) << "f32 counts once";
  for (const json& row : rows) {
    for (const char* key : {"test", "activations", "batch", "context", "tokens", "tok_s",
                            "bytes_per_token", "percent_of_limit"}) {
      EXPECT_TRUE(row.contains(key)) << key;
    }
    EXPECT_GT(row.at("tok_s").at("value").get<double>(), 0);
    EXPECT_GT(row.at("bytes_per_token").get<double>(), 1000);
    EXPECT_TRUE(row.at("percent_of_limit").is_null()) << "no ceilings, no share of them";
  }
  EXPECT_EQ(rows.front().at("activations"), "f32");
  EXPECT_EQ(rows.back().at("activations"), "int8");
}

/// Runs a shell's pipe into the program.
Outcome chat(const std::string& lines, const std::string& options) {
  return run_program(
      {"/bin/sh", "-c",
       "printf '" + lines + "' | " GAUNTLET_BINARY " chat --temperature 0 " + options});
}

TEST(ChatCommand, answers_each_line_of_a_pipe) {
  const Outcome outcome =
      chat("Hello there\\n/nonsense\\n/reset\\nHello there\\n\\n/exit\\nnever read\\n",
           "--max-tokens 12 --format json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("there is no '/nonsense'; /help"));
  std::stringstream lines(outcome.out);
  Words answers;
  for (std::string line; std::getline(lines, line);) answers.push_back(line);
  ASSERT_EQ(answers.size(), 2u) << outcome.out;
  EXPECT_EQ(answers[0], answers[1]) << "after /reset it begins anew";
  const json answer = json::parse(answers[0], nullptr, false);
  EXPECT_THAT(keys_of(answer), UnorderedElementsAre("messages", "finish_reason"));
  EXPECT_EQ(answer.at("finish_reason"), "length");
}

TEST(ChatCommand, stops_the_answer_and_not_the_program_when_interrupted) {
  const Outcome outcome =
      run_program({"/bin/sh", "-c",
                   "(printf 'Hello\\n'; sleep 1.5; printf '/help\\n') | timeout --preserve-status "
                   "-s INT 0.7 " GAUNTLET_BINARY
                   " chat --temperature 0 --max-tokens 4000 --simd portable --threads 1"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("(stopped)"));
  EXPECT_THAT(outcome.out, HasSubstr("/reset   begin"));
}

TEST(ChatCommand, goes_on_after_an_error) {
  const Outcome outcome = chat("a very long line that does not fit the room it has\\nHi\\n/help\\n",
                               "--max-tokens 4 --context 64");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("room for 64"));
  EXPECT_THAT(outcome.out, HasSubstr("/reset"));
}

}  // namespace
}  // namespace gauntlet::tests
