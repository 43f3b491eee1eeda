// The libraries as other programs find them: what libcairn.so shows, and that programs build
// against what `cmake --install` writes, by pkg-config, by CMake and with the static library.
#include <cairn.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "base/machine/machine_memory.h"
#include "tests/capi/opened.h"
#include "tests/scratch_folder.h"

namespace cairn::package_test {
namespace {

#ifdef CAIRN_SHARED_LIBRARY

struct Ran {
  int status;
  std::string output;
};

Ran run(const std::string& command) {
  std::string output;
  FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "no pipe"};
  std::array<char, 4096> bytes;
  while (const size_t count = std::fread(bytes.data(), 1, bytes.size(), pipe)) {
    output.append(bytes.data(), count);
  }
  return {::pclose(pipe), output};
}

std::string header_text() {
  std::ifstream file(std::string(CAIRN_SOURCE) + "/include/cairn.h");
  std::stringstream read;
  read << file.rdbuf();
  return std::regex_replace(read.str(), std::regex("//[^\n]*"), std::string());
}

TEST(Package, TheLibraryShowsTheHeadersFunctionsAlone) {
  const Ran listed = run("nm -D --defined-only " CAIRN_SHARED_LIBRARY);
  ASSERT_EQ(listed.status, 0) << listed.output;
  std::set<std::string> shown, declared;
  std::istringstream lines(listed.output);
  for (std::string address, kind, name; lines >> address >> kind >> name;) {
    if (kind == "A") continue;  // The version itself.
    EXPECT_EQ(kind, "T") << name;
    shown.insert(name.substr(0, name.find('@')));
  }
  const std::string header = header_text();
  const std::regex functions(R"(CAIRN_API [^;(]*?(cairn_\w+)\()");
  for (std::sregex_iterator at(header.begin(), header.end(), functions), end; at != end; ++at) {
    declared.insert((*at)[1]);
  }
  EXPECT_GT(declared.size(), 30u);
  EXPECT_EQ(shown, declared);
}

void install(const std::string& prefix) {
  const Ran installed = run("cmake --install " CAIRN_BUILD " --component sdk --prefix " + prefix);
  ASSERT_EQ(installed.status, 0) << installed.output;
}

TEST(Package, ProgramsBuildAgainstWhatIsInstalled) {
  const test::ScratchFolder folder;
  const std::string prefix = folder.file("prefix");
  ASSERT_NO_FATAL_FAILURE(install(prefix));
  const std::string source = std::string(CAIRN_SOURCE) + "/examples/c";
  const std::string expected = "The capital of France is Paris.";
  const std::string question = " " + test::nano_path() + " 'What is the capital of France?'";

  // By pkg-config, shared and static.
  const std::string find = "PKG_CONFIG_PATH=$(dirname $(find " + prefix + " -name cairn.pc)) ";
  const std::string library = "LD_LIBRARY_PATH=$(dirname $(find " + prefix + " -name libcairn.a)) ";
  const std::string warnings = " -std=c11 -Wall -Wextra -Wpedantic -Werror ";
  const Ran shared =
      run("cc" + warnings + source + "/complete.c -o " + folder.file("shared") + " $(" + find +
          "pkg-config --cflags --libs cairn) && " + library + folder.file("shared") + question);
  EXPECT_EQ(shared.status, 0);
  EXPECT_NE(shared.output.find(expected), std::string::npos) << shared.output;
  const Ran whole = run("cc" + warnings + source + "/complete.c -o " + folder.file("whole") +
                        " $(" + find + "pkg-config --cflags cairn) $(find " + prefix +
                        " -name libcairn.a) -lspdlog -lfmt -lpcre2-8 -lutf8proc -lstdc++ -lm"
                        " -pthread && " +
                        folder.file("whole") + question);
  EXPECT_EQ(whole.status, 0);
  EXPECT_NE(whole.output.find(expected), std::string::npos) << whole.output;

  const Ran by_cmake =
      run("cmake -S " + source + " -B " + folder.file("cmake") + " -DCMAKE_PREFIX_PATH=" + prefix +
          " && cmake --build " + folder.file("cmake") + " && " + folder.file("cmake") +
          "/complete" + question + " && " + folder.file("cmake") + "/complete_static" + question);
  EXPECT_EQ(by_cmake.status, 0) << by_cmake.output;
  EXPECT_NE(by_cmake.output.find(expected), by_cmake.output.rfind(expected)) << by_cmake.output;
}

TEST(Package, TheExampleInCPlusPlusMakesBranches) {
  const test::ScratchFolder folder;
  const std::string prefix = folder.file("prefix"), program = folder.file("branches");
  ASSERT_NO_FATAL_FAILURE(install(prefix));
  const std::string find = "PKG_CONFIG_PATH=$(dirname $(find " + prefix + " -name cairn.pc)) ";
  const std::string library = "LD_LIBRARY_PATH=$(dirname $(find " + prefix + " -name libcairn.a)) ";
  const Ran ran = run("c++ -std=c++20 -Wall -Wextra -Wpedantic -Werror " CAIRN_SOURCE
                      "/examples/cpp/branches.cpp -o " +
                      program + " $(" + find + "pkg-config --cflags --libs cairn) && " + library +
                      program + " " + test::nano_path() + " 'What is the capital of Norway?' 2");
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.output, "The capital of Norway is Oslo.\nThe capital of Norway is Oslo.\n");
}

