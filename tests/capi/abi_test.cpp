// The binary interface beside that which is written down (libcairn.abi), by abidiff: whoever
// changes it knows, and writes it down anew. What is compared is the header, compiled: functions
// without content, and one for each enum, so that the values of constants count too. That the
// library has the header's functions is the compiler's to see, and package_test's.
#include <cairn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fstream>
#include <regex>
#include <string>
#include <utility>

#include "tests/capi/shell.h"
#include "tests/scratch_folder.h"

namespace cairn::abi_test {
namespace {

// The baseline is of this processor.
#ifdef __x86_64__

const std::string kBaseline = std::string(CAIRN_SOURCE) + "/tests/capi/libcairn.abi";

// Compiles the header's text, and answers with the library's path.
std::string compiled(const test::ScratchFolder& folder, const std::string& header) {
  std::ofstream(folder.file("cairn.h")) << header;
  std::ofstream source(folder.file("interface.cpp"));
  source << "#include \"cairn.h\"\nextern \"C\" {\n";
  const std::regex functions(R"(\nCAIRN_API ([^;]*);)"), enums(R"(enum \{\s*(\w+))");
  for (std::sregex_iterator at(header.begin(), header.end(), functions), end; at != end; ++at) {
    source << (*at)[1] << " { __builtin_trap(); }\n";
  }
  for (std::sregex_iterator at(header.begin(), header.end(), enums), end; at != end; ++at) {
    const std::string first = (*at)[1];
    source << "void cairn_enum_of_" << first << "(decltype(" << first << ")) {}\n";
  }
  source << "}\n";
  source.close();
  const std::string library = folder.file("libcairn.so");
  const test::Ran made = test::run(
      "c++ -std=c++20 -g -O0 -shared -fPIC -Wl,-soname,libcairn.so.0 "
      "-Wl,--version-script=" CAIRN_SOURCE "/src/capi/cairn.map " +
      folder.file("interface.cpp") + " -o " + library);
  EXPECT_EQ(made.status, 0) << made.output;
  return library;
}

// What abidiff says of the header's text; `is_same`: nothing.
std::string differences(const std::string& header, bool& is_same) {
  const test::ScratchFolder folder;
  const test::Ran told =
      test::run("abidiff --harmless " + kBaseline + " " + compiled(folder, header));
  is_same = told.status == 0;
  // 4: changed, 8: so that programs break; else it was not compared.
  EXPECT_TRUE(is_same || (WEXITSTATUS(told.status) & ~12) == 0) << told.output;
  return told.output;
}

TEST(Abi, IsThatWhichIsWrittenDown) {
  if (!test::can_run("abidiff")) GTEST_SKIP() << "needs abidiff, and there is none";
  bool is_same = false;
  const std::string found = differences(test::header_text(), is_same);
  EXPECT_TRUE(is_same) << found
                       << "Where that is meant: CHANGELOG.md tells it to callers, and\n"
                          "build/tests/capi_test --gtest_also_run_disabled_tests "
                          "--gtest_filter=Abi.DISABLED_IsWrittenDown\nwrites it down.";
}

TEST(Abi, ChangesAreFound) {
  if (!test::can_run("abidiff")) GTEST_SKIP() << "needs abidiff, and there is none";
  const std::pair<const char*, const char*> changes[] = {
      {"uint32_t resume;", "uint32_t new_one; uint32_t resume;"},
      {"uint32_t drafted, accepted;", "uint32_t accepted, drafted;"},
      {"uint32_t drafted, accepted;", "uint32_t drafted, accepted; uint64_t later;"},
      {"float temperature;", "int32_t temperature;"},
      {"cairn_wait_fd(const cairn_conversation* c)", "cairn_wait_fd(cairn_conversation* c)"},
      {"uint32_t position, cairn_plan* done", "uint64_t position, cairn_plan* done"},
      {"CAIRN_DONE = 1", "CAIRN_DONE = 7"},
      {"CAIRN_API int cairn_wait_fd", "CAIRN_API int cairn_waits_fd"}};
  for (const auto& [before, after] : changes) {
    SCOPED_TRACE(after);
    std::string header = test::header_text();
    const size_t at = header.find(before);
    ASSERT_NE(at, std::string::npos);
    header.replace(at, std::string(before).size(), after);
    bool is_same = true;
    EXPECT_NE(differences(header, is_same), "");
    EXPECT_FALSE(is_same);
  }
}

TEST(Abi, DISABLED_IsWrittenDown) {
  const test::ScratchFolder folder;
  const test::Ran written = test::run("abidw --no-comp-dir-path --no-corpus-path --no-show-locs " +
                                      compiled(folder, test::header_text()) +
                                      " | sed \"s|path='.*/|path='|\" > " + kBaseline);
  EXPECT_EQ(written.status, 0) << written.output;
}

#endif  // __x86_64__

}  // namespace
}  // namespace cairn::abi_test
