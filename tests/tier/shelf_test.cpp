// What a machine lends: records as a folder has them, as long as their memory is not needed.
#include "tier/peers/shelf.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "store/disk_store.h"
#include "tests/tier/shared_engines.h"

namespace cairn::test::shelf_test {
namespace {

using tier::LentSequence;
using tier::Shelf;

class ShelfTest : public test::SharedEngines {
 protected:
  void SetUp() override { engine_ = engine({}); }

  std::unique_ptr<store::Snapshot> snapshot(const Generator& generator) {
    return std::make_unique<store::Snapshot>(engine_->memory(), generator.sequence(),
                                             Sha256().add("a model").finish(), "model");
  }
  std::shared_ptr<LentSequence> lent(const Generator& generator) {
    std::unique_ptr<store::Snapshot> copy = snapshot(generator);
    auto made = LentSequence::prepare(copy, digests_, gives_up_);
    EXPECT_TRUE(bool(made)) << made.error().message;
    EXPECT_EQ(copy, nullptr);
    return *made;
  }
  static std::vector<Sha256Digest> names_of(const LentSequence& sequence) {
    std::vector<Sha256Digest> names = {sequence.manifest.ref.name};
    for (const auto& [name, piece] : sequence.pieces) names.push_back(name);
    return names;
  }

  std::unique_ptr<Engine> engine_;
  std::map<Sha256Digest, Sha256Digest> digests_;
  std::atomic<bool> gives_up_{false};
  Shelf shelf_;
};

constexpr uint64_t kMuch = uint64_t(1) << 30;

// From memory and from the disk they are the same bytes, under the same names.
TEST_P(ShelfTest, LendsTheRecordsOfAFolder) {
  auto disk = store::DiskStore::open({.path = folder_.file("store")});
  ASSERT_TRUE(bool(disk)) << disk.error().message;
  Generator generator(engine_.get());
  read(generator, random_tokens(1, 70));
  auto written = (*disk)->write(*snapshot(generator), store::Durability::cache);
  ASSERT_TRUE(bool(written)) << written.error().message;
  std::shared_ptr<LentSequence> sequence = lent(generator);
  EXPECT_EQ(sequence->manifest.ref.name, *written);
  const std::vector<Sha256Digest> names = names_of(*sequence);
  shelf_.add(std::move(sequence), kMuch);
  std::vector<std::vector<std::byte>> records;
  for (const Sha256Digest& name : names) {
    EXPECT_TRUE(shelf_.has(name));
    auto record = shelf_.read(name);
    ASSERT_TRUE(bool(record)) << record.error().message;
    records.push_back(*record);
  }
  EXPECT_EQ(shelf_.counts().records, names.size());
  shelf_.clear();
  for (const Sha256Digest& name : names) EXPECT_FALSE(shelf_.has(name));
  shelf_.lend_folder(disk->get());
  for (size_t index = 0; index < names.size(); ++index) {
    EXPECT_TRUE(shelf_.has(names[index]));
    auto record = shelf_.read(names[index]);
    ASSERT_TRUE(bool(record)) << record.error().message;
    EXPECT_EQ(*record, records[index]);
  }
  EXPECT_EQ(shelf_.read(Sha256Digest{}).error().code, ErrorCode::not_found);
}

// What a disk has damaged is not lent.
TEST_P(ShelfTest, DamagedFilesAreNotLent) {
  auto disk = store::DiskStore::open({.path = folder_.file("store")});
  ASSERT_TRUE(bool(disk)) << disk.error().message;
  Generator generator(engine_.get());
  read(generator, random_tokens(1, 70));
  ASSERT_TRUE(bool((*disk)->write(*snapshot(generator), store::Durability::cache)));
  shelf_.lend_folder(disk->get());
  size_t damaged = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder_.file("store"))) {
    if (file.path().filename().string().size() != 64) continue;
    std::string bytes = test::contents_of(file.path().string());
    bytes.back() = char(bytes.back() ^ 1);
    test::write_to(file.path().string(), bytes);
    ++damaged;
  }
  EXPECT_GT(damaged, 1u);
  const std::shared_ptr<LentSequence> sequence = lent(generator);
  for (const Sha256Digest& name : names_of(*sequence)) EXPECT_FALSE(bool(shelf_.read(name)));
}

// A longer sequence takes the place of its beginnings; the oldest goes where there is no room.
TEST_P(ShelfTest, HoldsTheNewest) {
  Generator generator(engine_.get());
  read(generator, random_tokens(1, 70));
  shelf_.add(lent(generator), kMuch);
  EXPECT_EQ(shelf_.counts().sequences, 1u);
  shelf_.add(lent(generator), kMuch);
  EXPECT_EQ(shelf_.counts().sequences, 1u) << "it is the same";
  EXPECT_TRUE(shelf_.is_leaving());
  shelf_.collect();
  EXPECT_FALSE(shelf_.is_leaving());
  Generator other(engine_.get());
  read(other, random_tokens(2, 70));
  std::shared_ptr<LentSequence> second = lent(other);
  const uint64_t bytes = second->snapshot->payload_bytes();
  const std::vector<Sha256Digest> names = names_of(*second);
  shelf_.add(second, kMuch);
  EXPECT_EQ(shelf_.counts().sequences, 2u);
  second.reset();
  Generator third(engine_.get());
  read(third, random_tokens(3, 70));
  shelf_.add(lent(third), 2 * bytes);
  EXPECT_EQ(shelf_.counts().sequences, 2u);
  EXPECT_TRUE(shelf_.has(names.front()));
  shelf_.add(lent(generator), bytes);
  EXPECT_EQ(shelf_.counts().sequences, 1u);
  EXPECT_FALSE(shelf_.has(names.front()));
}

// Memory comes back even while somebody reads: what is read goes when that is done.
TEST_P(ShelfTest, GivesItsMemoryBack) {
  Generator generator(engine_.get());
  read(generator, random_tokens(1, 70));
  std::atomic<bool> is_over{false};
  std::atomic<uint64_t> read_count{0};
  shelf_.add(lent(generator), kMuch);
  std::vector<Sha256Digest> names = names_of(*lent(generator));
  std::thread reader([&] {
    while (!is_over) {
      for (const Sha256Digest& name : names) read_count += uint64_t(bool(shelf_.read(name)));
    }
  });
  for (int times = 0; times < 50; ++times) {
    const uint64_t before = read_count;
    for (int tries = 0; tries < 2000 && read_count == before; ++tries) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_GT(read_count, before);
    EXPECT_TRUE(shelf_.drain());
    EXPECT_FALSE(shelf_.is_leaving());
    EXPECT_FALSE(shelf_.drain());
    shelf_.add(lent(generator), kMuch);
  }
  is_over = true;
  reader.join();
  shelf_.drain();
}

// Preparing ends as soon as the memory is needed.
TEST_P(ShelfTest, PreparingIsGivenUp) {
  Generator generator(engine_.get());
  read(generator, random_tokens(1, 70));
  std::unique_ptr<store::Snapshot> copy = snapshot(generator);
  gives_up_ = true;
  auto made = LentSequence::prepare(copy, digests_, gives_up_);
  ASSERT_FALSE(bool(made));
  EXPECT_EQ(made.error().code, ErrorCode::cancelled);
  EXPECT_NE(copy, nullptr) << "the engine's thread has to destroy it";
}

INSTANTIATE_TEST_SUITE_P(Kinds, ShelfTest, ::testing::Values("gemma3", "granitehybrid"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace cairn::test::shelf_test
