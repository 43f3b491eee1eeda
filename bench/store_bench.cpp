// What the store costs: opening one of many sequences, the pace of an answer while much is written,
// and the first token after a restart. Stored sequences have tokens and blocks as the model's own
// would, but nobody computed their bytes: what they cost to write and to read is the same.
//   store_bench open FOLDER [SEQUENCES [TOKENS [GIB]]]
//   store_bench write MODEL FOLDER [MIB [PAIRS]]
//   store_bench restart MODEL FOLDER [TOKENS]
// FOLDER must not exist, and stays.
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "backends/host/kv_page.h"
#include "bench/figures.h"
#include "device/host_memory.h"
#include "engine/generator.h"
#include "store/disk_store.h"

namespace {

using namespace cairn;
using namespace cairn::bench;
using Clock = std::chrono::steady_clock;
using Tokens = std::vector<Token>;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Takes blocks for the tokens, whose bytes are whatever they are.
Status append(memory::Memory& memory, memory::Sequence& sequence, std::span<const Token> tokens) {
  constexpr size_t kPieceTokens = 2048;
  while (!tokens.empty()) {
    const auto piece = tokens.first(std::min(kPieceTokens, tokens.size()));
    CAIRN_TRY(memory::Transaction transaction,
              memory.begin(sequence, {.tokens = piece, .keeps_hidden = true}));
    transaction.commit(int32_t(piece.size()));
    tokens = tokens.subspan(piece.size());
  }
  return Ok{};
}

// The system forgets what it has of the files.
void forget_files(const std::string& folder) {
  ::sync();
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (!file.is_regular_file()) continue;
    const int opened = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
    if (opened >= 0) (void)::posix_fadvise(opened, 0, 0, POSIX_FADV_DONTNEED);
    if (opened >= 0) ::close(opened);
  }
}

// Records that no sequence needs, of the size that most have: opening a store counts them, and
// reads nothing of them, so that they are empty.
Status add_records(const std::string& folder, int64_t gib) {
  constexpr int64_t kRecordBytes = int64_t(2) << 20;
  for (int64_t number = 0; number < (gib << 30) / kRecordBytes; ++number) {
    const std::string hex = hex_of(Sha256().add("record").add(uint64_t(number)).finish());
    const std::filesystem::path place =
        std::filesystem::path(folder) / "objects" / hex.substr(0, 2);
    std::filesystem::create_directory(place);
    const int file = ::open((place / hex).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0400);
    const bool is_made = file >= 0 && ::ftruncate(file, kRecordBytes) == 0;
    if (file >= 0) ::close(file);
    if (!is_made) return fail(ErrorCode::io, "{}: cannot write", folder);
  }
  return Ok{};
}

// Until the store answers, until it knows all that it has, and the processor's time for both.
Status time_opening(const std::string& folder, bool is_cold) {
  const Clock::time_point begin = Clock::now();
  const std::clock_t computed = std::clock();
  CAIRN_TRY(const auto store, store::DiskStore::open({.path = folder, .is_read_aside = true}));
  const double opened = seconds_since(begin);
  const size_t count = store->entries().size();
  fmt::print(
      "{}: opened in {:.1f} ms; {} sequences and {} MiB are known after {:.0f} ms, {:.0f} of them "
      "computing\n",
      is_cold ? "cold" : "in the page cache", opened * 1e3, count, store->stats().bytes >> 20,
      seconds_since(begin) * 1e3, double(std::clock() - computed) / CLOCKS_PER_SEC * 1e3);
  return Ok{};
}

