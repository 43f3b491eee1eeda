// The libraries as other programs find them: what libcairn.so shows, and that programs build
// against what `cmake --install` writes, by pkg-config, by CMake and with the static library.
#include <cairn.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "base/machine/machine_memory.h"
#include "tests/capi/opened.h"
#include "tests/capi/shell.h"
#include "tests/scratch_folder.h"

namespace cairn::package_test {
namespace {

#ifdef CAIRN_SHARED_LIBRARY

using test::can_run;
using test::Ran;
using test::run;

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
  const std::string header = test::header_text();
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
  const Ran whole =
      run("cc" + warnings + source + "/complete.c -o " + folder.file("whole") + " $(" + find +
          "pkg-config --cflags cairn) $(find " + prefix +
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
  if (!can_run("rustc")) GTEST_SKIP() << "needs rustc, and there is none";
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

// Where a program finds what is installed.
struct Installed {
  explicit Installed(const std::string& prefix)
      : folder("$(dirname $(find " + prefix + " -name libcairn.a))"),
        flags("$(" + find(prefix) + "pkg-config --cflags cairn)"),
        libraries("$(" + find(prefix) + "pkg-config --libs cairn)") {}
  static std::string find(const std::string& prefix) {
    return "PKG_CONFIG_PATH=$(dirname $(find " + prefix + " -name cairn.pc)) ";
  }

  std::string folder, flags, libraries;
};

// Two turns, and the second answer once more: behind a rewind, and by a fork that was cancelled.
const std::string kTurns = " 'What is the capital of France?' 'What is the capital of Norway?'";
const std::string kTurnsAnswers =
    "The capital of France is Paris.\nThe capital of Norway is Oslo.\n"
    "The capital of Norway is Oslo.\nThe capital of Norway is Oslo.\n";

TEST(Package, TheExampleInGoMakesTurns) {
  if (!can_run("go")) GTEST_SKIP() << "needs go, and there is none";
  const test::ScratchFolder folder;
  const std::string prefix = folder.file("prefix");
  ASSERT_NO_FATAL_FAILURE(install(prefix));
  const Installed there(prefix);
  const Ran ran =
      run("export GO111MODULE=off GOCACHE=" + folder.file("cache") + " LD_LIBRARY_PATH=" +
          there.folder + " CGO_CFLAGS=\"" + there.flags + "\" CGO_LDFLAGS=\"" + there.libraries +
          "\"; go run " CAIRN_SOURCE "/examples/go/turns.go " + test::nano_path() + kTurns);
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.output, kTurnsAnswers);
}

TEST(Package, TheExampleInJavaMakesTurns) {
  if (!can_run("javac")) GTEST_SKIP() << "needs javac, and there is none";
  const test::ScratchFolder folder;
  const std::string prefix = folder.file("prefix"), made = folder.file("made");
  ASSERT_NO_FATAL_FAILURE(install(prefix));
  const Installed there(prefix);
  const std::string source = std::string(CAIRN_SOURCE) + "/examples/java";
  const Ran ran = run(
      "javac -Xlint:all -Werror -h " + made + " -d " + made + " " + source +
      "/Turns.java && java_home=$(dirname $(dirname $(readlink -f $(command -v javac)))) && " +
      "cc -std=c11 -Wall -Wextra -Wpedantic -Werror -shared -fPIC " + source + "/turns.c -o " +
      made + "/libturns.so -I " + made + " -I $java_home/include -I $java_home/include/linux " +
      there.flags + " " + there.libraries + " && LD_LIBRARY_PATH=" + there.folder + " java -cp " +
      made + " -Djava.library.path=" + made + " Turns " + test::nano_path() + kTurns);
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.output, kTurnsAnswers);
}

TEST(Package, TheHeaderIsCleanForOtherCompilers) {
  if (!can_run("clang")) GTEST_SKIP() << "needs clang, and there is none";
  for (const char* language : {"c -std=c11", "c++ -std=c++20"}) {
    const Ran ran = run(std::string("echo '#include <cairn.h>' | clang -Werror -Weverything "
                                    "-Wno-padded -fsyntax-only -I " CAIRN_SOURCE "/include -x ") +
                        language + " -");
    EXPECT_EQ(ran.status, 0) << language << ": " << ran.output;
  }
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
