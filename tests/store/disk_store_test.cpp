// Sequences of every kind of layer survive a restart; what is damaged, missing or of another kind
// is a miss or a shorter beginning, never a wrong bit; a store stays within its budget.
#include "store/disk_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <random>

#include "store/crc32c.h"
#include "tests/store/store_bench.h"

namespace cairn::store::disk_store_test {
namespace {

using memory::Sequence;
using memory::toy::conversation;
using toy::full_model;
using toy::kFingerprint;
using toy::kVariant;
using toy::mixed_model;
using toy::read_text;
using toy::store_models;
using toy::StoreBench;
using toy::tokens_of;

TEST(DiskStore, EveryKindOfModelSurvivesARestart) {
  for (const memory::toy::ToyModel& model : store_models()) {
    StoreBench bench(model);
    const memory::Sequence original = conversation(bench.here);
    ASSERT_TRUE(bool(bench.write(original)));
    bench.reopen();
    const std::vector<Token> text = tokens_of(original);
    EXPECT_EQ(bench.restored(text), original.length());
    EXPECT_EQ(bench.restored(text, true), original.length());  // Its hidden row is there.
    for (int32_t length = 32; length <= original.length(); ++length) {
      const auto prompt = std::span(text).first(size_t(length));
      const int32_t expected = bench.here.memory->plan(original, length).resume;
      ASSERT_EQ(bench.restored(prompt), expected) << "of " << length;
    }
    std::vector<Token> longer = text;
    longer.resize(200, Token(7));
    EXPECT_EQ(bench.restored(longer, true), original.length());
    EXPECT_EQ(bench.restored(std::span(text).first(20)), 0);  // Less than a link.
    EXPECT_EQ(bench.store->stats().damaged, 0u);
  }
}

TEST(DiskStore, ALongSequenceHasManyRecordsThatItsBranchesShare) {
  memory::toy::ToyModel model = mixed_model();
  StoreBench bench(model);
  memory::Sequence first = bench.here.memory->new_sequence(kVariant);
  const std::vector<Token> text = memory::toy::tokens(900);
  for (size_t begin = 0; begin < text.size(); begin += 300) {
    const auto part = std::span(text).subspan(begin, 300);
    ASSERT_TRUE(bool(bench.here.read(first, {part.begin(), part.end()}, {100, 300})));
  }
  memory::Sequence second = bench.here.memory->at(first, 700).value();
  ASSERT_TRUE(bool(bench.here.read(second, memory::toy::tokens(50, 30))));
  ASSERT_TRUE(bool(bench.write(first)));
  const uint64_t written = bench.store->stats().written_bytes;
  ASSERT_TRUE(bool(bench.write(second)));
  EXPECT_LT(bench.store->stats().written_bytes - written, written);
  EXPECT_EQ(bench.restored(text), 900);
  EXPECT_EQ(bench.restored(tokens_of(second)), 750);
  EXPECT_EQ(bench.restored(std::span(text).first(650)), 600);
}

// Two sequences of the same tokens, whose logs begin in the middle of the same page: neither has
// what lies before the other's beginning.
TEST(DiskStore, LogsThatBeginElsewhereAreOtherRecords) {
  for (const memory::toy::ToyModel& model : {mixed_model(), store_models()[8]}) {
    for (const bool is_shorter_first : {true, false}) {
      StoreBench bench(model);
      const std::vector<Token> text = memory::toy::tokens(70);
      const auto read = [&](int32_t at_once) {
        Sequence sequence = bench.here.memory->new_sequence(kVariant);
        const auto first = std::span(text).first(size_t(at_once));
        EXPECT_TRUE(bool(bench.here.read(sequence, {first.begin(), first.end()})));
        for (const Token token : std::span(text).subspan(size_t(at_once))) {
          EXPECT_TRUE(bool(bench.here.read(sequence, {token})));
        }
        EXPECT_TRUE(bench.here.memory->suspend(sequence));
        EXPECT_EQ(sequence.log_begin(), at_once);
        return sequence;
      };
      const Sequence one = read(is_shorter_first ? 68 : 66);
      const Sequence other = read(is_shorter_first ? 66 : 68);
      ASSERT_TRUE(bool(bench.write(one)));
      ASSERT_TRUE(bool(bench.write(other)));
      bench.reopen();
      EXPECT_EQ(bench.restored(text), 70);
      EXPECT_EQ(bench.store->stats().damaged, 0u);
    }
  }
}

TEST(DiskStore, WritingAgainWritesNothing) {
  StoreBench bench(mixed_model());
  const memory::Sequence original = conversation(bench.here);
  const Sha256Digest name = bench.write(original).value();
  const uint64_t written = bench.store->stats().written_bytes;
  bench.reopen();
  EXPECT_EQ(bench.write(original).value(), name);
  EXPECT_EQ(bench.store->stats().written_bytes, 0u);
  EXPECT_EQ(bench.store->stats().bytes, written);
  EXPECT_EQ(bench.store->stats().entries, 1u);
}

// Attack 34.
TEST(DiskStore, OtherFingerprintsAndLayoutsFindNothing) {
  StoreBench bench(mixed_model());
  const memory::Sequence original = conversation(bench.here);
  ASSERT_TRUE(bool(bench.write(original)));
  const auto find = [&](const Sha256Digest& fingerprint, const memory::Layout& layout) {
    return bool(bench.store->find(fingerprint, layout, original.tokens(), false, 0));
  };
  EXPECT_TRUE(find(kFingerprint, bench.here.memory->layout()));
  EXPECT_FALSE(find(Sha256().add("another model").finish(), bench.here.memory->layout()));
  memory::toy::ToyBench other(full_model());
  EXPECT_FALSE(find(kFingerprint, other.memory->layout()));
  const auto known = bench.store->find(kFingerprint, bench.here.memory->layout(), original.tokens(),
                                       false, original.length());
  EXPECT_FALSE(known.has_value());
}

TEST(DiskStore, ALongerConversationReplacesItsBeginning) {
  StoreBench bench(full_model());
  memory::Sequence chat = read_text(bench.here, 100, 1);
  ASSERT_TRUE(bool(bench.write(chat)));
  ASSERT_TRUE(bool(bench.here.read(chat, memory::toy::tokens(100, 5), {20})));
  ASSERT_TRUE(bool(bench.write(chat)));
  EXPECT_EQ(bench.store->stats().entries, 1u);
  EXPECT_EQ(bench.restored(tokens_of(chat)), 200);
  // A border that the new one has not: both stay.
  memory::Sequence other = bench.here.memory->at(chat, 150).value();
  ASSERT_TRUE(bool(bench.here.read(other, memory::toy::tokens(40, 9))));
  ASSERT_TRUE(bool(bench.write(other)));
  EXPECT_EQ(bench.store->stats().entries, 2u);
}

// Of a disk of any size.
class SizedDisk : public FileCalls {
 public:
  explicit SizedDisk(int64_t bytes) : bytes_(bytes) {}
  int64_t disk_bytes(int) override { return bytes_; }

