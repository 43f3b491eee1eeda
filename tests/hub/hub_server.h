// For tests: tests/hub/hub_server.py as a process of its own, which ends with this object; and
// small files that it serves.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "tests/scratch_folder.h"

namespace cairn::hub {

class HubServer {
 public:
  // Of the folder's files; over TLS where there is a certificate and a key.
  explicit HubServer(const std::filesystem::path& folder, const std::string& certificate = "",
                     const std::string& key = "")
      : folder_(folder), scheme_(certificate.empty() ? "http" : "https") {
    std::vector<std::string> words = {"python3", CAIRN_SOURCE "/tests/hub/hub_server.py",
                                      folder.string()};
    if (!certificate.empty()) words.insert(words.end(), {certificate, key});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    int in[2], out[2];
    EXPECT_EQ(::pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(::pipe2(out, O_CLOEXEC), 0);
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      ::execvp(arguments[0], arguments.data());
      ::_exit(127);
    }
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    std::FILE* const said = ::fdopen(out[0], "r");
    EXPECT_EQ(std::fscanf(said, "%d %d", &hub_port_, &storage_port_), 2);
    std::fclose(said);
  }
  ~HubServer() {
    ::close(input_);
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  HubServer(const HubServer&) = delete;
  HubServer& operator=(const HubServer&) = delete;

  std::string url() const { return scheme_ + "://127.0.0.1:" + std::to_string(hub_port_); }
  std::string storage_url() const {
    return scheme_ + "://127.0.0.1:" + std::to_string(storage_port_);
  }
  // The requests so far, a line of JSON each.
  std::string log() const { return test::contents_of((folder_ / "log").string()); }
  void forget_log() const { std::filesystem::remove(folder_ / "log"); }

 private:
  std::filesystem::path folder_;
  std::string scheme_;
  pid_t process_ = -1;
  int input_ = -1, hub_port_ = 0, storage_port_ = 0;
};

// Bytes that begin as a model does and repeat nowhere.
inline std::string model_bytes(size_t size, uint32_t seed = 1) {
  std::string bytes = "GGUF";
  uint32_t state = seed;
  while (bytes.size() < size) {
    state = state * 1664525 + 1013904223;
    bytes += char(state >> 24);
  }
  return bytes;
}

inline std::string hex_digest(const std::string& bytes) {
  return hex_of(Sha256().add(bytes).finish());
}

// FOLDER/REPOSITORY/PATH.
inline void put(const std::filesystem::path& folder, const std::string& path,
                const std::string& bytes) {
  std::filesystem::create_directories((folder / path).parent_path());
  test::write_to((folder / path).string(), bytes);
}

inline size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace cairn::hub
