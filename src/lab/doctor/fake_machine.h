// A machine for tests of the checks: a tree of files and the facts that are no files.
#pragma once
#include <string>

#include "core/check.h"
#include "core/os/fake_tree.h"
#include "lab/doctor/doctor.h"

namespace gauntlet::lab::doctor {

using Level = Finding::Level;

/// Four CPUs and nothing else: no check finds its file.
struct FakeMachine {
  FakeTree tree;
  DoctorContext context{
      .files = SystemFiles(tree.root()), .cpus = {0, 1, 2, 3}, .folder = "/results"};

  FakeMachine& write(const std::string& path, std::string_view text) {
    tree.write(path, text);
    return *this;
  }

  FakeMachine& write_two_nodes() {
    return write("/sys/devices/system/node/has_cpu", "0-1\n")
        .write("/sys/devices/system/node/node0/cpulist", "0-3\n")
        .write("/sys/devices/system/node/node1/cpulist", "4-7\n");
  }

  Finding find(const std::string& area, const std::string& name) const {
    for (const Finding& finding : run_doctor(context)) {
      if (finding.area == area && finding.name == name) return finding;
    }
    fail("no finding " + area + "/" + name);
  }
};

}  // namespace gauntlet::lab::doctor
