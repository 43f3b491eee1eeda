// The cache in a memory that has too little room, with toy models that read back what they see:
// what is worth least goes first, what is used stays, and whatever is found is exact.
#include "memory/cache/eviction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <random>

#include "memory/common_prefix.h"
#include "tests/memory/toy_chat.h"
#include "tests/memory/toy_families.h"
#include "tests/sanitized.h"

namespace cairn::memory::eviction_test {
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

// Chats of several turns, closed, in a memory that holds all of them; then a budget that does not.
class Pressure : public ::testing::Test {
 protected:
  // What the same work takes with room for everything.
  static size_t bytes_of(const ToyModel& model, const std::function<void(Host&)>& work) {
    Host host(model);
    work(host);
    return host.memory->usage().used_bytes();
  }

  static void chat_of(Host& host, int32_t turns, int32_t number) {
    Chat chat(&host, text(100, number));
    for (int32_t turn = 0; turn < turns; ++turn) {
      ASSERT_TRUE(chat.turn(text(60, number + 2 * turn + 1), 30, number + 2 * turn + 2));
    }
    chat.close();
  }
  static Text history_of(int32_t turns, int32_t number) {
    Text history = text(100, number);
    for (int32_t turn = 0; turn < turns; ++turn) {
      history = history + text(60, number + 2 * turn + 1) + text(30, number + 2 * turn + 2);
    }
    return history;
  }

  static Text history_of_branch() {
    Text history = text(100, 1);
    for (int32_t turn = 0; turn < 4; ++turn) {
      history = history + text(60, 10 + turn) + text(30, 20 + turn);
    }
    return history + text(50, 30) + text(30, 31);
  }

  // Nothing that is kept would be a better start.
  static void expect_least_cost(const Host& host, const Text& prompt, Variant variant,
                                const PrefixCache::Found& found) {
    for (const Sequence* const sequence : host.cache.sequences()) {
      if (sequence->variant() != variant) continue;
      const int32_t shared = common_prefix(sequence->tokens(), prompt);
      const ResumePlan plan = host.memory->plan(*sequence, shared, size_t(shared) == prompt.size());
      ASSERT_GE(found.plan.resume, plan.resume);
      if (plan.resume == 0 || plan.resume < found.plan.resume) continue;
      ASSERT_LE(found.plan.recurrence_steps, plan.recurrence_steps);
    }
  }
  // All that is there once nothing is active, each block once.
  static void expect_counted(const Host& host) {
    EXPECT_EQ(host.cache.evictable_bytes() + host.cache.pinned_bytes(),
              host.memory->usage().used_bytes());
  }

  static int32_t resume_of(Host& host, const Text& prompt, Variant variant = Variant::plain) {
    const PrefixCache::Found found = host.cache.find(prompt, variant, true);
    expect_least_cost(host, prompt, variant, found);
    if (found.sequence == nullptr) return 0;
    EXPECT_EQ(found.sequence->variant(), variant);
    host.expect_exact(host.memory->at(*found.sequence, found.plan.resume).value());
    return found.plan.resume;
  }

  static void pin_or_unpin(std::mt19937& random, Host& host, const Sequence& sequence,
                           std::vector<PinId>& pins) {
    if (random() % 8 == 0) {
      Result<PinId> pin = host.cache.pin(sequence);
      if (pin) pins.push_back(*pin);
    } else if (random() % 8 == 0 && !pins.empty()) {
      ASSERT_TRUE(host.cache.unpin(pins.front()));
      pins.erase(pins.begin());
    }
  }

