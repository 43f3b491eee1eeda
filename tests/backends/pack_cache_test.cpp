// Packed weights that outlive the program: what comes back is what was packed, and a file that is
// damaged, foreign or cannot be written costs a warning and nothing else.
#include "backends/cpu/pack/pack_cache.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "backends/cpu/pack/pack.h"
#include "tests/backends/matmul_fixture.h"
#include "tests/scratch_folder.h"

namespace cairn::cpu::pack_cache_test {
namespace {

namespace fs = std::filesystem;
using matmul_test::Matrix;

// Some weights of several types; large enough that the data has more than one piece.
class PackCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    matmul_test::Random random(5);
    add("Q4_K", 256, 9000, 1);
    add("Q8_0", 64, 100, 3);
    add("F16", 1024, 1500, 1);
    for (Matrix& matrix : matrices_) {
      for (std::byte& byte : matrix.blocks) byte = std::byte(random() & 0x3b);
    }
  }

  void add(const char* type, int32_t cols, int32_t rows, int32_t count) {
    matrices_.emplace_back(*quant::find(type), cols, rows, count);
  }

  PackOptions options(uint64_t model = 77) const {
    return {.cache_path = folder_.path() / "inner" / "model.cairnpack", .model_digest = model};
  }
  fs::path path() const { return options().cache_path; }

  // The packed bytes of all matrices, one after the other.
  struct Packed {
    std::vector<uint8_t> bytes;
    size_t bytes_read = 0;  // Of the blocks, while it was made.
  };
  Packed pack(const PackOptions& pack_options) {
    ThreadPool threads(2);
    std::atomic<size_t> bytes_read{0};
    PackedWeights weights(
        {.options = pack_options,
         .advice = {.before_reading = {},
                    .after_reading = [&](auto blocks) { bytes_read += blocks.size(); }},
         .on_progress = {}});
    std::vector<const PackedMatrix*> packed;
    for (const Matrix& matrix : matrices_) {
      auto added = weights.add(matrix.weight);
      EXPECT_TRUE(added);
      packed.push_back(*added);
    }
    EXPECT_TRUE(weights.pack(packed, threads));
    Packed out;
    for (size_t i = 0; i < packed.size(); ++i) {
      const int64_t size =
          packed[i]->group_bytes * packed[i]->group_count * matrices_[i].weight.count;
      out.bytes.insert(out.bytes.end(), packed[i]->data, packed[i]->data + size);
    }
    out.bytes_read = bytes_read;
    return out;
  }

  std::string read() const { return test::contents_of(path()); }
  void write(const std::string& text) const {
    std::ofstream(path(), std::ios::binary | std::ios::trunc) << text;
  }
  // What else lies in the cache's folder.
  int64_t file_count() const {
    return std::distance(fs::directory_iterator(path().parent_path()), fs::directory_iterator());
  }

  test::ScratchFolder folder_;
  std::vector<Matrix> matrices_;
};

TEST_F(PackCacheTest, WhatComesBackIsWhatWasPacked) {
  const Packed fresh = pack({});
  EXPECT_GT(fresh.bytes_read, 0u);
  const Packed first = pack(options());
  EXPECT_EQ(first.bytes, fresh.bytes);
  ASSERT_TRUE(fs::exists(path()));
  const auto written = fs::last_write_time(path());
  const Packed second = pack(options());
  EXPECT_EQ(second.bytes, fresh.bytes);
  EXPECT_EQ(second.bytes_read, 0u);
  EXPECT_EQ(fs::last_write_time(path()), written);
  EXPECT_EQ(file_count(), 1);
}