TEST(Package, TheExampleInRustAnswers) {
  if (run("command -v rustc").status != 0) GTEST_SKIP() << "needs rustc, and there is none";
  const test::ScratchFolder folder;
  const std::string prefix = folder.file("prefix"), program = folder.file("complete");
  ASSERT_NO_FATAL_FAILURE(install(prefix));
  const std::string library = "$(dirname $(find " + prefix + " -name libcairn.a))";
  const Ran ran = run("rustc --deny warnings " CAIRN_SOURCE "/examples/rust/complete.rs -o " +
                      program + " -C prefer-dynamic=no -L native=" + library +
                      " -l dylib=cairn && LD_LIBRARY_PATH=" + library + " " + program + " " +
                      test::nano_path() + " 'What is the capital of Norway?'");
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.output, "The capital of Norway is Oslo.\n");
}

size_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return size_t(std::distance(begin(all), end(all)));
}

// Plugins come and go.
TEST(Package, TheLibraryIsLoadedAndUnloaded) {
  const std::string path = test::nano_path();
  size_t descriptors = 0, threads = 0, bytes = 0;
  for (int round = 0; round < 1000; ++round) {
    void* const library = ::dlopen(CAIRN_SHARED_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << ::dlerror();
    const auto open =
        reinterpret_cast<decltype(&cairn_model_open)>(::dlsym(library, "cairn_model_open"));
    const auto close =
        reinterpret_cast<decltype(&cairn_model_close)>(::dlsym(library, "cairn_model_close"));
    const auto open_engine =
        reinterpret_cast<decltype(&cairn_engine_open)>(::dlsym(library, "cairn_engine_open"));
    const auto close_engine =
        reinterpret_cast<decltype(&cairn_engine_close)>(::dlsym(library, "cairn_engine_close"));
    ASSERT_NE(open, &cairn_model_open);  // The test itself has one of its own.
    if (round % 100 == 0) {
      cairn_model* model = nullptr;
      cairn_engine* engine = nullptr;
      cairn_engine_params params = test::sized<cairn_engine_params>();
      params.memory_budget_bytes = uint64_t(8) << 20;
      params.context_tokens = 64;
      params.thread_count = 2;
      ASSERT_EQ(open(path.c_str(), &model, nullptr), CAIRN_OK);
      ASSERT_EQ(open_engine(model, &params, &engine, nullptr), CAIRN_OK);
      close_engine(engine);
      close(model);
    }
    ASSERT_EQ(::dlclose(library), 0);
    ASSERT_EQ(::dlopen(CAIRN_SHARED_LIBRARY, RTLD_NOW | RTLD_NOLOAD), nullptr);
    if (round == 200) {
      descriptors = entries_of("/proc/self/fd");
      threads = entries_of("/proc/self/task");
      bytes = resident_bytes();
    }
  }
  EXPECT_EQ(entries_of("/proc/self/fd"), descriptors);
  EXPECT_EQ(entries_of("/proc/self/task"), threads);
  EXPECT_LE(resident_bytes(), bytes + (size_t(2) << 20));
}

#endif  // CAIRN_SHARED_LIBRARY

}  // namespace
}  // namespace cairn::package_test
