// What `serve --config` reads, `serve --print-config` prints, and `doctor --serve` says of it.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "tests/program.h"

namespace gauntlet::tests {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class ServeConfig : public testing::Test {
 protected:
  std::string file(const std::string& text) {
    const std::string path = folder_ / "serve.toml";
    std::ofstream(path) << text;
    return path;
  }

  /// What holds with this file, these variables and these flags.
  static Outcome printed(std::vector<std::string> flags, std::vector<std::string> variables = {}) {
    std::vector<std::string> argv = {"/usr/bin/env"};
    argv.insert(argv.end(), variables.begin(), variables.end());
    argv.insert(argv.end(), {GAUNTLET_BINARY, "serve", "--print-config"});
    argv.insert(argv.end(), flags.begin(), flags.end());
    return run_program(argv);
  }

  TemporaryFolder folder_;
};

TEST_F(ServeConfig, flag_beats_environment_which_beats_file_which_beats_default) {
  const std::string config = file("port = 1001\nhost = \"::1\"\nmax-queue = 5\n");
  const Outcome all =
      printed({"--config", config, "--port", "1003"}, {"GAUNTLET_PORT=1002", "GAUNTLET_HOST=h"});
  ASSERT_EQ(all.code, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("\nport = 1003\n"));
  EXPECT_THAT(all.out, HasSubstr("\nhost = \"h\"\n"));
  EXPECT_THAT(all.out, HasSubstr("\nmax-queue = 5\n"));
  EXPECT_THAT(all.out, HasSubstr("\nmax-sequences = 64\n"));
  const Outcome named = printed({}, {"GAUNTLET_CONFIG=" + config});
  EXPECT_THAT(named.out, HasSubstr("\nport = 1001\n"));
}

TEST_F(ServeConfig, what_is_printed_is_read_back_the_same) {
  const std::vector<std::string> flags = {"--port",
                                          "9",
                                          "--host",
                                          "a#b \"c\"",
                                          "--max-wait",
                                          "2.5",
                                          "--batching",
                                          "static",
                                          "--kv-dtype",
                                          "bf16",
                                          "--deterministic",
                                          "--chunk",
                                          "77",
                                          "--tokenizer",
                                          "a\\b",
                                          "--gpu-memory",
                                          "0.5",
                                          "--prefix-cache",
                                          "off"};
  const Outcome first = printed(flags);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("\nmax-batch-tokens = 77\n"));
  EXPECT_THAT(first.out, HasSubstr("\ndeterministic = true\n"));
  const Outcome second = printed({"--config", file(first.out)});
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(second.out, first.out);
  const Outcome defaults = printed({});
  EXPECT_EQ(printed({"--config", file(defaults.out)}).out, defaults.out);
}

TEST_F(ServeConfig, every_option_of_help_is_in_what_is_printed) {
  const std::string help = run_program({GAUNTLET_BINARY, "serve", "--help"}).out;
  const std::string all = printed({}).out;
  const std::regex option("\n  (?:-[a-z],)?--([a-z-]+)");
  int num_options = 0;
  for (auto at = std::sregex_iterator(help.begin(), help.end(), option);
       at != std::sregex_iterator(); ++at) {
    const std::string name = (*at)[1];
    if (name == "help" || name == "config" || name == "print-config") continue;
    EXPECT_TRUE(std::regex_search(all, std::regex("\n(# )?" + name + " ="))) << name;
    ++num_options;
  }
  EXPECT_GT(num_options, 40);
}

TEST_F(ServeConfig, key_is_not_shown) {
  const Outcome shown = printed({}, {"GAUNTLET_API_KEY=very-secret"});
  EXPECT_THAT(shown.out, HasSubstr("api-key is set, and not shown"));
  EXPECT_THAT(shown.out, Not(HasSubstr("very-secret")));
}

TEST_F(ServeConfig, faults_name_file_and_key) {
  const auto fault = [&](const std::string& text) {
    const std::string config = file(text);
    const Outcome outcome = printed({"--config", config});
    EXPECT_EQ(outcome.code, 2) << text;
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, HasSubstr(config));
    return outcome.err;
  };
  EXPECT_THAT(fault("prot = 1\n"), HasSubstr("there is no option 'prot', did you mean 'port'?"));
  EXPECT_THAT(fault("help = true\n"), HasSubstr("there is no option 'help'"));
  EXPECT_THAT(fault("\nport = \"8000\"\n"),
              HasSubstr("line 2: port takes a whole number, not a string"));
  EXPECT_THAT(fault("host = 1\n"), HasSubstr("host takes a string, not a whole number"));
  EXPECT_THAT(fault("port = [1, 2]\n"), HasSubstr("port takes a whole number, not a list"));
  EXPECT_THAT(fault("port = 70000\n"), HasSubstr("port"));
  EXPECT_THAT(fault("http-threads = 0\n"), HasSubstr("http-threads"));
  EXPECT_THAT(fault("deterministic = \"yes\"\n"), HasSubstr("takes true or false"));
  EXPECT_THAT(fault("batching = \"statik\"\n"), HasSubstr("did you mean 'static'?"));
  EXPECT_THAT(fault("chunk = 1\nmax-batch-tokens = 2\n"), HasSubstr("twice"));
  EXPECT_THAT(fault("[serve]\n"), HasSubstr(":1: tables"));
  EXPECT_EQ(printed({"--config", folder_ / "none"}).code, 3);
}

