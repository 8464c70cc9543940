// Would systemd, shells and the server itself take what is in deploy/, and does the server know
// what it names? The dashboard has a test beside the metrics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "tests/program.h"
#include "tests/tools.h"

namespace gauntlet::tests {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kVerifier = "/usr/bin/systemd-analyze";
const std::string kInstalled = "/usr/local/bin/gauntlet";

std::string unit() {
  return read_text(fs::path(GAUNTLET_SOURCE_DIR) / "deploy" / "gauntlet.service");
}

/// What systemd says of a unit that starts this build's program.
Outcome verified(std::string text) {
  const TemporaryFolder folder;
  text = std::regex_replace(text, std::regex(kInstalled + " "), GAUNTLET_BINARY " ");
  std::ofstream(folder / "gauntlet.service") << text;
  return run_program({kVerifier, "verify", "--man=no", folder / "gauntlet.service"});
}

TEST(Deploy, systemd_finds_no_fault_with_the_unit) {
  if (!fs::exists(kVerifier)) GTEST_SKIP() << "not tried: there is no " << kVerifier;
  const Outcome good = verified(unit());
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.err, Not(HasSubstr("gauntlet.service")));
  // Keys that systemd does not know are only a remark to it.
  const Outcome misspelt = verified(unit() + "\n[Service]\nProtectHoome=yes\n");
  EXPECT_THAT(misspelt.err, HasSubstr("ProtectHoome"));
}

TEST(Deploy, systemd_finds_the_unit_as_safe_as_the_page_says) {
  if (!fs::exists(kVerifier)) GTEST_SKIP() << "not tried: there is no " << kVerifier;
  const std::string page = read_text(fs::path(GAUNTLET_SOURCE_DIR) / "docs" / "serving.md");
  std::smatch said;
  ASSERT_TRUE(std::regex_search(page, said, std::regex("gives it ([0-9]\\.[0-9]) of 10")));
  const std::string unit_file = fs::path(GAUNTLET_SOURCE_DIR) / "deploy" / "gauntlet.service";
  const Outcome judged = run_program({kVerifier, "security", "--offline=yes", unit_file});
  EXPECT_THAT(judged.out, HasSubstr("gauntlet.service: " + said[1].str()));
}

/// GAUNTLET_API_KEY -> "--api-key ".
std::string option_of(const std::string& variable) {
  std::string option = "--";
  for (const char c : variable.substr(std::string("GAUNTLET_").size())) {
    option += c == '_' ? '-' : static_cast<char>(c - 'A' + 'a');
  }
  return option + " ";
}

TEST(Deploy, the_unit_starts_a_command_and_names_variables_that_exist) {
  const std::string text = unit();
  EXPECT_THAT(text, HasSubstr("ExecStart=" + kInstalled +
                              " serve --config /etc/gauntlet/serve.toml $GAUNTLET_ARGS"));
  const Outcome help = run_program({GAUNTLET_BINARY, "serve", "--help"});
  EXPECT_EQ(help.code, 0);
  const std::regex variable("GAUNTLET_[A-Z_]+");
  std::set<std::string> names;
  for (auto at = std::sregex_iterator(text.begin(), text.end(), variable);
       at != std::sregex_iterator(); ++at) {
    names.insert(at->str());
  }
  EXPECT_EQ(names.erase("GAUNTLET_ARGS"), 1u);
  EXPECT_GE(names.size(), 2u);
  for (const std::string& name : names) EXPECT_THAT(help.out, HasSubstr(option_of(name)));
}

std::string deployed(const std::string& name) {
  return read_text(fs::path(GAUNTLET_SOURCE_DIR) / "deploy" / name);
}

/// What the server makes of a configuration.
Outcome configured(const std::string& text) {
  const TemporaryFolder folder;
  std::ofstream(folder / "serve.toml") << text;
  return run_program(
      {GAUNTLET_BINARY, "serve", "--config", folder / "serve.toml", "--print-config"});
}

TEST(Deploy, the_configuration_is_read_as_it_is_and_with_every_line_taken_in) {
  const std::string text = deployed("serve.toml");
  const Outcome as_it_is = configured(text);
  EXPECT_EQ(as_it_is.code, 0) << as_it_is.err;
  const std::string all = std::regex_replace(text, std::regex("\n# ([a-z-]+ = )"), "\n$1");
  ASSERT_NE(all, text);
  const Outcome taken_in = configured(all);
  EXPECT_EQ(taken_in.code, 0) << taken_in.err;
  EXPECT_THAT(taken_in.out, HasSubstr("host = \"0.0.0.0\""));
}