// A model of two layers, of which nothing is computed.
Status bench_open(const std::string& folder, int32_t count, int32_t token_count, int64_t gib) {
  const std::vector<std::vector<State>> layers(2, {State::full(1, 32, 32)});
  memory::Layout layout =
      memory::Layout::make(layers, host::kPageFormat, KvType::f16, KvType::f16, 16);
  HostMemory host;
  CAIRN_TRY(const auto memory,
            memory::Memory::create(std::move(layout),
                                   {.budget_bytes = size_t(512) << 20,
                                    .context_tokens_max = std::max(token_count, 4096)},
                                   host));
  std::mt19937 random(1);
  const Sha256Digest fingerprint = Sha256().add("bench").finish();
  {
    CAIRN_TRY(const auto store,
              store::DiskStore::open({.path = folder, .budget_bytes = uint64_t(1) << 40}));
    for (int32_t number = 0; number < count; ++number) {
      memory::Sequence sequence = memory->new_sequence();
      CAIRN_TRY(append(*memory, sequence, random_tokens(random, token_count, 32000)));
      const store::Snapshot snapshot(*memory, std::move(sequence), fingerprint, "bench");
      CAIRN_TRY(store->write(snapshot, store::Durability::cache));
    }
  }
  CAIRN_TRY(add_records(folder, gib));
  for (const bool is_cold : {true, true, true, false, false, false, false, false}) {
    if (is_cold) forget_files(folder);
    CAIRN_TRY(time_opening(folder, is_cold));
  }
  return Ok{};
}

class Decoding {
 public:
  Decoding(Engine* engine, std::mt19937* random) : engine_(engine), generator_(engine) {
    prompt_ = random_tokens(*random, 64, engine->size().vocabulary_count);
  }
  Status begin() {
    CAIRN_TRY(generator_.read(prompt_));
    return Ok{};
  }
  // Tokens a second, at least so many tokens, and until it says so; always at the same depths.
  template <class Until>
  Result<double> pace(int32_t token_count_min, Until until) {
    int32_t count = 0;
    const Clock::time_point begin = Clock::now();
    while (count < token_count_min || !until()) {
      if (count % 512 == 511) CAIRN_TRY(this->begin());
      CAIRN_TRY(generator_.advance(Token(count % 100)));
      ++count;
    }
    return count / seconds_since(begin);
  }

 private:
  Engine* engine_;
  Generator generator_;
  Tokens prompt_;
};

Result<std::unique_ptr<Engine>> load(const std::string& model, const std::string& folder) {
  CAIRN_TRY(gguf::File file, gguf::File::open(model));
  EngineOptions options;
  options.memory_budget = size_t(12) << 30;
  options.cache_dir = folder;
  options.cache_audit_interval = 0;
  return Engine::load(std::move(file), options);
}

// As many tokens as have about so many bytes.
Result<memory::Sequence> sequence_of_bytes(Engine& engine, std::mt19937& random, size_t bytes) {
  memory::Memory& memory = engine.memory();
  const int32_t probe = 4096;
  const size_t probe_bytes = memory.plan(memory.new_sequence(), probe).new_bytes;
  const int64_t wanted = int64_t(bytes / (probe_bytes / probe));
  const int32_t count = int32_t(std::min<int64_t>(wanted, engine.options().context_tokens));
  memory::Sequence sequence = memory.new_sequence();
  CAIRN_TRY(append(memory, sequence, random_tokens(random, count, engine.size().vocabulary_count)));
  return sequence;
}

Status bench_write(const std::string& model, const std::string& folder, size_t mib, int32_t pairs) {
  CAIRN_TRY(const auto engine, load(model, folder));
  SequenceStore& store = *engine->sequence_store();
  const Sha256Digest fingerprint = engine->fingerprint(engine->default_selection()).digest();
  std::mt19937 random(1);
  Decoding decoding(engine.get(), &random);
  CAIRN_TRY(decoding.begin());
  std::vector<double> changes;
  for (int32_t pair = 0; pair < pairs; ++pair) {
    std::vector<memory::Sequence> sequences;
    size_t bytes = 0;
    const size_t used = engine->memory().usage().used_bytes();
    while (bytes < mib << 20) {
      CAIRN_TRY(memory::Sequence sequence, sequence_of_bytes(*engine, random, (mib << 20) - bytes));
      sequences.push_back(std::move(sequence));
      bytes = engine->memory().usage().used_bytes() - used;
    }
    const auto at_once = [] { return true; };
    CAIRN_TRY(const double before, decoding.pace(2048, at_once));
    const uint64_t written = store.stats().written_bytes;
    for (const memory::Sequence& sequence : sequences) store.keep(sequence, fingerprint);
    const Clock::time_point begin = Clock::now();
    CAIRN_TRY(const double meanwhile, decoding.pace(512, [&] { return !store.holds_memory(); }));
    const double seconds = seconds_since(begin);
    CAIRN_TRY(const double after, decoding.pace(2048, at_once));
    const double quiet = (before + after) / 2;
    changes.push_back(meanwhile / quiet - 1);
    fmt::print(
        "quiet {:.2f} and {:.2f} tokens/s, {:.2f} while {} MiB are written in {:.1f} s: "
        "{:+.2f} %\n",
        before, after, meanwhile, (store.stats().written_bytes - written) >> 20, seconds,
        changes.back() * 100);
  }
  fmt::print("median {:+.2f} %\n", quantile(changes, 0.5) * 100);
  return Ok{};
}