TEST_F(PackCacheTest, DamageIsFoundAndRepaired) {
  const Packed fresh = pack(options());
  const std::string whole = read();
  const size_t data = size_t(2) << 20;
  ASSERT_GT(whole.size(), 2 * data);  // More than one piece.
  const std::vector<size_t> places = {
      0, 8, 12, 16, 24, 32, 40, 48, 56, data - 1, data, data + 12345, 2 * data, whole.size() - 1};
  for (const size_t place : places) {
    std::string damaged = whole;
    damaged[place] = char(damaged[place] ^ 0x10);
    write(damaged);
    const Packed packed = pack(options());
    EXPECT_EQ(packed.bytes, fresh.bytes) << place;
    // Zeros between the head and the data are no part of anything.
    if (place == data - 1) continue;
    EXPECT_GT(packed.bytes_read, 0u) << place;
    EXPECT_EQ(read(), whole) << place;
  }
}

TEST_F(PackCacheTest, OtherSizesAreRefused) {
  const Packed fresh = pack(options());
  const std::string whole = read();
  for (const size_t size : {size_t(1), size_t(47), size_t(48), size_t(2) << 20, whole.size() - 1}) {
    write(whole.substr(0, size));
    EXPECT_EQ(pack(options()).bytes, fresh.bytes) << size;
    EXPECT_EQ(read(), whole) << size;
  }
  write(whole + "x");
  EXPECT_EQ(pack(options()).bytes, fresh.bytes);
  EXPECT_EQ(read(), whole);
  write("");
  EXPECT_EQ(pack(options()).bytes, fresh.bytes);
  EXPECT_EQ(read(), whole);
}

TEST_F(PackCacheTest, EachRefusalSaysWhy) {
  const Packed fresh = pack(options());
  const std::string whole = read();
  const auto warning = [&](const PackOptions& with) {
    testing::internal::CaptureStderr();
    pack(with);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(warning(options()), "");
  EXPECT_NE(warning(options(78)).find("weights of this model"), std::string::npos);
  std::string other = whole;
  other[8] = char(kPackedLayout + 1);
  write(other);
  EXPECT_NE(warning(options()).find("expected layout"), std::string::npos);
  other = whole;
  other[whole.size() - 5] ^= 1;
  write(other);
  EXPECT_NE(warning(options()).find("damaged"), std::string::npos);
  write("GGUF and nothing else");
  EXPECT_NE(warning(options()).find("something else"), std::string::npos);
  matrices_[1].weight.name = "another";
  EXPECT_NE(warning(options()).find("weights of this model"), std::string::npos);
}

TEST_F(PackCacheTest, AFolderThatCannotBeIsAWarning) {
  const Packed fresh = pack({});
  std::ofstream(folder_.file("file")) << "x";
  PackOptions below_a_file = options();
  below_a_file.cache_path = folder_.path() / "file" / "model.cairnpack";
  testing::internal::CaptureStderr();
  const Packed packed = pack(below_a_file);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("pack cache"), std::string::npos);
  EXPECT_EQ(packed.bytes, fresh.bytes);
}

// Runs `action` in a process of its own; whether it succeeded.
template <class Action>
int start(const Action& action) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(action() ? 0 : 1);
  return child;
}

bool succeeded(int child) {
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(PackCacheTest, AFullDiskLeavesNothing) {
  const Packed fresh = pack({});
  EXPECT_TRUE(succeeded(start([&] {
    // No file may grow beyond a megabyte: writing fails in the middle.
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    return ::setrlimit(RLIMIT_FSIZE, &limit) == 0 && pack(options()).bytes == fresh.bytes;
  })));
  EXPECT_EQ(file_count(), 0);
}

TEST_F(PackCacheTest, StartsAtTheSameTimeAreAllRight) {
  const Packed fresh = pack({});
  std::vector<int> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(start([&] { return pack(options()).bytes == fresh.bytes; }));
  }
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] { right += pack(options()).bytes == fresh.bytes; });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int child : children) EXPECT_TRUE(succeeded(child));
  EXPECT_EQ(right, 2);
  EXPECT_EQ(file_count(), 1);
  EXPECT_EQ(pack(options()).bytes_read, 0u);
}

}  // namespace
}  // namespace cairn::cpu::pack_cache_test
