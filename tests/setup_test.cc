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
    fs::copy_file(fs::path(GAUNTLET_SOURCE_DIR) / "tools" / "setup.sh",
                  folder_.path() / "tools" / "setup.sh");
    std::ofstream(folder_ / "tests/page/package-lock.json") << "{}\n";
    fake("dpkg-query", "echo installed");
    fake("node", "exit 0");
    fake("npm", "echo all is well");
    fake("apt-get", "exit 0");
    fake("id", "echo 0");
  }

  void fake(const std::string& name, const std::string& body) {
    const std::string file = folder_ / ("bin/" + name);
    std::ofstream(file) << "#!/bin/sh\n" << body << "\n";
    fs::permissions(file, fs::perms::owner_all);
  }

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

}  // namespace
}  // namespace gauntlet::tests