TEST(Deploy, kubernetes_configures_and_probes_what_the_server_has) {
  const std::string text = deployed("kubernetes/gauntlet.yaml");
  std::smatch block;
  ASSERT_TRUE(std::regex_search(text, block, std::regex("serve\\.toml: \\|\n((?:    .*\n)+)")));
  const Outcome outcome =
      configured(std::regex_replace(block[1].str(), std::regex("(^|\n)    "), "$1"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("drain-timeout = 60"));
  for (const char* wanted :
       {"path: /health", "path: /ready", "nvidia.com/gpu: \"1\"", "readOnlyRootFilesystem: true",
        "runAsNonRoot: true", "terminationGracePeriodSeconds: 75", "enableServiceLinks: false"}) {
    EXPECT_THAT(text, HasSubstr(wanted));
  }
  const std::string scaled = deployed("kubernetes/autoscaler.yaml");
  const std::string metrics = read_text(fs::path(GAUNTLET_SOURCE_DIR) / "docs" / "serving.md");
  const std::regex metric("name: gauntlet_([a-z_]+)");
  int num_metrics = 0;
  for (auto at = std::sregex_iterator(scaled.begin(), scaled.end(), metric);
       at != std::sregex_iterator(); ++at, ++num_metrics) {
    EXPECT_THAT(metrics, HasSubstr("`" + (*at)[1].str() + "`"));
  }
  EXPECT_EQ(num_metrics, 2);
}

TEST(Deploy, the_container_is_not_root_and_asks_after_its_health) {
  const std::string text = deployed("Containerfile");
  EXPECT_TRUE(std::regex_search(text, std::regex("\nUSER [1-9][0-9]+:[1-9][0-9]+\n")));
  EXPECT_THAT(text, HasSubstr("GET /health"));
  EXPECT_THAT(text, HasSubstr("[\"/usr/bin/gauntlet\", \"serve\", \"--config\""));
}

TEST(Deploy, shells_parse_the_scripts) {
  const fs::path folder = fs::path(GAUNTLET_SOURCE_DIR) / "deploy";
  for (const char* script : {"gauntlet.slurm", "gauntlet-ranks.slurm", "debian/postinst",
                             "debian/prerm", "debian/postrm"}) {
    const Outcome outcome = run_program({"/bin/bash", "-n", folder / script});
    EXPECT_EQ(outcome.code, 0) << script << ": " << outcome.err;
  }
}

TEST(Deploy, the_slurm_job_gives_the_server_options_that_exist) {
  const std::string text = deployed("gauntlet.slurm");
  const std::string help = run_program({GAUNTLET_BINARY, "serve", "--help"}).out;
  const std::string line = text.substr(text.find("gauntlet serve "));
  const std::string command = line.substr(0, line.find('\n'));
  const std::regex option("--[a-z-]+");
  for (auto at = std::sregex_iterator(command.begin(), command.end(), option);
       at != std::sregex_iterator(); ++at) {
    EXPECT_THAT(help, HasSubstr(at->str() + " "));
  }
}

TEST(Deploy, the_slurm_job_drains_on_a_signal_and_takes_its_key_away) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "bin");
  const auto fake = [&](const std::string& name, const std::string& body) {
    std::ofstream(folder / ("bin/" + name)) << "#!/bin/bash\n" << body << "\n";
    fs::permissions(folder / ("bin/" + name), fs::perms::owner_all);
  };
  fake("srun", "shift; exec \"$@\"");
  fake("gauntlet",
       "trap 'sleep 0.3; echo drained; exit 0' TERM\necho \"$*\"\nwhile :; do sleep 0.1; done");
  Program job({"/usr/bin/env", "PATH=" + (folder / "bin") + ":/usr/bin:/bin", "SLURM_JOB_ID=12",
               "MODEL=/srv/a model", "GAUNTLET_API_KEY=a-key", "/bin/bash",
               std::string(GAUNTLET_SOURCE_DIR) + "/deploy/gauntlet.slurm"},
              folder.path().string());
  for (int i = 0; i < 200 && job.printed().empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const fs::path env = folder.path() / "gauntlet-12.env";
  EXPECT_THAT(read_text(env), HasSubstr(":20012/v1\nOPENAI_API_KEY=a-key\n"));
  EXPECT_EQ(fs::status(env).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  job.terminate();
  const Outcome outcome = job.wait();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("--model /srv/a model --host 0.0.0.0 --port 20012"));
  EXPECT_THAT(outcome.out, HasSubstr("drained"));
  EXPECT_FALSE(fs::exists(env));
}

