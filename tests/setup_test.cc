// Does tools/setup.sh say what failed and what to do? Its programs are fakes in PATH.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/program.h"

namespace gauntlet::tests {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

/// A tree with the script, one package-lock.json, and programs that do what a test writes.
class SetupScript {
 public:
  SetupScript() {
    for (const char* folder : {"tools", "tests/page", "bin"}) {
      fs::create_directories(folder_.path() / folder);
    }
    for (const char* script : {"setup.sh", "unpack.sh"}) {
      fs::copy_file(fs::path(GAUNTLET_SOURCE_DIR) / "tools" / script,
                    folder_.path() / "tools" / script);
    }
    std::ofstream(folder_ / "tests/page/package-lock.json") << "{}\n";
    fake("dpkg-query", "echo installed");
    fake("node", "exit 0");
    fake("npm", "echo all is well");
    fake("apt-get", "exit 0");
    fake("id", "echo 0");
    for (const char* program : {"nginx", "haproxy", "promtool", "mandoc"}) fake(program, "exit 0");
  }

  void fake(const std::string& name, const std::string& body) {
    const std::string file = folder_ / ("bin/" + name);
    std::ofstream(file) << "#!/bin/sh\n" << body << "\n";
    fs::permissions(file, fs::perms::owner_all);
  }

  void lack(const std::string& name) { fs::remove(folder_.path() / "bin" / name); }
  bool has(const std::string& file) const { return fs::exists(folder_.path() / file); }

  Outcome run(const std::string& job) {
    return run_program({"/usr/bin/env", "PATH=" + (folder_ / "bin") + ":/usr/bin:/bin", "/bin/bash",
                        folder_ / "tools/setup.sh", job});
  }

 private:
  TemporaryFolder folder_;
};

TEST(Setup, is_quiet_about_what_goes_well) {
  const Outcome good = SetupScript().run("test");
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_EQ(good.out, "setup: installing the npm packages of tests/page\n");
  EXPECT_EQ(good.err, "");
}

TEST(Setup, names_the_certificate_that_npm_does_not_trust) {
  SetupScript script;
  script.fake("npm", "echo 'npm ERR! code SELF_SIGNED_CERT_IN_CHAIN' >&2; exit 1");
  const Outcome bad = script.run("test");
  EXPECT_EQ(bad.code, 3);
  EXPECT_THAT(bad.err, HasSubstr("installing the npm packages of tests/page failed: npm ci"));
  EXPECT_THAT(bad.err, HasSubstr("  | npm ERR! code SELF_SIGNED_CERT_IN_CHAIN"));
  EXPECT_THAT(bad.err, HasSubstr("export NODE_EXTRA_CA_CERTS="));
}

TEST(Setup, shows_what_an_unknown_fault_said) {
  SetupScript script;
  script.fake("npm", "echo 'npm ERR! the moon is full'; exit 7");
  const Outcome bad = script.run("test");
  EXPECT_EQ(bad.code, 3);
  EXPECT_THAT(bad.err, HasSubstr("the moon is full"));
  EXPECT_THAT(bad.err, HasSubstr("by hand"));
}

TEST(Setup, says_what_apt_lacks) {
  SetupScript script;
  script.fake("dpkg-query", "exit 1");
  script.fake("apt-get",
              "[ \"$1\" = update ] || { echo 'E: Unable to locate package g++' >&2; exit 100; }");
  const Outcome bad = script.run("build");
  EXPECT_EQ(bad.code, 3);
  EXPECT_THAT(bad.err, HasSubstr("installing Debian packages failed: apt-get install"));
  EXPECT_THAT(bad.err, HasSubstr("Debian 12"));
  script.fake("apt-get", "echo 'Temporary failure resolving deb.debian.org' >&2; exit 100");
  const Outcome offline = script.run("build");
  EXPECT_EQ(offline.code, 3);
  EXPECT_THAT(offline.err, HasSubstr("reading the lists of packages failed"));
  EXPECT_THAT(offline.err, HasSubstr("network"));
  EXPECT_THAT(offline.err, Not(HasSubstr("by hand")));
}

TEST(Setup, unpacks_a_program_that_tests_start_and_installs_no_service) {
  if (fs::exists("/usr/sbin/haproxy")) GTEST_SKIP() << "not tried: haproxy is installed";
  SetupScript script;
  script.lack("haproxy");
  script.fake("apt-get", R"(case "$*" in
  *--download-only*Dir::Cache::archives=*haproxy)
    for word; do case $word in Dir::*) touch "${word#*=}/haproxy.deb" ;; esac; done ;;
  *install*) exit 9 ;;
esac)");
  script.fake("dpkg-deb",
              R"(mkdir -p "$3/usr/sbin"; cp "$(dirname "$0")/nginx" "$3/usr/sbin/haproxy")");
  const Outcome good = script.run("test");
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("setup: unpacking below build/tools: haproxy\n"));
  EXPECT_TRUE(script.has("build/tools/usr/sbin/haproxy"));
  EXPECT_THAT(script.run("test").out, Not(HasSubstr("unpacking"))) << "it is there now";
}

TEST(Setup, says_when_a_program_cannot_be_fetched) {
  if (fs::exists("/usr/sbin/haproxy")) GTEST_SKIP() << "not tried: haproxy is installed";
  SetupScript script;
  script.lack("haproxy");
  script.fake("apt-get",
              "[ $1 = update ] || { echo 'Could not connect to deb:80' >&2; exit 100; }");
  const Outcome bad = script.run("test");
  EXPECT_EQ(bad.code, 3);
  EXPECT_THAT(bad.err, HasSubstr("fetching programs for tests failed: tools/unpack.sh"));
  EXPECT_THAT(bad.err, HasSubstr("Could not connect"));
  EXPECT_THAT(bad.err, HasSubstr("network"));
}

}  // namespace
}  // namespace gauntlet::tests
