// A folder of its own for a test, removed with what the test has put there; and files in it, whole.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

namespace cairn::test {

class ScratchFolder {
 public:
  explicit ScratchFolder(
      const std::filesystem::path& base = std::filesystem::temp_directory_path()) {
    std::string pattern = (base / "cairn-test-XXXXXX").string();
    if (const char* made = ::mkdtemp(pattern.data())) path_ = made;
    EXPECT_FALSE(path_.empty()) << "no folder like " << pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string contents_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return std::move(text).str();
}

inline void write_to(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace cairn::test