TEST(Deploy, the_slurm_job_starts_ranks_of_a_mesh) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "bin");
  for (const auto& [name, body] :
       {std::pair{"srun", "echo \"srun $*\"; while [[ $1 == --* ]]; do shift; done; exec \"$@\""},
        std::pair{"gauntlet", "echo \"$*\""}}) {
    std::ofstream(folder / ("bin/" + std::string(name))) << "#!/bin/bash\n" << body << "\n";
    fs::permissions(folder / ("bin/" + std::string(name)), fs::perms::owner_all);
  }
  const Outcome outcome =
      run_program({"/usr/bin/env", "PATH=" + (folder / "bin") + ":/usr/bin:/bin", "SLURM_JOB_ID=12",
                   "MODEL=/srv/a model", "MESH=tp2,pp2", "GAUNTLET_API_KEY=a-key", "/bin/bash",
                   std::string(GAUNTLET_SOURCE_DIR) + "/deploy/gauntlet.slurm"},
                  folder.path().string());
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("srun --mpi=pmix --kill-on-bad-exit=1 --cpu-bind=cores"));
  EXPECT_THAT(outcome.out, HasSubstr("--model /srv/a model --backend cpu --mesh tp2,pp2 --host"));
}

TEST(Deploy, presets_of_machines_that_nobody_had_say_so) {
  int num_presets = 0;
  for (const auto& entry :
       fs::directory_iterator(fs::path(GAUNTLET_SOURCE_DIR) / "deploy" / "ranks")) {
    ++num_presets;
    const std::string text = read_text(entry.path());
    EXPECT_THAT(text, HasSubstr("Not measured here")) << entry.path();
    const std::regex line("#.*|NCCL_[A-Z0-9_]+=[A-Z0-9a-z]+");
    std::istringstream lines(text);
    for (std::string one; std::getline(lines, one);) {
      EXPECT_TRUE(std::regex_match(one, line)) << one;
    }
  }
  EXPECT_EQ(num_presets, 2);
}

/// Once the server says so on its first line.
std::string port_of(const Program& server) {
  for (int i = 0; i < 600; ++i) {
    const std::string printed = server.printed();
    std::smatch found;
    if (std::regex_search(printed, found, std::regex(":([0-9]+)\\s"))) return found[1];
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return "0";
}

TEST(Deploy, promtool_takes_the_metrics_and_the_configuration) {
  const auto promtool = tool_command(fs::path(GAUNTLET_SOURCE_DIR) / "build" / "tools", "promtool");
  if (promtool.empty()) GTEST_SKIP() << "not tried: there is no promtool (tools/setup.sh test)";
  auto config = promtool;
  config.insert(config.end(), {"check", "config", GAUNTLET_SOURCE_DIR "/deploy/prometheus.yml"});
  const Outcome scraped = run_program(config);
  EXPECT_EQ(scraped.code, 0) << scraped.err;

  const Program server({GAUNTLET_BINARY, "serve", "--port", "0", "--backend", "cpu"});
  const TemporaryFolder folder;
  std::ofstream(folder / "ask") << R"(ask() {
  exec 3<>/dev/tcp/127.0.0.1/$1
  printf '%s HTTP/1.0\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s' "$2" "${#3}" "$3" >&3
  sed '1,/^\r$/d' <&3
}
ask $1 "POST /v1/completions" '{"model": "gauntlet-tiny", "prompt": "Once", "max_tokens": 8}' >/dev/null
ask $1 "GET /metrics" "" | tee "$2" | "${@:3}" check metrics 2>&1
)";
  std::vector<std::string> argv = {"/bin/bash", folder / "ask", port_of(server),
                                   folder / "metrics"};
  argv.insert(argv.end(), promtool.begin(), promtool.end());
  std::istringstream remarks(run_program(argv).out);
  EXPECT_THAT(read_text(folder / "metrics"), HasSubstr("gauntlet:generation_tokens_total{"));
  int num_remarks = 0;
  for (std::string remark; std::getline(remarks, remark); ++num_remarks) {
    // vLLM's names, which dashboards know: a colon in each, and a histogram that ends in _total.
    EXPECT_THAT(remark, AnyOf(HasSubstr("metric names should not contain ':'"),
                              HasSubstr("gauntlet:iteration_tokens_total non-counter metrics")));
  }
  EXPECT_GT(num_remarks, 10) << "promtool read them";
}

}  // namespace
}  // namespace gauntlet::tests