class DoctorServe : public ServeConfig {
 protected:
  /// The finding of this name, as {level, reason, fix}.
  json finding(const std::string& name, const std::string& text) {
    const Outcome outcome = run_program(
        {GAUNTLET_BINARY, "doctor", "--serve", "--config", file(text), "--format", "json"});
    const json all = json::parse(outcome.out, nullptr, false);
    if (!all.is_array()) return {{"level", "none"}, {"reason", outcome.err}, {"fix", ""}};
    bool failed = false;
    json found = {{"level", "none"}, {"reason", outcome.out}, {"fix", ""}};
    for (const json& one : all) {
      failed = failed || one["level"] == "fail";
      if (one["name"] == name) found = one;
    }
    EXPECT_EQ(outcome.code, failed ? 1 : 0);
    return found;
  }
};

TEST_F(DoctorServe, port_that_is_taken_fails) {
  const int handle = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(handle, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(handle, 1), 0);
  ASSERT_EQ(getsockname(handle, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string port = "port = " + std::to_string(ntohs(address.sin_port)) + "\n";
  EXPECT_EQ(finding("address", port)["level"], "fail");
  close(handle);
  EXPECT_EQ(finding("address", "port = 0\n")["level"], "ok");
  EXPECT_EQ(finding("address", "port = 0\nhost = \"203.0.113.7\"\n")["level"], "fail");
}

TEST_F(DoctorServe, key_that_others_could_guess_is_said_to_be_weak) {
  EXPECT_EQ(finding("key", "port = 0\n")["level"], "warn");
  EXPECT_EQ(finding("key", "port = 0\nhost = \"0.0.0.0\"\n")["level"], "fail");
  EXPECT_EQ(finding("key", "port = 0\napi-key = \"short\"\n")["level"], "warn");
  EXPECT_EQ(finding("key", "port = 0\napi-key = \"aaaaaaaaaaaaaaaaaaaaaaaa\"\n")["level"], "warn");
  EXPECT_EQ(finding("key", "port = 0\napi-key = \"3f9a1c7e5b2d8f6043ac\"\n")["level"], "ok");
}

TEST_F(DoctorServe, model_that_is_not_there_and_memory_that_is_not_enough_fail) {
  EXPECT_EQ(finding("model", "port = 0\n")["level"], "ok");
  EXPECT_EQ(finding("memory", "port = 0\nbackend = \"cpu\"\n")["level"], "ok");
  const json missing = finding("model", "port = 0\nmodel = \"/nowhere\"\n");
  EXPECT_EQ(missing["level"], "fail");
  EXPECT_THAT(missing["reason"].get<std::string>(), HasSubstr("/nowhere"));
  EXPECT_EQ(finding("memory",
                    "port = 0\nbackend = \"cpu\"\nweights = \"random\"\nshape = \"gpt-oss-120b\"\n"
                    "kv-tokens = 100000000\nmax-sequences = 1000\n")["level"],
            "fail");
}

TEST_F(DoctorServe, files_that_connections_need_are_counted) {
  EXPECT_EQ(finding("file limit", "port = 0\nmax-connections = 1000\n")["level"], "ok");
}

TEST_F(DoctorServe, certificate_is_read_and_its_dates_and_key_are_looked_at) {
  if (!fs::exists("/usr/bin/openssl")) GTEST_SKIP() << "not tried: there is no /usr/bin/openssl";
  const auto made = [&](const std::string& name, const std::string& days) {
    const Outcome outcome =
        run_program({"/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                     "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost", "-days", days,
                     "-keyout", folder_ / (name + ".key"), "-out", folder_ / (name + ".crt")});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
  };
  made("long", "90");
  made("short", "3");
  const auto with = [&](const std::string& certificate, const std::string& key) {
    return finding("certificate", "port = 0\ntls-cert = \"" + (folder_ / certificate) +
                                      "\"\ntls-key = \"" + (folder_ / key) + "\"\n")["level"];
  };
  EXPECT_EQ(with("long.crt", "long.key"), "ok");
  EXPECT_EQ(with("short.crt", "short.key"), "warn");
  EXPECT_EQ(with("long.crt", "short.key"), "fail");
  EXPECT_EQ(with("long.key", "long.key"), "fail");
  EXPECT_EQ(with("none.crt", "long.key"), "fail");
  EXPECT_EQ(finding("certificate", "port = 0\ntls-cert = \"x\"\n")["level"], "fail");
  EXPECT_EQ(
      finding("certificate key", "port = 0\ntls-cert = \"" + (folder_ / "long.crt") +
                                     "\"\ntls-key = \"" + (folder_ / "long.key") + "\"\n")["level"],
      "ok");
}

TEST_F(DoctorServe, says_of_a_file_with_a_fault_what_serve_says) {
  const std::string config = file("prot = 1\n");
  const Outcome doctor = run_program({GAUNTLET_BINARY, "doctor", "--serve", "--config", config});
  EXPECT_EQ(doctor.code, 2);
  EXPECT_THAT(doctor.err, HasSubstr("did you mean 'port'?"));
  EXPECT_EQ(run_program({GAUNTLET_BINARY, "doctor", "--config", config}).code, 2);
}

}  // namespace
}  // namespace gauntlet::tests