  // All of a history, and a part of it with another end.
  static void look_up_parts(std::mt19937& random, Host& host, const Text& history) {
    for (const uint64_t variant : {0, 1, 2}) {
      ASSERT_NO_FATAL_FAILURE(resume_of(host, history, Variant(variant)));
      const auto length = std::ptrdiff_t(random() % (history.size() + 1));
      const Text part(history.begin(), history.begin() + length);
      ASSERT_NO_FATAL_FAILURE(resume_of(host, part + text(5, 3), Variant(variant)));
    }
  }
};

// States go before tokens, and the ends that conversations go on from stay.
TEST_F(Pressure, StatesThatNobodyComesBackToGoFirst) {
  const ToyModel model({{large_state()}, {ToyModel::full()}});
  const auto two_chats = [](Host& host) {
    chat_of(host, 6, 1000);
    chat_of(host, 6, 2000);
  };
  const size_t whole = bytes_of(model, two_chats);
  Host host(model, whole * 3 / 4);
  two_chats(host);
  EXPECT_EQ(host.cache.entry_count(), 2u);
  const Usage usage = host.memory->usage();
  EXPECT_LE(usage.used_bytes(), whole * 3 / 4);
  for (const int32_t number : {1000, 2000}) {
    const Text history = history_of(6, number);
    EXPECT_EQ(resume_of(host, history), int32_t(history.size()));
  }
  host.cache.clear();
  EXPECT_EQ(host.memory->usage().used_bytes(), 0u);
}

// What is lost of anchors is counted, whether they go alone, with an end or with an entry.
TEST_F(Pressure, SnapshotsAndPagesAreCounted) {
  const ToyModel model({{large_state()}, {ToyModel::full()}});
  const auto anchor_count = [](const Host& host) {
    int64_t count = 0;
    for (const Sequence* const sequence : host.cache.sequences()) {
      count += std::ranges::count_if(sequence->anchors(), [](const Anchor& anchor) {
        return anchor.kind != AnchorKind::tail;
      });
    }
    return count;
  };
  Host host(model);
  chat_of(host, 6, 1000);
  const SnapshotCounts& counts = host.memory->snapshot_counts();
  const int64_t created = counts.created;
  EXPECT_GT(anchor_count(host), 6);
  EXPECT_GE(created, anchor_count(host));
  EXPECT_EQ(counts.evicted, 0);
  const PageCounts pages = host.memory->page_counts();
  EXPECT_GT(pages.unshared, 0);
  EXPECT_EQ(pages.shared, 0);
  {
    const Sequence copy = *host.cache.sequences().front();
    EXPECT_EQ(host.memory->page_counts(),
              (PageCounts{.unshared = 0, .shared = pages.unshared, .warm = pages.warm}));
  }
  EXPECT_EQ(host.memory->page_counts(), pages);
  const size_t used_bytes = host.memory->usage().used_bytes();
  const size_t free_bytes = host.memory->options().budget_bytes - used_bytes;
  for (const size_t quarters : {1, 2, 4}) {
    const int64_t before = anchor_count(host), evicted = counts.evicted;
    ASSERT_TRUE(host.cache.make_room(free_bytes + used_bytes * quarters / 4));
    EXPECT_EQ(counts.evicted - evicted, before - anchor_count(host)) << quarters << " quarters";
  }
  EXPECT_EQ(host.cache.entry_count(), 0u);
  EXPECT_EQ(counts.created, created);
  EXPECT_EQ(host.memory->page_counts().unshared, 0);
}

// Nothing but keys and values: the sequence whose last use is longest ago gives its end.
TEST_F(Pressure, TheOldestEntryGivesItsEnd) {
  const ToyModel model({{ToyModel::full()}});
  const auto chats = [](Host& host) {
    for (const int32_t number : {1000, 2000, 3000, 4000}) chat_of(host, 6, number);
  };
  const size_t whole = bytes_of(model, chats);
  const Text history = history_of(6, 1000);
  Host host(model, whole * 9 / 10);
  chats(host);
  const int32_t length = int32_t(history.size());
  const int32_t resume = resume_of(host, history);
  EXPECT_LT(resume, length);
  EXPECT_GT(resume, length / 4);  // No more than was needed.
  for (const int32_t number : {2000, 3000, 4000}) {
    EXPECT_EQ(resume_of(host, history_of(6, number)), length);
  }
}

// A sequence that was found is used: another one is the oldest then.
TEST_F(Pressure, WhatWasFoundStays) {
  const ToyModel model({{ToyModel::full()}});
  const auto chats = [](Host& host, int32_t count) {
    for (int32_t index = 1; index <= count; ++index) chat_of(host, 6, 1000 * index);
  };
  const size_t whole = bytes_of(model, [&](Host& host) { chats(host, 4); });
  Host host(model, whole * 9 / 10);
  chats(host, 3);
  const Text first = history_of(6, 1000), second = history_of(6, 2000);
  EXPECT_EQ(resume_of(host, first), int32_t(first.size()));
  chat_of(host, 6, 4000);
  EXPECT_EQ(resume_of(host, first), int32_t(first.size()));
  EXPECT_LT(resume_of(host, second), int32_t(second.size()));
  // Found once more after room was made; by then the third is older than the second.
  chat_of(host, 3, 5000);
  const Text third = history_of(6, 3000);
  EXPECT_LT(resume_of(host, third), int32_t(third.size()));
}

// However much it is worth, what nobody uses makes room in the end; what is used does not.
TEST_F(Pressure, WhatNobodyUsesGrowsOld) {
  const ToyModel model({{large_state()}, {ToyModel::full()}});
  // Twice the tokens of the others, in the same number of states.
  const auto read_dense = [](Host& host) {
    Chat chat(&host, text(100, 1));
    ASSERT_TRUE(chat.turn(text(900, 2), 30, 3));
    chat.close();
  };
  const Text dense = text(100, 1) + text(900, 2) + text(30, 3);
  const size_t budget = bytes_of(model, [&](Host& host) {
    read_dense(host);
    for (const int32_t number : {1000, 2000}) chat_of(host, 4, number);
  });
  for (const bool is_used : {false, true}) {
    Host host(model, budget);
    read_dense(host);
    int32_t resume = int32_t(dense.size());
    for (int32_t number = 1000; number < 60000; number += 1000) {
      chat_of(host, 4, number);
      if (is_used) resume = std::min(resume, resume_of(host, dense));
    }
    if (!is_used) resume = resume_of(host, dense);
    EXPECT_EQ(resume == int32_t(dense.size()), is_used) << resume;
  }
}

// Sequences that free nothing alone, since they hold the same pages, still make room together.
TEST_F(Pressure, TwinsMakeRoom) {
  const ToyModel model({{ToyModel::full()}});
  Host host(model, 10000);
  Chat chat(&host, text(100, 1));
  ASSERT_TRUE(chat.turn(text(200, 2), 30, 3));
  ASSERT_TRUE(chat.turn(text(200, 4), 30, 5));
  Sequence one = chat.sequence(), other = chat.sequence();
  ASSERT_EQ(one.anchors()[1].kind, AnchorKind::prompt_end);
  ASSERT_TRUE(host.memory->drop_anchor(one, 1));
  ASSERT_TRUE(host.memory->drop_anchor(other, 2));
  chat.close();
  host.cache.clear();
  host.cache.keep(std::move(one));
  host.cache.keep(std::move(other));
  ASSERT_EQ(host.cache.entry_count(), 2u);
  Sequence sequence = host.memory->new_sequence();
  const Text tokens = text(1100, 4);
  EXPECT_TRUE(host.cache.begin(sequence, {.tokens = tokens}));
}

// Decoding in a full memory keeps the log, so that the last tokens can be taken back.
TEST_F(Pressure, TheLogKeepsItsBase) {
  const ToyModel model({{large_state()}, {ToyModel::full()}});
  const Layout layout = model.layout();
  const size_t state_bytes = layout.groups[size_t(layout.recurrent_group)].block_bytes;
  for (size_t extra = 5000; extra <= 9000; extra += 500) {
    Host host(model, 4 * state_bytes + extra);
    Chat chat(&host, text(100, 1));
    for (int32_t turn = 0; turn < 4; ++turn) {
      const Result<int32_t> read = chat.turn(text(40, 2 + turn), 40, 20 + turn);
      ASSERT_TRUE(read) << extra;
      const int32_t length = chat.sequence().length();
      for (int32_t back = 1; back < 20; ++back) {
        ASSERT_EQ(host.memory->plan(chat.sequence(), length - back).forward_tokens, 0) << extra;
      }
    }
    EXPECT_EQ(chat.sequence().length(), 420);
  }
}

TEST_F(Pressure, WhatAnActiveSequenceHoldsStays) {
  for (Family& family : families()) {
    SCOPED_TRACE(family.name);
    const auto one = [](Host& host) { chat_of(host, 5, 1000); };
    Host host(family.model, bytes_of(family.model, one) * 7 / 4);
    Chat active(&host, text(100, 1));
    for (int32_t turn = 0; turn < 3; ++turn) {
      ASSERT_TRUE(active.turn(text(60, 10 + turn), 30, 20 + turn));
    }
    std::vector<std::vector<int32_t>> before(host.memory->layout().groups.size()), after = before;
    Inspector::count_refs(active.sequence(), before);
    for (int32_t number = 1000; number < 9000; number += 1000) chat_of(host, 5, number);
    Inspector::count_refs(active.sequence(), after);
    EXPECT_EQ(before, after);
    host.expect_exact(active.sequence());
    EXPECT_EQ(resume_of(host, active.history()), int32_t(active.history().size()));
  }
}

TEST_F(Pressure, NothingGoesForWhatCannotFit) {
  for (Family& family : families()) {
    SCOPED_TRACE(family.name);
    const auto one = [](Host& host) { chat_of(host, 3, 1000); };
    Host host(family.model, bytes_of(family.model, one) * 5 / 4, 100000);
    one(host);
    const size_t evictable = host.cache.evictable_bytes();
    EXPECT_EQ(evictable, host.memory->usage().used_bytes());
    // Neither for what is longer than any sequence may be, though there could be room.
    Host narrow(family.model, bytes_of(family.model, one) * 5 / 4, 600);
    one(narrow);
    const size_t before = narrow.cache.evictable_bytes();
    Sequence beyond = narrow.memory->new_sequence();
    const Text tokens = text(601, 5);
    EXPECT_FALSE(bool(narrow.cache.begin(beyond, {.tokens = tokens})));
    EXPECT_EQ(narrow.cache.evictable_bytes(), before);
    Sequence sequence = host.memory->new_sequence();
    const Text long_text = text(90000, 5);
    const Text too_long = text(100001, 5);
    const std::vector<int32_t> every_token = [] {
      std::vector<int32_t> counts(90000);
      std::iota(counts.begin(), counts.end(), 1);
      return counts;
    }();
    const auto context = host.cache.begin(sequence, {.tokens = too_long});
    ASSERT_FALSE(bool(context));
    EXPECT_NE(context.error().message.find("100001"), std::string::npos);
    const auto room = host.cache.begin(sequence, {.tokens = long_text, .captures = every_token});
    ASSERT_FALSE(bool(room));
    EXPECT_EQ(room.error().code, ErrorCode::memory_full);
    EXPECT_EQ(host.cache.evictable_bytes(), evictable);
    EXPECT_EQ(host.cache.entry_count(), 1u);
  }
}

// One long conversation in a memory of a dozen states: its own anchors make room, those that are
// worth least, and another conversation's end is worth more than they are.
TEST_F(Pressure, OwnAnchorsMakeRoomByTheirWorth) {
  const ToyModel model({{large_state()}, {ToyModel::full()}});
  const Layout layout = model.layout();
  const size_t state_bytes = layout.groups[size_t(layout.recurrent_group)].block_bytes;
  Host host(model, 14 * state_bytes + 20000);
  chat_of(host, 2, 1000);
  Chat chat(&host, text(100, 1));
  for (int32_t turn = 0; turn < 9; ++turn) {
    ASSERT_EQ(chat.turn(text(60, 10 + turn), 20, 100 + turn).value(), turn == 0 ? 160 : 60);
    ASSERT_NO_FATAL_FAILURE(host.expect_exact(chat.sequence()));
  }
  const size_t anchor_count = chat.sequence().anchors().size();
  EXPECT_GT(anchor_count, 6u);
  EXPECT_LT(anchor_count, 3 * 9u);
  const Text other = history_of(2, 1000);
  EXPECT_EQ(resume_of(host, other), int32_t(other.size()));
  // Asking again and saying the last thing otherwise cost as little as ever.
  const Text history = chat.history();
  EXPECT_EQ(chat.read(Text(history.begin(), history.end() - 20)).value(), 0);
  EXPECT_EQ(chat.before(8).turn(text(50, 7), 20, 8).value(), 50);
  // A position of the first half costs a part of the half.
  const Text half(history.begin(), history.begin() + int32_t(history.size()) / 2);
  EXPECT_GT(resume_of(host, half), int32_t(half.size()) / 2);
}

// What could not go, since it was in use, is the first to go once it is not.
TEST_F(Pressure, WhatIsNoLongerInUseIsSeen) {
  const ToyModel model({{ToyModel::full()}});
  const size_t page_bytes = model.layout().groups[0].block_bytes;
  constexpr int32_t kCount = 200;
  Host host(model, 2 * (kCount + 1) * page_bytes);
  std::vector<Sequence> in_use;
  for (int32_t index = 0; index <= kCount; ++index) {
    Sequence sequence = host.memory->new_sequence();
    host.cache.begin(sequence, {.tokens = text(64, index)}).value().commit(64);
    if (index < kCount) in_use.push_back(sequence);
    host.cache.keep(std::move(sequence));
  }
  const auto resume = [&](int32_t index) {
    return host.cache.find(text(64, index), Variant::plain, false).plan.resume;
  };
  const Text tokens = text(64, 1000);
  Sequence sequence = host.memory->new_sequence();
  host.cache.begin(sequence, {.tokens = tokens}).value().commit(64);
  EXPECT_EQ(resume(kCount), 0) << "The only one that was free.";
  in_use.clear();
  Sequence other = host.memory->new_sequence();
  host.cache.begin(other, {.tokens = tokens}).value().commit(64);
  EXPECT_EQ(resume(0), 0) << "The oldest.";
  for (int32_t index = kCount / 4; index < kCount; ++index) ASSERT_EQ(resume(index), 64) << index;
}

// Where no end can go, as many anchors go as there have to.
TEST_F(Pressure, ManyOwnAnchorsMakeRoomForOneStep) {
  const ToyModel model({{large_state()}, {ToyModel::full()}});
  const Layout layout = model.layout();
  const size_t state_bytes = layout.groups[size_t(layout.recurrent_group)].block_bytes;
  Host host(model, 70 * state_bytes + 20000);
  const auto every_fifth = [](int32_t count) {
    std::vector<int32_t> counts(static_cast<size_t>(count));
    for (int32_t index = 0; index < count; ++index) counts[size_t(index)] = 5 * (index + 1);
    return counts;
  };
  Sequence sequence = host.memory->new_sequence();
  const Text tokens = text(305, 1);
  host.cache.begin(sequence, {.tokens = tokens, .captures = every_fifth(60)}).value().commit(305);
  ASSERT_EQ(sequence.anchors().size(), 60u);
  const std::vector<int32_t> captures = every_fifth(55);
  EXPECT_TRUE(host.cache.begin(sequence, {.tokens = tokens, .captures = captures}));
  EXPECT_LT(sequence.anchors().size(), 20u);
  EXPECT_EQ(sequence.length(), 305);
}

// An anchor that two branches share goes from both of them, and only then is room made.
TEST_F(Pressure, BranchesLetGoOfSharedAnchorsTogether) {
  const ToyModel model({{large_state()}, {ToyModel::full()}});
  const auto branches = [](Host& host) {
    Chat chat(&host, text(100, 1));
    for (int32_t turn = 0; turn < 5; ++turn) {
      ASSERT_TRUE(chat.turn(text(60, 10 + turn), 30, 20 + turn));
    }
    Chat other = chat.before(4);
    ASSERT_TRUE(other.turn(text(50, 30), 30, 31));
    chat.close();
    other.close();
  };
  const size_t whole = bytes_of(model, branches);
  Host host(model, whole + 15000);
  branches(host);
  ASSERT_EQ(host.cache.entry_count(), 2u);
  const size_t evictable = host.cache.evictable_bytes();
  ASSERT_EQ(evictable, host.memory->usage().used_bytes());
  Sequence sequence = host.memory->new_sequence();
  const Text tokens = text(300, 2);
  const std::vector<int32_t> captures = {100, 200, 250};
  const Transaction transaction =
      host.cache.begin(sequence, {.tokens = tokens, .captures = captures}).value();
  EXPECT_LT(host.cache.evictable_bytes(), evictable);
  EXPECT_EQ(host.cache.entry_count(), 2u);  // Both ends are still there.
  const Text history = history_of_branch();
  EXPECT_EQ(resume_of(host, history), int32_t(history.size()));
}

// Several conversations in a memory that holds a part of them: turns, questions asked again, edits,
// changes of the conversation and of the variant; now and then one is pinned. Whatever is found,
// taken up and gone on with is exact, and nothing that is kept would be a better start.
TEST_F(Pressure, RandomConversations) {
  for (Family& family : families()) {
    const auto four = [](Host& host) {
      for (const int32_t number : {1000, 2000, 3000, 4000}) chat_of(host, 5, number);
    };
    const size_t whole = bytes_of(family.model, four);
    for (uint32_t seed = 1; seed <= 12; ++seed) {
      SCOPED_TRACE(::testing::Message() << family.name << ", seed " << seed);
      std::mt19937 random(seed);
      Host host(family.model, whole / (1 + seed % 3));
      std::vector<Chat> chats;
      for (int32_t index = 0; index < 3; ++index) {
        chats.emplace_back(&host, text(50 + 40 * (index % 2), 1 + index / 2));
      }
      host.cache.set_pin_quota(host.memory->options().budget_bytes / 4);
      std::vector<PinId> pins;
      int32_t number = 100;
      for (int32_t operation = 0; operation < 60; ++operation) {
        Chat& chat = chats[random() % chats.size()];
        const uint32_t sort = uint32_t(random() % 10);
        if (sort < 2 && !chat.starts().empty()) {
          Chat edited = chat.before(random() % chat.starts().size());
          chat.close();
          chat = std::move(edited);
        } else if (sort == 2) {
          chat.close();
          chat.reopen();
        } else if (sort == 3) {
          chat.change(Variant(random() % 3));
        } else if (chat.history().size() > 600) {
          chat = Chat(&host, text(50, 1));
        }
        number += 2;
        const Text message = text(1 + int32_t(random() % 90), number);
        const int32_t answer_count = 1 + int32_t(random() % 40);
        const Result<int32_t> read = chat.turn(message, answer_count, number + 1);
        if (!read) {
          // The chats that are open fill the memory.
          ASSERT_EQ(read.error().code, ErrorCode::memory_full);
          for (Chat& open : chats) {
            open.close();
            open = Chat(&host, text(50, 1));
          }
          continue;
        }
        ASSERT_NO_FATAL_FAILURE(host.expect_exact(chat.sequence()));
        ASSERT_NO_FATAL_FAILURE(pin_or_unpin(random, host, chat.sequence(), pins));
        if (operation % 8 != 0) continue;
        for (const Chat& open : chats) {
          ASSERT_NO_FATAL_FAILURE(host.expect_exact(open.sequence()));
          ASSERT_NO_FATAL_FAILURE(look_up_parts(random, host, open.history()));
        }
      }
      for (Chat& chat : chats) chat.close();
      expect_counted(host);
      for (const PinId pin : pins) ASSERT_TRUE(host.cache.unpin(pin));
      expect_counted(host);
      host.cache.clear();
      EXPECT_EQ(host.memory->usage().used_bytes(), 0u);
    }
  }
}

// A pinned sequence is there whatever happens, and gives what it holds to others.
TEST_F(Pressure, WhatIsPinnedStays) {
  for (Family& family : families()) {
    SCOPED_TRACE(family.name);
    const auto some = [](Host& host) {
      for (const int32_t number : {1000, 2000}) chat_of(host, 5, number);
    };
    Host host(family.model, bytes_of(family.model, some));
    chat_of(host, 3, 1000);
    const Text history = history_of(3, 1000);
    const int32_t length = int32_t(history.size());
    host.cache.set_pin_quota(host.memory->options().budget_bytes);
    const PinId pin = host.cache.pin(*host.cache.sequences().front()).value();
    EXPECT_EQ(host.cache.entry_count(), 1u);  // The entry was its beginning.
    expect_counted(host);
    const size_t pinned_bytes = host.cache.pinned_bytes();
    for (int32_t number = 2000; number < 12000; number += 1000) {
      chat_of(host, 4, number);
      ASSERT_EQ(resume_of(host, history), length);
    }
    expect_counted(host);
    EXPECT_EQ(host.cache.pinned_bytes(), pinned_bytes);
    host.cache.clear();
    EXPECT_EQ(host.memory->usage().used_bytes(), pinned_bytes);
    EXPECT_EQ(resume_of(host, history), length);
    ASSERT_TRUE(host.cache.unpin(pin));
    EXPECT_FALSE(host.cache.unpin(pin));
    EXPECT_EQ(host.cache.pinned_bytes(), 0u);
    expect_counted(host);
    EXPECT_EQ(resume_of(host, history), length);
    for (int32_t number = 20000; number < 60000; number += 1000) chat_of(host, 4, number);
    EXPECT_LT(resume_of(host, history), length);
  }
}

// Before an entry loses tokens, states or windows, whoever asked sees it whole, once between uses.
TEST_F(Pressure, IsAnnounced) {
  for (Family& family : families()) {
    SCOPED_TRACE(family.name);
    const auto some = [](Host& host) {
      for (const int32_t number : {1000, 2000, 3000}) chat_of(host, 4, number);
    };
    Host host(family.model, bytes_of(family.model, some) * 5 / 4);
    const Text history = history_of(4, 1000);
    const int32_t length = int32_t(history.size());
    const auto is_first = [&](const Sequence& sequence) {
      return common_prefix(sequence.tokens(), history) == sequence.length();
    };
    int32_t first_count = 0, others_count = 0, tokens = 0;
    host.cache.on_evict([&](const Sequence& sequence) {
      ++(is_first(sequence) ? first_count : others_count);
      if (is_first(sequence)) tokens = sequence.length();
    });
    some(host);
    EXPECT_EQ(resume_of(host, history), length);
    EXPECT_EQ(first_count, 0);
    // Used again and again, it is told at most once each time.
    int32_t number = 4000;
    for (int32_t use = 1; use <= 3; ++use) {
      const int32_t before = first_count;
      resume_of(host, history);
      for (int32_t chat = 0; chat < 3; ++chat) chat_of(host, 4, number += 1000);
      EXPECT_LE(first_count, before + 1);
    }
    for (int32_t chat = 0; chat < 30; ++chat) chat_of(host, 4, number += 1000);
    EXPECT_LT(resume_of(host, history), length);
    EXPECT_GE(first_count, 1);
    EXPECT_GT(tokens, 0);
    EXPECT_GE(others_count, 10);
    EXPECT_LE(others_count, 4 * 41);  // Each turn of a chat is an entry.
  }
}

// Who keeps a copy of what was announced keeps its blocks: room is made elsewhere, or not at all.
TEST_F(Pressure, CopiesOfWhatIsAnnouncedStay) {
  const ToyModel model({{large_state()}, {ToyModel::full()}});
  const auto some = [](Host& host) {
    for (const int32_t number : {1000, 2000, 3000}) chat_of(host, 4, number);
  };
  Host host(model, bytes_of(model, some) * 3 / 2);
  std::vector<Sequence> copies;
  host.cache.on_evict([&](const Sequence& sequence) { copies.push_back(sequence); });
  some(host);
  for (int32_t number = 4000; number < 40000; number += 1000) {
    Chat chat(&host, text(100, number));
    if (!chat.turn(text(60, number + 1), 30, number + 2)) break;
  }
  ASSERT_GE(copies.size(), 3u);
  for (const Sequence& copy : copies) ASSERT_NO_FATAL_FAILURE(host.expect_exact(copy));
  copies.clear();
  expect_counted(host);
}

// Twelve people, of whom some come more often than others, in a memory for a few of them: the next
// turn, a message said otherwise, another conversation.
int32_t tokens_read_of_visits(const ToyModel& model, size_t budget_bytes, uint32_t seed) {
  std::mt19937 random(seed);
  Host host(model, budget_bytes);
  std::vector<Chat> chats;
  for (int32_t index = 0; index < 12; ++index) chats.emplace_back(&host, text(150, 1 + index % 3));
  int32_t read_count = 0, number = 1000;
  for (int32_t visit = 0; visit < 200; ++visit) {
    // The first half of them comes in three of four visits.
    const size_t half = random() % 4 == 0 ? 6 : 0;
    const size_t index = half + random() % 6;
    Chat& chat = chats[index];
    const uint32_t sort = uint32_t(random() % 8);
    if (sort == 0 || chat.history().size() > 700) {
      chat = Chat(&host, text(150, 1 + int32_t(index) % 3));
    } else if (sort == 1 && !chat.starts().empty()) {
      chat = chat.before(chat.starts().size() - 1);
    }
    const Text message = text(10 + int32_t(random() % 50), number += 2);
    Result<int32_t> count = chat.turn(message, 5 + int32_t(random() % 20), number + 1);
    EXPECT_TRUE(count);
    read_count += count ? *count : 0;
    chat.close();
    chat.reopen();
  }
  return read_count;
}

// Bounds are what a cache reads that values everything that it keeps at each eviction and takes the
// oldest of the entries that serve equally well, with 2 % more for other machines' logarithms.
TEST(Eviction, ReadsNoMoreThanWhereEverythingIsValued) {
  if (test::kIsSanitized) GTEST_SKIP() << "compares a figure; other tests take the same ways";
  struct Bound {
    size_t budget_bytes;
    int32_t read_count;
  };
  const std::vector<Bound> bounds = {{60000, 65073},   {60000, 67565},  {60000, 53590},
                                     {160000, 105506}, {160000, 51782}, {160000, 62601}};
  ASSERT_EQ(families().size(), bounds.size());
  for (size_t index = 0; index < bounds.size(); ++index) {
    const Family family = families()[index];
    int32_t read_count = 0;
    for (uint32_t seed = 1; seed <= 6; ++seed) {
      read_count += tokens_read_of_visits(family.model, bounds[index].budget_bytes, seed);
    }
    EXPECT_LE(read_count, bounds[index].read_count / 50 * 51) << family.name;
  }
}

}  // namespace
}  // namespace cairn::memory::eviction_test
