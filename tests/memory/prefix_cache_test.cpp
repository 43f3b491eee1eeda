// The cache used as an engine uses it, by toy models that read back what they see: a prompt costs
// only what no sequence holds, room is made in the order of worth, and whatever is found is exact.
#include "memory/cache/prefix_cache.h"

#include <gtest/gtest.h>

#include <string>

#include "memory/common_prefix.h"
#include "tests/memory/toy_chat.h"
#include "tests/memory/toy_families.h"

namespace cairn::memory::prefix_cache_test {
namespace {

using toy::Chat;
using toy::families;
using toy::Family;
using toy::Host;
using toy::large_state;
using toy::text;
using toy::Text;
using toy::ToyModel;
using toy::operator+;

TEST(CommonPrefix, IsNothingBetweenVariants) {
  Host host(ToyModel({{large_state()}}));
  const Text tokens = text(40, 1);
  const auto read = [&](Variant variant) {
    Sequence sequence = host.memory->new_sequence(variant);
    host.cache.begin(sequence, {.tokens = tokens}).value().commit(40);
    return sequence;
  };
  const Sequence one = read(Variant(7)), other = read(Variant(8));
  EXPECT_EQ(common_prefix(one, read(Variant(7))), 40);
  EXPECT_EQ(common_prefix(one, other), 0);
}

TEST(CommonPrefix, SweepsTheBordersOfBlocks) {
  const Text whole = text(600, 1);
  for (int32_t length : {0, 1, 255, 256, 257, 511, 512, 513, 599, 600}) {
    const std::span<const Token> beginning = std::span(whole).first(size_t(length));
    EXPECT_EQ(common_prefix(whole, beginning), length);
    Text other = whole;
    if (length == 600) continue;
    other[size_t(length)] = Token(0);
    EXPECT_EQ(common_prefix(whole, other), length);
  }
}

TEST(PrefixCache, LookingIsNotUsing) {
  for (Family& family : families()) {
    SCOPED_TRACE(family.name);
    Host host(family.model);
    Chat one(&host, text(100, 1)), other(&host, text(90, 2));
    ASSERT_TRUE(one.turn(text(60, 3), 24, 4));
    ASSERT_TRUE(other.turn(text(60, 5), 24, 6));
    const auto uses = [&] {
      std::vector<int64_t> found;
      for (const PrefixCache::Listed& entry : host.cache.list()) found.push_back(entry.last_use);
      return found;
    };
    const std::vector<int64_t> before = uses();
    ASSERT_EQ(before.size(), 2u);
    const Text prompt = one.history() + text(10, 7);
    const PrefixCache::Found looked = host.cache.look(prompt, one.variant(), true);
    EXPECT_EQ(uses(), before);
    const PrefixCache::Found found = host.cache.find(prompt, one.variant(), true);
    EXPECT_NE(uses(), before);
    EXPECT_EQ(looked.sequence, found.sequence);
    EXPECT_EQ(looked.shared_tokens, found.shared_tokens);
    EXPECT_EQ(looked.plan.resume, found.plan.resume);
    EXPECT_EQ(looked.branch, found.branch);
  }
}

TEST(PrefixCache, NextTurnReadsOnlyTheMessage) {
  for (Family& family : families()) {
    SCOPED_TRACE(family.name);
    Host host(family.model);
    Chat chat(&host, text(100, 1));
    EXPECT_EQ(chat.turn(text(60, 2), 24, 3).value(), 160);
    chat.close();  // Only the cache has it now.
    chat.reopen();
    EXPECT_EQ(chat.turn(text(61, 4), 24, 5).value(), 61);
    host.expect_exact(chat.sequence());
    // The turn before is the beginning of this one, and goes.
    EXPECT_EQ(host.cache.entry_count(), 1u);
  }
}

// The same words by two variants are two sequences, and neither is the other's beginning.
TEST(PrefixCache, VariantsShareNothing) {
  Host host(ToyModel({{ToyModel::window(48)}, {ToyModel::recurrent()}, {ToyModel::full()}}));
  const Variant other = Variant(7);
  Chat plain(&host, text(40, 1)), adapted(&host, text(40, 1), other);
  ASSERT_TRUE(plain.turn(text(30, 2), 10, 3));
  const size_t bytes = host.memory->usage().used_bytes();
  EXPECT_EQ(adapted.turn(text(30, 2), 10, 3).value(), 70);
  EXPECT_EQ(host.memory->usage().used_bytes(), 2 * bytes);
  EXPECT_EQ(host.cache.entry_count(), 2u);
  ASSERT_EQ(plain.history(), adapted.history());
  for (const Variant variant : {Variant::plain, other, Variant(8)}) {
    const PrefixCache::Found found = host.cache.find(plain.history(), variant, true);
    EXPECT_EQ(found.foreign_tokens, 80);
    EXPECT_EQ(found.plan.resume, variant == Variant(8) ? 0 : 80);
    EXPECT_EQ(found.sequence == nullptr ? variant : found.sequence->variant(), variant);
  }
  host.expect_exact(plain.sequence());
  host.expect_exact(adapted.sequence());
  // Back and forth costs nothing more than the new message.
  adapted.change(Variant::plain);
  EXPECT_EQ(adapted.turn(text(20, 4), 5, 5).value(), 20);
  host.expect_exact(adapted.sequence());
}

// Nor do tenants, who are not even told that there is something.
TEST(PrefixCache, TenantsShareNothing) {
  Host host(ToyModel({{ToyModel::window(48)}, {ToyModel::recurrent()}, {ToyModel::full()}}));
  const Variant one(0, 5), other(0, 6), adapted(7, 5);
  Chat mine(&host, text(40, 1), one), theirs(&host, text(40, 1), other);
  ASSERT_TRUE(mine.turn(text(30, 2), 10, 3));
  EXPECT_EQ(theirs.turn(text(30, 2), 10, 3).value(), 70);
  ASSERT_EQ(mine.history(), theirs.history());
  for (const Variant variant : {one, other, adapted, Variant::plain, Variant(0, 7)}) {
    const PrefixCache::Found found = host.cache.find(mine.history(), variant, true);
    const bool is_there = variant == one || variant == other;
    EXPECT_EQ(found.plan.resume, is_there ? 80 : 0);
    EXPECT_EQ(found.foreign_tokens, variant == adapted ? 80 : 0);
    EXPECT_EQ(found.sequence == nullptr ? variant : found.sequence->variant(), variant);
  }
  host.expect_exact(theirs.sequence());
}

TEST(PrefixCache, AskingAgainReadsNothing) {
  for (Family& family : families()) {
    SCOPED_TRACE(family.name);
    Host host(family.model);
    Chat chat(&host, text(100, 1));
    const Text prompt = chat.history() + text(60, 2);
    ASSERT_TRUE(chat.turn(text(60, 2), 24, 3));
    chat.close();
    chat.reopen();
    EXPECT_EQ(chat.read(prompt).value(), 0);
    EXPECT_TRUE(host.memory->hidden(chat.sequence()).exists());
    host.expect_exact(chat.sequence());
    // Another answer is another sequence; the first one stays.
    ASSERT_TRUE(chat.answer(24, 4));
    EXPECT_EQ(host.cache.entry_count(), 2u);
  }
}

// Three turns, the second message edited, then the abandoned branch goes on: each time only what
// was never read is read.
TEST(PrefixCache, BackToAnAbandonedBranchReadsOnlyTheNewMessage) {
  for (Family& family : families()) {
    SCOPED_TRACE(family.name);
    Host host(family.model);
    Chat chat(&host, text(100, 1));
    ASSERT_TRUE(chat.turn(text(200, 2), 24, 3));
    ASSERT_TRUE(chat.turn(text(200, 4), 24, 5));
    ASSERT_TRUE(chat.turn(text(200, 6), 24, 7));
    Chat edited = chat.before(1);
    chat.close();
    EXPECT_EQ(edited.turn(text(190, 8), 24, 9).value(), 190);
    host.expect_exact(edited.sequence());
    edited.close();
    chat.reopen();
    EXPECT_EQ(chat.turn(text(180, 10), 24, 11).value(), 180);
    host.expect_exact(chat.sequence());
    edited.reopen();
    EXPECT_EQ(edited.turn(text(170, 12), 24, 13).value(), 170);
    host.expect_exact(edited.sequence());
  }
}

TEST(PrefixCache, ChatsShareTheirSystemPrompt) {
  for (Family& family : families()) {
    SCOPED_TRACE(family.name);
    Host host(family.model);
    const Text system = text(2000, 1);
    std::vector<Chat> chats;
    for (int32_t index = 0; index < 5; ++index) {
      Chat& chat = chats.emplace_back(&host, system);
      EXPECT_EQ(chat.turn(text(100, 10 + index), 10, 20 + index).value(), index == 0 ? 2100 : 100);
      host.expect_exact(chat.sequence());
      chat.close();
    }
    const size_t used_bytes = host.memory->usage().used_bytes();
    for (int32_t index = 0; index < 5; ++index) {
      Chat& chat = chats[size_t(index)];
      chat.reopen();
      EXPECT_EQ(chat.turn(text(100, 30 + index), 10, 40 + index).value(), 100);
      host.expect_exact(chat.sequence());
      chat.close();
    }
    EXPECT_LT(host.memory->usage().used_bytes(), 2 * used_bytes);
  }
}

TEST(PrefixCache, TwoChatsAlternate) {
  for (Family& family : families()) {
    SCOPED_TRACE(family.name);
    Host host(family.model);
    Chat one(&host, text(150, 1)), two(&host, text(150, 2));
    ASSERT_TRUE(one.turn(text(60, 3), 20, 4));
    one.close();
    ASSERT_TRUE(two.turn(text(60, 5), 20, 6));
    two.close();
    for (int32_t turn = 0; turn < 4; ++turn) {
      for (Chat* const chat : {&one, &two}) {
        chat->reopen();
        const int32_t number = 100 + turn * 10 + int32_t(chat == &two) * 5;
        EXPECT_EQ(chat->turn(text(60, number), 20, number + 1).value(), 60);
        host.expect_exact(chat->sequence());
        chat->close();
      }
    }
    EXPECT_EQ(host.cache.entry_count(), 2u);
  }
}

// The same tokens without the anchors that can go.
Sequence bare(const Host& host, const Sequence& sequence) {
  Sequence copy = sequence;
  for (size_t index = copy.anchors().size(); index-- > 0;) {
    if (host.memory->drop_anchor(copy, index)) continue;  // One may have to stay.
  }
  return copy;
}

TEST(PrefixCache, ABeginningThatHoldsMoreStays) {
  Host host(ToyModel({{large_state()}, {ToyModel::full()}}));
  Chat chat(&host, text(50, 1));
  ASSERT_TRUE(chat.turn(text(60, 2), 90, 3));
  const Sequence first = chat.sequence();
  const Sequence without = bare(host, first);
  ASSERT_LT(without.anchors().size(), first.anchors().size());
  host.cache.keep(without);  // Holds less than what is kept: nothing changes.
  EXPECT_EQ(host.cache.entry_count(), 1u);
  ASSERT_TRUE(chat.turn(text(60, 4), 90, 5));
  EXPECT_EQ(host.cache.entry_count(), 1u);
  const Sequence second = bare(host, chat.sequence());
  for (const bool longer_first : {true, false}) {
    host.cache.clear();
    host.cache.keep(longer_first ? second : first);
    host.cache.keep(longer_first ? first : second);
    EXPECT_EQ(host.cache.entry_count(), 2u);
    const Text prompt(first.tokens().begin(), first.tokens().begin() + 110);
    const PrefixCache::Found found = host.cache.find(prompt, Variant::plain, true);
    ASSERT_NE(found.sequence, nullptr);
    EXPECT_EQ(found.sequence->length(), first.length());
    EXPECT_EQ(found.plan.forward_tokens, 0);
  }
  host.cache.keep(chat.sequence());  // Covers both.
  EXPECT_EQ(host.cache.entry_count(), 1u);
  host.cache.keep(Sequence());
  host.cache.keep(host.memory->new_sequence());
  EXPECT_EQ(host.cache.entry_count(), 1u);
}

// Sharing more tokens is nothing where they cannot be gone on from.
TEST(PrefixCache, FindsWhatResumesLatestNotWhatSharesMost) {
  Host host(ToyModel({{large_state()}}));
  const Text prompt = text(700, 1);
  const auto kept = [&](int32_t length, int32_t tail) {
    Sequence sequence = host.memory->new_sequence();
    const Text tokens = Text(prompt.begin(), prompt.begin() + length) + text(200, tail);
    const std::vector<int32_t> captures = {length / 2};
    host.cache.begin(sequence, {.tokens = tokens, .captures = captures})
        .value()
        .commit(int32_t(tokens.size()));
    host.cache.keep(sequence);
  };
  for (const bool longer_first : {true, false}) {
    host.cache.clear();
    kept(longer_first ? 600 : 400, 2);
    kept(longer_first ? 400 : 600, 3);
    EXPECT_EQ(host.cache.find(prompt, Variant::plain, true).plan.resume, 300);
    kept(100, 4);
    Sequence whole = host.memory->new_sequence();
    const Text beginning(prompt.begin(), prompt.begin() + 350);
    host.cache.begin(whole, {.tokens = beginning}).value().commit(350);
    host.cache.keep(whole);
    const PrefixCache::Found found = host.cache.find(prompt, Variant::plain, true);
    EXPECT_EQ(found.plan.resume, 350);
    EXPECT_EQ(found.shared_tokens, 350);
  }
}

TEST(PrefixCache, TellsWhereSequencesPart) {
  for (Family& family : families()) {
    SCOPED_TRACE(family.name);
    Host host(family.model);
    Chat chat(&host, text(100, 1));
    ASSERT_TRUE(chat.turn(text(60, 2), 24, 3));
    const Text history = chat.history();
    chat.close();
    const auto branch_of = [&](const Text& prompt) {
      return host.cache.find(prompt, Variant::plain, true).branch;
    };
    EXPECT_EQ(branch_of(Text(history.begin(), history.begin() + 130) + text(9, 4)), 130);
    EXPECT_EQ(branch_of(Text(history.begin(), history.begin() + 30) + text(9, 4)), 30);
    EXPECT_EQ(branch_of(text(50, 5)), 0);
    EXPECT_EQ(branch_of(history + text(9, 4)), 0) << "goes on behind it";
    EXPECT_EQ(host.cache.find(history, Variant(7), true).branch, 0);
  }
}

// A sequence with an anchor where others parted from it is not covered by one without.
TEST(PrefixCache, WhereSequencesPartStays) {
  Host host(ToyModel({{large_state()}, {ToyModel::full()}}));
  const Text tokens = text(300, 1);
  const auto read = [&](std::vector<int32_t> captures) {
    Sequence sequence = host.memory->new_sequence();
    const std::vector<AnchorKind> kinds(captures.size(), AnchorKind::branch);
    host.cache.begin(sequence, {.tokens = tokens, .captures = captures, .capture_kinds = kinds})
        .value()
        .commit(300);
    return sequence;
  };
  const Sequence bare = read({}), parted = read({200});
  for (const bool parted_first : {true, false}) {
    host.cache.clear();
    host.cache.keep(parted_first ? parted : bare);
    host.cache.keep(parted_first ? bare : parted);
    EXPECT_EQ(host.cache.entry_count(), 1u);
    const Text prompt = Text(tokens.begin(), tokens.begin() + 200) + text(9, 2);
    EXPECT_EQ(host.cache.find(prompt, Variant::plain, true).plan.resume, 200);
  }
}

TEST(PrefixCache, CanOnlyFreeWhatNobodyElseRefersTo) {
  for (Family& family : families()) {
    SCOPED_TRACE(family.name);
    Host host(family.model);
    Chat chat(&host, text(100, 1));
    ASSERT_TRUE(chat.turn(text(60, 2), 40, 3));
    EXPECT_EQ(host.cache.evictable_bytes(), 0u);
    Sequence fork = chat.sequence();
    chat.close();
    EXPECT_EQ(host.cache.evictable_bytes(), 0u);
    host.memory->close(fork);
    EXPECT_EQ(host.cache.evictable_bytes(), host.memory->usage().used_bytes());
  }
}

// Only where logits are wanted has the last token to be read again.
TEST(PrefixCache, FindsLogitsOnlyWhereTheyWereKept) {
  Host host(ToyModel({{ToyModel::full()}}));
  Chat chat(&host, text(50, 1));
  ASSERT_TRUE(chat.turn(text(60, 2), 20, 3));
  const Text prompt(chat.history().begin(), chat.history().begin() + 70);
  EXPECT_EQ(host.cache.find(prompt, Variant::plain, false).plan.resume, 70);
  EXPECT_EQ(host.cache.find(prompt, Variant::plain, true).plan.resume, 69);
  const Text asked(chat.history().begin(), chat.history().begin() + 110);
  EXPECT_EQ(host.cache.find(asked, Variant::plain, true).plan.resume, 110);
  EXPECT_EQ(host.cache.find(asked + text(1, 4), Variant::plain, true).plan.resume, 110);
}

TEST(PrefixCache, LearnsWhereSequencesAreTakenUp) {
  Host host(ToyModel({{ToyModel::full()}}));
  Chat chat(&host, text(50, 1));
  ASSERT_TRUE(chat.turn(text(60, 2), 20, 3));
  const Text prompt = chat.history() + text(10, 4);
  const size_t sort = size_t(AnchorKind::answer_end) * RewindHabits::kTurnBuckets;
  const double before = host.cache.habits().count(sort);
  host.cache.find(prompt, Variant::plain, true);
  EXPECT_EQ(host.cache.habits().count(sort), before + 1);
  host.cache.find(text(10, 99), Variant::plain, true);  // Nothing is shared: nothing is learned.
  EXPECT_EQ(host.cache.habits().count(sort), before + 1);
}

Sequence read(Host& host, const Text& tokens) {
  Sequence sequence = host.memory->new_sequence();
  host.cache.begin(sequence, {.tokens = tokens}).value().commit(int32_t(tokens.size()));
  return sequence;
}

TEST(PrefixCache, KeepsAsManyAsThereIsRoomFor) {
  Host host(ToyModel({{ToyModel::full()}}), 64 << 20, 400);
  const auto tokens = [](int32_t index) { return text(50, 1) + text(50, 2 + index); };
  for (int32_t index = 0; index < 3000; ++index) host.cache.keep(read(host, tokens(index)));
  EXPECT_EQ(host.cache.entry_count(), 3000u);
  for (int32_t index = 0; index < 3000; ++index) {
    const Text prompt = tokens(index) + text(10, 9999);
    ASSERT_EQ(host.cache.find(prompt, Variant::plain, true).plan.resume, 100);
  }
}

TEST(PrefixCache, PinsWithinAQuota) {
  Host host(ToyModel({{ToyModel::full()}}));
  const Sequence one = read(host, text(64, 1)), other = read(host, text(64, 2));
  const size_t page_bytes = host.memory->layout().groups[0].block_bytes;
  const auto refused = host.cache.pin(one);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::no_room);
  EXPECT_NE(refused.error().message.find(std::to_string(2 * page_bytes)), std::string::npos);
  EXPECT_EQ(host.cache.entry_count(), 0u);
  host.cache.set_pin_quota(3 * page_bytes);
  const PinId pin = host.cache.pin(one).value();
  EXPECT_EQ(host.cache.pinned_bytes(), 2 * page_bytes);
  EXPECT_FALSE(host.cache.pin(other));
  EXPECT_EQ(host.cache.entry_count(), 1u);
  // What pins have in common counts once.
  Sequence longer = one;
  const Text end = text(32, 3);
  host.cache.begin(longer, {.tokens = end}).value().commit(32);
  const PinId longer_pin = host.cache.pin(longer).value();
  EXPECT_EQ(host.cache.pinned_bytes(), 3 * page_bytes);
  EXPECT_EQ(host.cache.entry_count(), 2u);
  ASSERT_TRUE(host.cache.unpin(pin));
  EXPECT_EQ(host.cache.entry_count(), 1u) << "The other pin holds all of it.";
  EXPECT_FALSE(host.cache.unpin(pin));
  // Not even an entry that holds all of it takes its place.
  Sequence longest = longer;
  host.cache.begin(longest, {.tokens = end}).value().commit(32);
  host.cache.keep(longest);
  EXPECT_EQ(host.cache.entry_count(), 2u);
  ASSERT_TRUE(host.cache.unpin(longer_pin));
  EXPECT_EQ(host.cache.entry_count(), 1u);
  EXPECT_EQ(host.cache.pinned_bytes(), 0u);
  EXPECT_EQ(host.cache.sequences().front()->length(), 128);
  EXPECT_FALSE(host.cache.pin(Sequence()));
  EXPECT_FALSE(host.cache.pin(host.memory->new_sequence()));
  EXPECT_FALSE(host.cache.unpin(PinId(host.cache.entry_count()))) << "That is no pin.";
}

// Many sequences behind a beginning: each time a few are compared, and one that is covered by
// another of those goes or is not kept.
TEST(PrefixCache, KeepsABeginningOfMany) {
  Host host(ToyModel({{ToyModel::full()}}), 16 << 20, 400);
  const Text beginning = text(50, 1);
  for (int32_t index = 0; index < 100; ++index) {
    host.cache.keep(read(host, beginning + text(20, 2 + index)));
  }
  host.cache.keep(read(host, beginning));
  EXPECT_EQ(host.cache.entry_count(), 100u) << "Others hold all of it.";
  host.cache.keep(read(host, beginning + text(20, 50) + text(20, 3)));
  EXPECT_EQ(host.cache.entry_count(), 100u);
}

}  // namespace
}  // namespace cairn::memory::prefix_cache_test
