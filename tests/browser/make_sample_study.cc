// Writes a study with made-up figures, for the browser's tests: report.html, and empty.html of a
// study that had no time.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "study/results/sample_study.h"
#include "study/results/text/html.h"
#include "study/study.h"

int main(int argc, char** argv) {
  using namespace gauntlet::study;
  if (argc != 2) {
    std::fputs("usage: make_sample_study FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  SampleStudy sample;
  auto journal = Journal::begin(folder / "journal.jsonl", nlohmann::json::object(), 1794709000);
  if (!journal) return 3;
  std::ofstream(folder / "empty.html") << render_html(assemble(sample.facts, *journal).value());
  sample.fill(*journal);
  return write_reports(folder, assemble(sample.facts, *journal).value()) ? 0 : 1;
}
