// Feeds the fuzz target's function with seeded mutations of real files: bit flips, overwritten
// lengths, truncations, splices and duplications, mostly in the bytes before the tensor data. Any
// crash, failed CHECK or sanitizer report fails; so does memory out of proportion to the input.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "fuzz/gguf_fuzz.cpp"
#include "tests/gguf/raw_file.h"
#include "tests/sanitized.h"

namespace {

std::atomic<size_t> live_bytes{0};
std::atomic<size_t> peak_bytes{0};

}  // namespace

// The test program's own allocator: counts what is alive. Not inlined, or the compiler takes the
// pair of malloc and free apart and warns of a mismatch.
[[gnu::noinline]] void* operator new(size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  const size_t live = live_bytes += malloc_usable_size(memory);
  size_t peak = peak_bytes;
  while (live > peak && !peak_bytes.compare_exchange_weak(peak, live)) {
  }
  return memory;
}

[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return operator new(size);
}

[[gnu::noinline]] void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  live_bytes -= malloc_usable_size(memory);
  std::free(memory);
}

[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept {
  operator delete(memory);
}

namespace cairn::gguf::mutation_test {
namespace {

constexpr size_t kMutations = test::cases(21000);
// The design's bound: memory for each byte of the file, and a little besides.
constexpr size_t kMemoryPerByte = 16;
constexpr size_t kMemoryBesides = size_t(1) << 20;

struct Seed {
  std::string bytes;
  size_t head;  // Bytes before the tensor data.
};

std::vector<Seed> real_files() {
  std::vector<Seed> seeds;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(CAIRN_FIXTURES "/golden")) {
    if (entry.path().extension() == ".gguf") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) {
    auto bytes = read_file(path.string(), size_t(1) << 26);
    EXPECT_TRUE(bytes);
    auto file = File::from_bytes(std::as_bytes(std::span(*bytes)), path.string());
    EXPECT_TRUE(file) << file.error().message;
    const std::byte* data = file->tensors()[0].bytes.data() - file->tensors()[0].offset;
    const size_t head = size_t(reinterpret_cast<const char*>(data) - bytes->data());
    seeds.push_back({std::move(*bytes), head});
  }
  return seeds;
}

void run(const char* data, size_t size) {
  const size_t before = live_bytes;
  peak_bytes = before;
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(data), size);
  // Two openings are alive at once, and a small file's copy beside them.
  ASSERT_LE(peak_bytes - before, 2 * kMemoryPerByte * size + kMemoryBesides);
}

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  size_t below(size_t limit) { return size_t(random_() % limit); }

  // Changes bytes in place and gives them back afterwards.
  void overwrite(Seed& seed) {
    std::vector<std::pair<size_t, char>> undo;
    const auto change = [&](size_t at, char to) {
      undo.emplace_back(at, seed.bytes[at]);
      seed.bytes[at] = to;
    };
    const size_t changes = 1 + below(4);
    for (size_t change_index = 0; change_index < changes; ++change_index) {
      const size_t at = below(seed.head - 8);
      if (below(2) == 0) {
        change(at, char(seed.bytes[at] ^ (1 << below(8))));
      } else {
        const uint64_t value = number();
        for (size_t byte = 0; byte < 8; ++byte) change(at + byte, char(value >> (8 * byte)));
      }
    }
    run(seed.bytes.data(), seed.bytes.size());
    std::reverse(undo.begin(), undo.end());
    for (const auto& [at, was] : undo) seed.bytes[at] = was;
  }

  // Copies of exactly the mutated size, so that a sanitizer sees a read beyond their end.
  void cut(const Seed& seed) {
    const size_t size = below(4) == 0 ? below(seed.bytes.size()) : below(seed.head);
    const std::vector<char> copy(seed.bytes.begin(), seed.bytes.begin() + ptrdiff_t(size));
    run(copy.data(), copy.size());
  }

  void splice(const Seed& seed, const Seed& other) {
    const size_t at = below(seed.head);
    const size_t from = below(other.head);
    std::string copy = seed.bytes.substr(0, at);
    copy += other.bytes.substr(from, other.head - from + below(4096));
    run(copy.data(), copy.size());
  }

  void duplicate(const Seed& seed) {
    const size_t from = below(seed.head);
    const size_t size = 1 + below(std::min<size_t>(seed.head - from, 200));
    std::string copy = seed.bytes.substr(0, seed.head);
    copy.insert(below(seed.head), copy.substr(from, size));
    run(copy.data(), copy.size());
  }

 private:
  // Numbers that break careless arithmetic.
  uint64_t number() {
    constexpr uint64_t kNumbers[] = {0, 1, 2, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0xffffffff};
    const uint64_t small = kNumbers[below(std::size(kNumbers))];
    switch (below(4)) {
      case 0:
        return small;
      case 1:
        return small << 32;
      case 2:
        return ~small;
      default:
        return uint64_t(1) << below(64);
    }
  }

  std::mt19937_64 random_;
};

TEST(Mutation, SeededMutationsOfRealFilesNeverCrash) {
  std::vector<Seed> seeds = real_files();
  ASSERT_GE(seeds.size(), 51u);
  for (size_t round = 0; round < kMutations; ++round) {
    Mutator mutator(round);
    Seed& seed = seeds[mutator.below(seeds.size())];
    switch (mutator.below(8)) {
      case 0:
        mutator.cut(seed);
        break;
      case 1:
        mutator.splice(seed, seeds[mutator.below(seeds.size())]);
        break;
      case 2:
        mutator.duplicate(seed);
        break;
      default:
        mutator.overwrite(seed);
    }
    if (HasFatalFailure()) FAIL() << "in round " << round;
  }
}

TEST(Mutation, EveryTruncationOfASmallFileIsRefusedOrRead) {
  std::vector<Seed> seeds = real_files();
  ASSERT_FALSE(seeds.empty());
  const std::string& bytes = seeds[0].bytes;
  for (size_t size = 0; size < std::min<size_t>(seeds[0].head, 2000); ++size) {
    const std::vector<char> copy(bytes.begin(), bytes.begin() + ptrdiff_t(size));
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(copy.data()), copy.size());
  }
}

// The most entries that a file of 1 MiB can hold: the bound of the design, and no more.
TEST(Mutation, MemoryStaysInProportionToTheFile) {
  raw::RawFile fields;
  raw::RawFile tensors;
  for (size_t entry = 0; entry < (size_t(1) << 20) / 20; ++entry) {
    fields.fields.push_back(raw::number_field(fmt::format("{}", entry), ValueType::u8, uint8_t(0)));
    if (entry % 2 == 0) tensors.tensors.push_back({.name = fmt::format("{}", entry), .dims = {1}});
  }
  for (const raw::RawFile& file : {fields, tensors}) {
    const std::vector<std::byte> bytes = file.build();
    for (const OpenMode mode : {OpenMode::strict, OpenMode::inspect}) {
      const size_t before = live_bytes;
      peak_bytes = before;
      (void)raw::open_error(bytes, mode);
      EXPECT_LE(peak_bytes - before, kMemoryPerByte * bytes.size() + kMemoryBesides);
    }
  }
}

TEST(Mutation, TheSeedCorpusRuns) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CAIRN_SOURCE "/fuzz/corpus/gguf")) {
    auto bytes = read_file(entry.path().string(), size_t(1) << 20);
    ASSERT_TRUE(bytes);
    run(bytes->data(), bytes->size());
    ++count;
  }
  EXPECT_GE(count, 12u);
}

}  // namespace
}  // namespace cairn::gguf::mutation_test