 private:
  int64_t bytes_;
};

// The folder is made by opening it, where nothing was before.
TEST(DiskStore, AFolderThatIsLentHasATenthOfItsDisk) {
  constexpr uint64_t kGiB = uint64_t(1) << 30;
  struct Case {
    uint64_t disk, told;
    bool is_lent;
    uint64_t expected;
  };
  for (const Case& c :
       {Case{100 * kGiB, 0, false, 10 * kGiB}, Case{100 * kGiB, 0, true, 10 * kGiB},
        Case{2000 * kGiB, 0, false, 20 * kGiB}, Case{2000 * kGiB, 0, true, 200 * kGiB},
        Case{2000 * kGiB, 5 * kGiB, false, 5 * kGiB}, Case{2000 * kGiB, 5 * kGiB, true, 5 * kGiB},
        Case{2000 * kGiB, 500 * kGiB, true, 500 * kGiB}}) {
    SizedDisk disk(int64_t(c.disk));
    const StoreBench bench(full_model(),
                           {.budget_bytes = c.told, .is_lent = c.is_lent, .calls = &disk});
    EXPECT_EQ(bench.store->stats().budget_bytes, c.expected)
        << c.disk / kGiB << " GiB, lent: " << c.is_lent << ", told: " << c.told / kGiB;
  }
}

TEST(DiskStore, TheBudgetHoldsAndTheOldestGoesFirst) {
  int64_t now = int64_t(4) << 60;
  StoreOptions options{.budget_bytes = 400'000};
  options.now_ns = [&] { return ++now; };
  StoreBench bench(mixed_model(), options);
  std::vector<std::vector<Token>> texts;
  ASSERT_TRUE(bool(bench.store->save("mine", *bench.snapshot_of(read_text(bench.here, 90, 500)))));
  for (int32_t number = 0; number < 30; ++number) {
    const memory::Sequence sequence = read_text(bench.here, 90, number);
    texts.push_back(tokens_of(sequence));
    ASSERT_TRUE(bool(bench.write(sequence)));
    ASSERT_LE(bench.store->stats().bytes, 400'000u);
    EXPECT_EQ(bench.restored(texts[0]), 90);  // What is used stays.
  }
  EXPECT_GT(bench.store->stats().evicted, 5u);
  EXPECT_EQ(bench.restored(texts[1]), 0);
  EXPECT_EQ(bench.restored(texts.back()), 90);
  EXPECT_EQ(bench.restored(tokens_of(read_text(bench.here, 90, 500))), 90);  // Saved ones stay.
  uint64_t bytes = 0;
  for (const char* part : {"objects", "manifests"}) {
    for (const std::string& path : bench.files(part)) bytes += std::filesystem::file_size(path);
  }
  EXPECT_EQ(bytes, bench.store->stats().bytes);
  bench.reopen();
  EXPECT_EQ(bench.store->stats().bytes, bytes);  // Counted before the first write.
}

constexpr uint64_t kAnna = 7, kBert = 8;

// A store whose sequences are tenants'. Nothing is read by `there`.
class TenantsBench : public StoreBench {
 public:
  explicit TenantsBench(uint64_t budget_bytes, toy::ToyModel toy = full_model())
      : StoreBench(std::move(toy), {.budget_bytes = budget_bytes}) {
    options.now_ns = [this] { return ++now_; };
    reopen();
  }
  static Sha256Digest fingerprint_of(uint64_t tenant) {
    return Sha256().add("a model").add(tenant).finish();
  }
  std::unique_ptr<Snapshot> made(uint64_t tenant, int32_t number, int32_t count = 64,
                                 const std::vector<int32_t>& captures = {}) {
    Sequence sequence = here.memory->new_sequence(memory::Variant(5, tenant));
    EXPECT_TRUE(bool(here.read(sequence, text_of(number, count), captures)));
    return std::make_unique<Snapshot>(*here.memory, std::move(sequence), fingerprint_of(tenant),
                                      "toy");
  }
  void write(uint64_t tenant, int32_t first, int32_t count) {
    for (int32_t number = first; number < first + count; ++number) {
      EXPECT_TRUE(bool(store->write(*made(tenant, number), Durability::cache))) << number;
      EXPECT_LE(store->stats().bytes, options.budget_bytes);
    }
  }
  bool has(uint64_t tenant, int32_t number) const {
    return store->covers(fingerprint_of(tenant), here.memory->layout(), text_of(number, 64));
  }
  int32_t count_of(uint64_t tenant, int32_t below) const {
    int32_t count = 0;
    for (int32_t number = 0; number < below; ++number) count += int32_t(has(tenant, number));
    return count;
  }

 private:
  static std::vector<Token> text_of(int32_t number, int32_t count) {
    std::vector<Token> text = memory::toy::tokens(count, 1);
    text[0] = Token(1000 + number);
    return text;
  }
  int64_t now_ = int64_t(4) << 60;
};

uint64_t bytes_of_one() {
  TenantsBench bench(uint64_t(1) << 30);
  bench.write(kAnna, 0, 1);
  return bench.store->stats().bytes;
}

struct Flooded {
  int32_t annas = 0, berts = 0;  // That are left.
};

// Anna has six, a new process comes, and Bert writes forty. Eighteen are the room.
Flooded flooded(const std::vector<uint64_t>& tenants, double part) {
  TenantsBench bench(20 * bytes_of_one());
  bench.store->set_shares(tenants, part);
  bench.write(kAnna, 0, 6);
  bench.reopen();
  bench.store->set_shares(tenants, part);
  bench.write(kBert, 0, 40);
  EXPECT_EQ(bench.store->verify().value().bad_records, 0u);
  EXPECT_TRUE(bench.has(kBert, 39));
  return {.annas = bench.count_of(kAnna, 6), .berts = bench.count_of(kBert, 40)};
}

TEST(DiskStore, AFloodDrivesOutWhatIsItsOwn) {
  const Flooded without = flooded({}, 1);
  EXPECT_EQ(without.annas, 0);
  EXPECT_GE(without.berts, 17);
  const Flooded with = flooded({kAnna, kBert}, 1);
  EXPECT_EQ(with.annas, 6);
  EXPECT_GE(with.berts, 11);
  EXPECT_EQ(flooded({kBert, kAnna}, 0.5).annas, 4);
  EXPECT_EQ(flooded({kAnna, kBert}, 0).annas, 0);
  EXPECT_EQ(flooded({kBert, 9}, 1).annas, 0);  // Who has no share any more.
}

// Where what is above a share cannot go, whoever writes loses its own: never others.
TEST(DiskStore, WhoWritesWithinItsShareLosesItsOwn) {
  TenantsBench bench(10 * bytes_of_one());
  bench.store->set_shares({kAnna, kBert, 9}, 1);
  for (int32_t number = 0; number < 5; ++number) {
    ASSERT_TRUE(bool(bench.store->save(std::to_string(number), *bench.made(kAnna, number))));
  }
  bench.write(9, 0, 2);
  bench.write(kBert, 0, 8);
  EXPECT_EQ(bench.count_of(kAnna, 5), 5);
  EXPECT_EQ(bench.count_of(9, 2), 2);
  EXPECT_TRUE(bench.has(kBert, 7));
  EXPECT_FALSE(bench.has(kBert, 0));
}

// What is being written counts as well: one sequence cannot drive out what all of them may not.
TEST(DiskStore, ASequenceThatIsAboveAShareTakesNothingOfOthers) {
  const toy::ToyModel states({{toy::ToyModel::recurrent()}});
  uint64_t one = 0;
  {
    TenantsBench bench(uint64_t(1) << 30, states);
    bench.write(kAnna, 0, 1);
    one = bench.store->stats().bytes;
  }
  TenantsBench bench(10 * one, states);
  bench.store->set_shares({kAnna, kBert}, 1);
  bench.write(kAnna, 0, 4);
  std::vector<int32_t> captures;
  for (int32_t position = 10; position < 900; position += 10) captures.push_back(position);
  const auto large = bench.made(kBert, 0, 900, captures);
  EXPECT_EQ(bench.store->write(*large, Durability::cache).error().code, ErrorCode::no_room);
  EXPECT_EQ(bench.count_of(kAnna, 4), 4);
  // Nor does it leave parts behind, which would be nobody's and take the place of what is written.
  bench.write(kAnna, 4, 1);
  EXPECT_EQ(bench.count_of(kAnna, 5), 5);
}

TEST(DiskStore, WithoutRoomNothingBecomesVisible) {
  StoreOptions options{.budget_bytes = 10'000};
  StoreBench bench(mixed_model(), options);
  const memory::Sequence original = conversation(bench.here);
  EXPECT_EQ(bench.write(original).error().code, ErrorCode::no_room);
  EXPECT_TRUE(bench.files("manifests").empty());
  bench.options.budget_bytes = 1 << 20;
  bench.options.free_bytes_min = UINT64_MAX / 2;
  bench.reopen();
  EXPECT_EQ(bench.write(original).error().code, ErrorCode::no_room);
  EXPECT_EQ(bench.store->stats().refused, 1u);
}

TEST(DiskStore, SavedSessionsHaveNames) {
  StoreBench bench(mixed_model());
  const memory::Sequence original = conversation(bench.here);
  ASSERT_TRUE(bool(bench.store->save("my-chat", *bench.snapshot_of(original))));
  EXPECT_FALSE(bool(bench.store->save("../chat", *bench.snapshot_of(original))));
  bench.reopen();
  const memory::Layout& layout = bench.there.memory->layout();
  const auto match = bench.store->open_session("my-chat", kFingerprint, layout).value();
  EXPECT_EQ(match.resume, original.length());
  const auto loaded =
      bench.store->load(*bench.there.memory, kVariant, kFingerprint, match, 0).value();
  bench.there.expect_exact(loaded);
  EXPECT_EQ(bench.store->open_session("none", kFingerprint, layout).error().code,
            ErrorCode::not_found);
  EXPECT_EQ(bench.store->open_session("my-chat", {}, layout).error().code, ErrorCode::unsupported);
}

// Saved again under its name, it is what the former version was for: that one goes.
TEST(DiskStore, SavingAgainLetsTheFormerVersionGo) {
  StoreBench bench(mixed_model(), {.budget_bytes = 600'000});
  memory::Sequence chat = read_text(bench.here, 40, 1);
  for (int32_t turn = 0; turn < 40; ++turn) {
    ASSERT_TRUE(bool(bench.here.read(chat, memory::toy::tokens(12, 100 + turn))));
    const Status saved = bench.store->save("mine", *bench.snapshot_of(chat));
    ASSERT_TRUE(bool(saved)) << "turn " << turn << ": " << saved.error().message;
  }
  EXPECT_LE(bench.store->stats().entries, 2u);
  // But not while another name stands for it.
  ASSERT_TRUE(bool(bench.store->save("before", *bench.snapshot_of(chat))));
  const int32_t length = chat.length();
  ASSERT_TRUE(bool(bench.here.read(chat, memory::toy::tokens(12, 7))));
  ASSERT_TRUE(bool(bench.store->save("mine", *bench.snapshot_of(chat))));
  const memory::Layout& layout = bench.here.memory->layout();
  EXPECT_EQ(bench.store->open_session("before", kFingerprint, layout).value().resume, length);
}

// What is there already is read before a session counts as saved.
TEST(DiskStore, SavingRepairsWhatIsDamaged) {
  StoreBench bench(full_model());
  const memory::Sequence original = read_text(bench.here, 64, 1);
  ASSERT_TRUE(bool(bench.write(original)));
  for (const std::string& path : bench.files("objects")) {
    std::string bytes = test::contents_of(path);
    bytes.back() = char(bytes.back() ^ 1);
    std::filesystem::remove(path);
    test::write_to(path, bytes);
  }
  ASSERT_TRUE(bool(bench.store->save("mine", *bench.snapshot_of(original))));
  EXPECT_EQ(bench.store->verify().value().bad_records, 0u);
  EXPECT_EQ(bench.restored(tokens_of(original)), 64);
}

TEST(DiskStore, VerifyFindsEveryFlippedBitAndRemoveLeavesNothing) {
  StoreBench bench(mixed_model());
  const memory::Sequence original = conversation(bench.here);
  const Sha256Digest name = bench.write(original).value();
  EXPECT_EQ(bench.store->verify().value().bad_sequences, 0u);
  const std::string path = bench.files("objects").front();
  std::string bytes = test::contents_of(path);
  bytes.back() = char(bytes.back() ^ 1);
  ::chmod(path.c_str(), 0600);
  test::write_to(path, bytes);
  const DiskStore::Verified verified = bench.store->verify().value();
  EXPECT_EQ(verified.bad_records, 1u);
  EXPECT_EQ(verified.bad_sequences, 1u);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_EQ(bench.files("quarantine").size(), 2u);
  ASSERT_TRUE(bool(bench.write(original)));  // Which repairs it.
  EXPECT_EQ(bench.store->verify().value().bad_sequences, 0u);
  ASSERT_TRUE(bool(bench.store->remove(name)));
  EXPECT_FALSE(bool(bench.store->remove(name)));
  EXPECT_TRUE(bench.files("objects").empty());
  EXPECT_TRUE(bench.files("manifests").empty());
  EXPECT_EQ(bench.store->stats().bytes, 0u);
}

// Attack 34: flips, cuts, longer files, files of others in their place, links and missing files:
// what is left is exact, and the store is repaired by writing again.
TEST(DiskStore, NoDamageIsServed) {
  std::mt19937 random(7);
  for (const memory::toy::ToyModel& model : store_models()) {
    StoreBench bench(model);
    const memory::Sequence original = conversation(bench.here);
    const std::vector<Token> text = tokens_of(original);
    for (int32_t round = 0; round < 60; ++round) {
      const auto written = bench.write(original);
      ASSERT_TRUE(bool(written)) << round << ": " << written.error().message;
      std::vector<std::string> paths = bench.files("objects");
      const auto manifests = bench.files("manifests");
      paths.insert(paths.end(), manifests.begin(), manifests.end());
      const std::string path = paths[random() % paths.size()];
      std::string bytes = test::contents_of(path);
      std::filesystem::remove(path);
      switch (round % 6) {
        case 0:
          bytes[random() % bytes.size()] ^= char(1 << random() % 8);
          break;
        case 1:
          bytes.resize(random() % bytes.size());
          break;
        case 2:
          bytes.push_back('x');
          break;
        case 3:
          bytes = test::contents_of(paths[random() % paths.size()]);
          break;
        case 4: {
          const size_t at = random() % bytes.size();
          const size_t from = random() % bytes.size();
          for (size_t i = 0; i < 64 && std::max(at, from) + i < bytes.size(); ++i) {
            bytes[at + i] = char(bytes[from + i] + 1);
          }
          break;
        }
        default:
          bytes.clear();
      }
      if (round % 12 == 11) {
        std::filesystem::create_symlink("/dev/zero", path);
      } else if (!bytes.empty()) {
        test::write_to(path, bytes);
      }
      bench.reopen();
      ASSERT_LE(bench.restored(text), original.length());
    }
    ASSERT_TRUE(bool(bench.write(original)));
    EXPECT_EQ(bench.restored(text), original.length());
    EXPECT_GT(bench.store->stats().hits, 0u);
  }
}

// Whatever files go, at any time.
TEST(DiskStore, AnyFilesMayBeDeleted) {
  std::mt19937 random(3);
  StoreBench bench(mixed_model());
  const memory::Sequence original = conversation(bench.here);
  const std::vector<Token> text = tokens_of(original);
  for (int32_t round = 0; round < 40; ++round) {
    ASSERT_TRUE(bool(bench.write(original)));
    ASSERT_EQ(bench.restored(text), original.length());
    for (const std::string& path : bench.files("")) {
      if (random() % 3 == 0) std::filesystem::remove(path);
    }
    if (round % 2 == 0) bench.reopen();
    ASSERT_LE(bench.restored(text), original.length());
  }
}

TEST(DiskStore, TwoProcessesShareAStore) {
  StoreBench bench(mixed_model());
  auto other = DiskStore::open(bench.options).value();
  const memory::Sequence original = conversation(bench.here);
  ASSERT_TRUE(bool(bench.write(original)));
  const uint64_t before = other->stats().written_bytes;
  ASSERT_TRUE(bool(other->write(*bench.snapshot_of(original), Durability::cache)));
  EXPECT_EQ(other->stats().written_bytes, before);  // The files were there.
  EXPECT_EQ(other->stats().conflicts, 0u);
  bench.store = std::move(other);
  EXPECT_EQ(bench.restored(tokens_of(original)), original.length());
}

// What a program has saved since another one opened the folder stays, with all its records, when
// the other one makes room or goes on with the same conversation.
class SavedBesideOthers : public ::testing::Test {
 protected:
  void save() {
    ASSERT_TRUE(bool(bench_.write(chat_)));
    StoreOptions small = bench_.options;
    small.budget_bytes = 600'000;
    other_ = DiskStore::open(small).value();
    ASSERT_TRUE(bool(bench_.store->save("mine", *bench_.snapshot_of(chat_))));
  }
  void expect_saved() {
    const memory::Layout& layout = bench_.there.memory->layout();
    Result<DiskStore::Match> match = bench_.store->open_session("mine", kFingerprint, layout);
    ASSERT_TRUE(bool(match)) << match.error().message;
    EXPECT_EQ(match->resume, chat_.length());
    EXPECT_EQ(bench_.restored(tokens_of(chat_)), chat_.length());
  }
  bool write_elsewhere(const Sequence& sequence) {
    return bool(other_->write(*bench_.snapshot_of(sequence), Durability::cache));
  }

  StoreBench bench_{mixed_model()};
  Sequence chat_ = read_text(bench_.here, 90, 1);
  std::unique_ptr<DiskStore> other_;
};

TEST_F(SavedBesideOthers, StaysWhenAnotherProgramMakesRoom) {
  save();
  for (int32_t number = 2; number < 40; ++number) {
    EXPECT_TRUE(write_elsewhere(read_text(bench_.here, 90, number)));
  }
  EXPECT_GT(other_->stats().evicted, 5u);
  expect_saved();
}

TEST_F(SavedBesideOthers, StaysWhenAnotherProgramGoesOnWithIt) {
  save();
  Sequence longer = chat_;
  ASSERT_TRUE(bool(bench_.here.read(longer, memory::toy::tokens(40, 7))));
  EXPECT_TRUE(write_elsewhere(longer));
  expect_saved();
}

// The other program has a branch of it, whose first records are those of what is saved.
TEST_F(SavedBesideOthers, KeepsTheRecordsThatItSharesWithWhatGoes) {
  Sequence branch = bench_.here.memory->at(chat_, 64).value();
  ASSERT_TRUE(bool(bench_.here.read(branch, memory::toy::tokens(30, 7))));
  ASSERT_TRUE(bool(bench_.write(branch)));
  StoreOptions small = bench_.options;
  small.budget_bytes = 600'000;
  other_ = DiskStore::open(small).value();
  ASSERT_TRUE(bool(bench_.store->save("mine", *bench_.snapshot_of(chat_))));
  for (int32_t number = 2; number < 40; ++number) {
    EXPECT_TRUE(write_elsewhere(read_text(bench_.here, 90, number)));
  }
  EXPECT_LE(bench_.restored(tokens_of(branch)), 64);
  expect_saved();
}

// A disk on which this user has less than all that is free.
class Quota : public FileCalls {
 public:
  int allocate(int file, off_t bytes) override {
    if (used_ + bytes > kMost) {
      errno = EDQUOT;
      return -1;
    }
    used_ += bytes;
    return FileCalls::allocate(file, bytes);
  }
  int remove_at(int folder, const char* name) override {
    struct stat found = {};
    if (FileCalls::status_at(folder, name, &found) == 0) used_ -= found.st_size;
    return FileCalls::remove_at(folder, name);
  }

 private:
  static constexpr int64_t kMost = 400'000;
  int64_t used_ = 0;
};

TEST(DiskStore, WhereTheSystemHasNoRoomTheOldestGoes) {
  Quota quota;
  StoreBench bench(mixed_model(), {.budget_bytes = uint64_t(1) << 30, .calls = &quota});
  for (int32_t number = 0; number < 30; ++number) {
    const memory::Sequence sequence = read_text(bench.here, 90, number);
    ASSERT_TRUE(bool(bench.write(sequence))) << number;
    EXPECT_EQ(bench.restored(tokens_of(sequence)), 90);
  }
  EXPECT_GT(bench.store->stats().evicted, 5u);
}

TEST(DiskStore, AFullMemoryIsAnErrorAndTakesNothing) {
  StoreBench bench(mixed_model());
  const memory::Sequence original = conversation(bench.here);
  ASSERT_TRUE(bool(bench.write(original)));
  memory::toy::ToyBench small(mixed_model(), {.budget_bytes = 3000});
  const auto match =
      bench.store->find(kFingerprint, small.memory->layout(), original.tokens(), false, 0);
  ASSERT_TRUE(match.has_value());
  const auto loaded = bench.store->load(*small.memory, kVariant, kFingerprint, *match, 0);
  EXPECT_EQ(loaded.error().code, ErrorCode::memory_full);
  EXPECT_EQ(small.memory->usage().used_bytes(), 0u);
}

// Says that no file is there, as if another process wrote it just now.
class BlindCalls : public FileCalls {
 public:
  int status_at(int folder, const char* name, struct stat* status) override {
    if (!is_blind) return FileCalls::status_at(folder, name, status);
    errno = ENOENT;
    return -1;
  }
  bool is_blind = false;
};

// What killed writers left goes when room is needed, but not at once; so does what a newer version
// has written, which is not read.
TEST(DiskStore, LeftOversGoWhenRoomIsNeeded) {
  int64_t now = 0;
  StoreOptions options{.budget_bytes = 80'000};
  options.now_ns = [&] { return now; };
  StoreBench bench(full_model(), options);
  ASSERT_TRUE(bool(bench.write(read_text(bench.here, 64, 1))));
  const std::string manifest = bench.files("manifests").front();
  std::string bytes = test::contents_of(manifest);
  bytes[8] = 2;  // The version, and the checksum of the header.
  const auto header = std::as_bytes(std::span(bytes)).first(220);
  const uint32_t checksum = crc32c(header);
  for (size_t i = 0; i < 4; ++i) bytes[220 + i] = char(checksum >> (8 * i));
  std::filesystem::remove(manifest);
  test::write_to(manifest, bytes);
  bench.reopen();
  EXPECT_EQ(bench.store->stats().entries, 1u);  // It takes room, and is no damage.
  EXPECT_EQ(bench.store->stats().damaged, 0u);
  EXPECT_EQ(bench.restored(tokens_of(read_text(bench.here, 64, 1))), 0);
  now = int64_t(1) << 62;
  for (int32_t number = 2; number < 12; ++number) {
    ASSERT_TRUE(bool(bench.write(read_text(bench.here, 64, number)))) << number;
  }
  EXPECT_FALSE(std::filesystem::exists(manifest));
  EXPECT_LE(bench.store->stats().bytes, 80'000u);
}

// Two payloads of one name are an alarm: neither is served.
TEST(DiskStore, AnotherPayloadOfANameIsAnAlarm) {
  BlindCalls calls;
  StoreOptions options;
  options.calls = &calls;
  StoreBench bench(full_model(), options);
  const memory::Sequence original = read_text(bench.here, 64, 1);
  ASSERT_TRUE(bool(bench.write(original)));
  calls.is_blind = true;
  ASSERT_TRUE(bool(bench.write(original)));  // Equal names, equal bytes.
  EXPECT_EQ(bench.store->stats().conflicts, 0u);
  // Another model computes something else under the same fingerprint.
  memory::toy::ToyBench liar(full_model());
  memory::Sequence forged = liar.memory->new_sequence(memory::Variant(6));
  ASSERT_TRUE(bool(liar.read(forged, tokens_of(original), {61})));
  const Snapshot snapshot(*liar.memory, forged, kFingerprint, "toy");
  EXPECT_FALSE(bool(bench.store->write(snapshot, Durability::cache)));
  EXPECT_EQ(bench.store->stats().conflicts, 1u);
  calls.is_blind = false;
  bench.reopen();
  EXPECT_EQ(bench.restored(tokens_of(original)), 0);
}

// Every file is read once a round, in turn; a damaged one is put away, and a round goes on where it
// was interrupted.
TEST(DiskStore, AScrubReadsEverything) {
  StoreBench bench(full_model());
  for (int32_t number = 0; number < 3; ++number) {
    ASSERT_TRUE(bool(bench.write(read_text(bench.here, 64, number))));
  }
  const size_t count = bench.files("objects").size() + bench.files("manifests").size();
  EXPECT_FALSE(bench.store->scrub_next([] { return false; }));
  EXPECT_EQ(bench.store->stats().scrubbed, 0u);
  for (size_t index = 0; index < count; ++index) {
    EXPECT_TRUE(bench.store->scrub_next(DiskStore::always));
  }
  EXPECT_EQ(bench.store->stats().scrubbed, count);
  EXPECT_EQ(bench.store->stats().damaged, 0u);
  for (const char* part : {"objects", "manifests"}) {
    const std::string path = bench.files(part).front();
    std::string bytes = test::contents_of(path);
    bytes[bytes.size() - 1] = char(bytes[bytes.size() - 1] ^ 1);
    std::filesystem::remove(path);
    test::write_to(path, bytes);
  }
  for (size_t index = 0; index < count; ++index) {
    EXPECT_TRUE(bench.store->scrub_next(DiskStore::always));
  }
  EXPECT_EQ(bench.store->stats().damaged, 2u);
  StoreBench empty(full_model());
  EXPECT_FALSE(empty.store->scrub_next(DiskStore::always));
}

// What goes on from wrong bytes is wrong as well; what parts from them before is not.
TEST(DiskStore, WhatIsCondemnedGoesWithAllThatBeginsLikeIt) {
  StoreBench bench(full_model());
  const memory::Sequence bad = read_text(bench.here, 128, 1);
  memory::Sequence longer = bad;
  ASSERT_TRUE(bool(bench.here.read(longer, memory::toy::tokens(40, 9))));
  Result<memory::Sequence> begin = bench.here.memory->at(bad, 40);
  memory::Sequence other = std::move(begin).value();
  ASSERT_TRUE(bool(bench.here.read(other, memory::toy::tokens(80, 7))));
  ASSERT_TRUE(bool(bench.write(other)));
  ASSERT_TRUE(bool(bench.write(bad)));
  const std::vector<Token> longer_tokens = tokens_of(longer);
  ASSERT_TRUE(bool(bench.write(longer)));
  bench.store->condemn(kFingerprint, tokens_of(bad), 70, "wrong");
  EXPECT_GE(bench.store->stats().condemned, 1u);
  bench.reopen();
  EXPECT_LE(bench.restored(longer_tokens), 40);
  EXPECT_EQ(bench.store->stats().entries, 1u);
}

// Of what has more in common with it than is right, within a link of its chain and within the
// first.
TEST(DiskStore, WhatIsCondemnedGoesWithBranchesOfTheWrongPart) {
  for (const int32_t wrong : {8, 40}) {
    StoreBench bench(full_model());
    const memory::Sequence bad = read_text(bench.here, 100, 1);
    const auto branch_at = [&](int32_t position) {
      Sequence branch = bench.here.memory->at(bad, position).value();
      EXPECT_TRUE(bool(bench.here.read(branch, memory::toy::tokens(40, position))));
      EXPECT_TRUE(bool(bench.write(branch)));
      return branch;
    };
    ASSERT_TRUE(bool(bench.write(bad)));
    const Sequence before = branch_at(wrong), behind = branch_at(wrong + 10);
    bench.store->condemn(kFingerprint, tokens_of(bad), wrong, "wrong");
    EXPECT_EQ(bench.store->stats().condemned, 2u);
    EXPECT_LE(bench.restored(tokens_of(bad)), wrong);
    EXPECT_LE(bench.restored(tokens_of(behind)), wrong);
  }
}

}  // namespace
}  // namespace cairn::store::disk_store_test
