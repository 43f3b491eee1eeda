// One file carries a sequence to another store; a file that was changed carries nothing.
#include "store/export.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/store/store_bench.h"

namespace cairn::store::export_test {
namespace {

using memory::toy::conversation;
using toy::mixed_model;
using toy::StoreBench;
using toy::tokens_of;

std::string exported(StoreBench& bench, const Sha256Digest& name) {
  const std::string path = bench.folder.file("chat.cairn");
  OutputFile out = OutputFile::open(path).value();
  EXPECT_TRUE(bool(export_sequence(*bench.store, name, out)));
  EXPECT_TRUE(bool(out.commit()));
  return path;
}

TEST(Export, ASequenceMovesToAnotherStore) {
  for (const toy::ToyModel& model : toy::store_models()) {
    StoreBench from(model), to(model);
    const memory::Sequence chat = conversation(from.here);
    const Sha256Digest name = from.write(chat).value();
    const std::string path = exported(from, name);
    EXPECT_EQ(import_sequence(*to.store, path).value(), name);
    EXPECT_EQ(import_sequence(*to.store, path).value(), name);  // Again changes nothing.
    EXPECT_EQ(to.store->stats().bytes, from.store->stats().bytes);
    EXPECT_EQ(to.restored(tokens_of(chat)), chat.length());
    to.reopen();
    EXPECT_EQ(to.restored(tokens_of(chat)), chat.length());
    EXPECT_EQ(to.store->verify().value().bad_sequences, 0u);
  }
}

TEST(Export, NoChangedFileIsTakenOver) {
  StoreBench from(mixed_model()), to(mixed_model());
  const Sha256Digest name = from.write(conversation(from.here)).value();
  const std::string path = exported(from, name);
  const std::string bytes = test::contents_of(path);
  std::mt19937 random(5);
  for (int32_t round = 0; round < 300; ++round) {
    std::string changed = bytes;
    if (round % 10 == 0) {
      changed.resize(random() % bytes.size());
    } else if (round % 10 == 1) {
      changed += "x";
    } else {
      char& byte = changed[random() % changed.size()];
      byte = char(byte ^ (1 << random() % 8));
    }
    std::filesystem::remove(path);
    test::write_to(path, changed);
    ASSERT_FALSE(bool(import_sequence(*to.store, path))) << round;
    ASSERT_TRUE(to.files("manifests").empty());
  }
  EXPECT_EQ(import_sequence(*to.store, from.folder.file("none")).error().code,
            ErrorCode::not_found);
}

// What lies behind the last token in its page is whatever was there: both records serve both.
TEST(Export, UnwantedRowsMayDiffer) {
  StoreBench one(toy::full_model()), other(toy::full_model());
  const std::vector<Token> text = memory::toy::tokens(40);
  memory::Sequence plain = one.here.memory->new_sequence(toy::kVariant);
  ASSERT_TRUE(bool(one.here.read(plain, text)));
  memory::Sequence drafted = other.here.memory->new_sequence(toy::kVariant);
  std::vector<Token> longer = text;
  longer.resize(47, Token(9));
  ASSERT_TRUE(bool(other.here.read(drafted, longer, {}, 40)));
  const Sha256Digest name = other.write(drafted).value();
  ASSERT_TRUE(bool(one.write(plain)));
  ASSERT_TRUE(bool(import_sequence(*one.store, exported(other, name))));
  EXPECT_EQ(one.store->stats().damaged, 0u);
  EXPECT_EQ(one.restored(text), 40);
  EXPECT_EQ(one.store->verify().value().bad_sequences, 0u);
}

}  // namespace
}  // namespace cairn::store::export_test