// All of the folder, one file after the other, as fast as the disk gives it.
double read_seconds(const std::string& folder, uint64_t& bytes) {
  std::vector<char> buffer(size_t(2) << 20);
  const Clock::time_point begin = Clock::now();
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder + "/objects")) {
    if (!file.is_regular_file()) continue;
    const int opened = ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
    for (ssize_t count = 0; (count = ::read(opened, buffer.data(), buffer.size())) > 0;) {
      bytes += uint64_t(count);
    }
    ::close(opened);
  }
  return seconds_since(begin);
}

Status bench_restart(const std::string& model, const std::string& folder, int32_t token_count) {
  std::mt19937 random(1);
  Tokens tokens;
  {
    CAIRN_TRY(const auto engine, load(model, folder));
    tokens = random_tokens(random, token_count, engine->size().vocabulary_count);
    memory::Sequence sequence = engine->memory().new_sequence();
    CAIRN_TRY(append(engine->memory(), sequence, tokens));
    const Sha256Digest fingerprint = engine->fingerprint(engine->default_selection()).digest();
    engine->sequence_store()->keep(sequence, fingerprint);
  }
  for (const bool is_cold : {true, true, true, false, false, false}) {
    uint64_t bytes = 0;
    if (is_cold) forget_files(folder);
    const double disk = read_seconds(folder, bytes);
    CAIRN_TRY(const auto engine, load(model, folder));
    if (is_cold) forget_files(folder);
    Generator generator(engine.get());
    const Clock::time_point begin = Clock::now();
    CAIRN_TRY(const PromptReport report, generator.read(tokens));
    const float first = generator.logits()[0];
    const double seconds = seconds_since(begin);
    fmt::print(
        "{}: {} of {} tokens computed, {:.0f} ms to the logits for {} MiB; reading the files "
        "alone {:.0f} ms: {:+.0f} ms{}\n",
        is_cold ? "cold" : "in the page cache", report.computed_tokens, report.prompt_tokens,
        seconds * 1e3, bytes >> 20, disk * 1e3, (seconds - disk) * 1e3,
        first == first ? "" : " (no number)");
  }
  return Ok{};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> given(argv + 1, argv + argc);
  const auto number = [&](size_t index, int32_t otherwise) {
    return given.size() > index ? std::atoi(given[index].c_str()) : otherwise;
  };
  Status status = fail(
      ErrorCode::invalid_argument,
      "store_bench open FOLDER [SEQUENCES [TOKENS [GIB]]] | write MODEL FOLDER [MIB [PAIRS]] | "
      "restart MODEL FOLDER [TOKENS]");
  if (given.size() >= 2 && given[0] == "open") {
    status = bench_open(given[1], number(2, 10000), number(3, 2048), number(4, 0));
  }
  if (given.size() >= 3 && given[0] == "write") {
    status = bench_write(given[1], given[2], size_t(number(3, 1024)), number(4, 5));
  }
  if (given.size() >= 3 && given[0] == "restart") {
    status = bench_restart(given[1], given[2], number(3, 32768));
  }
  if (status) return 0;
  fmt::print(stderr, "{}\n", status.error().message);
  return 1;
}
