// Shares of tenants: what each holds is counted as blocks come and go, and in a memory with too
// little room nothing goes that another holds within its share, but as the last resort of who may
// take everything.
#include "memory/cache/shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "tests/memory/toy_chat.h"
#include "tests/memory/toy_families.h"
#include "tests/sanitized.h"

namespace cairn::memory::shares_test {
namespace {

using toy::Chat;
using toy::families;
using toy::Family;
using toy::Host;
using toy::text;
using toy::Text;

constexpr uint64_t kAnna = 1, kBert = 2, kCleo = 3, kNobody = 7;

Text history_of(int32_t turns, int32_t number) {
  Text history = text(100, number);
  for (int32_t turn = 0; turn < turns; ++turn) {
    using toy::operator+;
    history = history + text(60, number + 2 * turn + 1) + text(30, number + 2 * turn + 2);
  }
  return history;
}

// A conversation that ends: all of it is in the cache then.
bool chat_of(Host& host, int32_t turns, int32_t number, uint64_t tenant, bool spares = false) {
  Chat chat(&host, text(100, number), Variant(0, tenant));
  chat.spare_shares(spares);
  for (int32_t turn = 0; turn < turns; ++turn) {
    if (!chat.turn(text(60, number + 2 * turn + 1), 30, number + 2 * turn + 2)) return false;
  }
  return true;
}

size_t used_bytes(const Host& host, uint64_t tenant) {
  const Ledger& ledger = host.memory->ledger();
  const int32_t account = ledger.account_of(tenant);
  return account < 0 ? 0 : ledger.used_bytes()[size_t(account)];
}

size_t bytes_of_chat(const Family& family, int32_t turns) {
  Host host(family.model);
  EXPECT_TRUE(chat_of(host, turns, 1000, kAnna));
  return host.memory->usage().used_bytes();
}

bool is_whole(Host& host, int32_t turns, int32_t number, uint64_t tenant) {
  const Text history = history_of(turns, number);
  return host.cache.look(history, Variant(0, tenant), true).plan.resume == int32_t(history.size());
}

// Each block that some sequence of a tenant refers to, once.
size_t counted_bytes(const Host& host, const std::vector<const Sequence*>& sequences,
                     uint64_t tenant) {
  const Layout& layout = host.memory->layout();
  std::vector<std::vector<int32_t>> refs(layout.groups.size());
  for (const Sequence* const sequence : sequences) {
    if (sequence->variant().tenant == tenant) Inspector::count_refs(*sequence, refs);
  }
  size_t bytes = 0;
  for (size_t group = 0; group < refs.size(); ++group) {
    const auto count = std::ranges::count_if(refs[group], [](int32_t each) { return each > 0; });
    bytes += size_t(count) * layout.groups[group].block_bytes;
  }
  return bytes;
}

TEST(Shares, AreThereForTwoTenantsOrMore) {
  Host host(families()[0].model);
  Shares shares(host.memory.get());
  EXPECT_FALSE(shares.are_set());
  shares.set({kAnna, kAnna}, 1000);
  EXPECT_FALSE(shares.are_set());
  shares.set({kAnna, kBert}, 0);
  EXPECT_FALSE(shares.are_set());
  ASSERT_TRUE(chat_of(host, 1, 1, kAnna));
  ASSERT_TRUE(chat_of(host, 1, 1, kNobody));
  const size_t bytes = used_bytes(host, kAnna);
  ASSERT_GT(bytes, 0u);
  shares.set({kBert, kAnna}, bytes);
  EXPECT_TRUE(shares.are_set());
  EXPECT_FALSE(shares.is_above(kAnna));
  EXPECT_TRUE(shares.is_above(kAnna, 1));
  EXPECT_FALSE(shares.is_above(kBert, bytes));
  EXPECT_TRUE(shares.is_above(kNobody)) << "it has none";
  EXPECT_EQ(shares.excess(kNobody), bytes);
  shares.set({kBert, kAnna}, bytes - 1);
  EXPECT_EQ(shares.excess(kAnna), 1u);
  EXPECT_EQ(shares.excess(kBert), 0u);
}

// The ledger's accounts, and what can be evicted for each, against all references that there are.
TEST(Shares, AreCountedAsBlocksComeAndGo) {
  for (const Family& family : families()) {
    SCOPED_TRACE(family.name);
    const size_t chat_bytes = bytes_of_chat(family, 3);
    Host host(family.model, chat_bytes * 5);
    const size_t share = chat_bytes;
    host.cache.set_shares({kAnna, kBert, kCleo}, share);
    std::mt19937 random(5);
    std::vector<Chat> chats;
    for (int32_t operation = 0; operation < 120; ++operation) {
      const uint64_t tenant = 1 + random() % 3;
      if (random() % 3 == 0 && !chats.empty()) {
        chats.erase(chats.begin() + std::ptrdiff_t(random() % chats.size()));
      } else if (chats.size() < 5) {
        chats.emplace_back(&host, text(100, int32_t(random() % 6)), Variant(0, tenant));
      }
      if (chats.empty()) continue;
      Chat& chat = chats[random() % chats.size()];
      chat.spare_shares(random() % 2 == 0);
      (void)chat.turn(text(40, int32_t(random() % 4)), 10, operation);
      std::vector<const Sequence*> all = host.cache.sequences();
      const std::vector<const Sequence*> kept = all;
      for (const Chat& each : chats) all.push_back(&each.sequence());
      std::map<uint64_t, size_t> evictable;
      size_t sum = 0;
      for (const uint64_t each : {kAnna, kBert, kCleo}) {
        ASSERT_EQ(used_bytes(host, each), counted_bytes(host, all, each));
        std::vector<const Sequence*> others;
        for (const Chat& other : chats) others.push_back(&other.sequence());
        evictable[each] = used_bytes(host, each) - counted_bytes(host, others, each);
        sum += evictable[each];
      }
      ASSERT_EQ(host.cache.evictable_bytes(), sum);
      for (const uint64_t asking : {kAnna, kBert, kCleo, kNobody}) {
        size_t expected = 0;
        for (const auto& [each, bytes] : evictable) {
          const size_t used = used_bytes(host, each);
          const size_t above = used - std::min(used, share);
          expected += each == asking ? bytes : std::min(bytes, above);
        }
        ASSERT_EQ(host.cache.evictable_bytes_for(asking), expected);
      }
    }
    chats.clear();
    host.cache.clear(kAnna);
    EXPECT_EQ(used_bytes(host, kAnna), 0u);
    host.cache.clear();
    for (const size_t bytes : host.memory->ledger().used_bytes()) EXPECT_EQ(bytes, 0u);
  }
}

// Unique conversations, one after the other: they drive out each other, and nothing of others.
TEST(Shares, AFloodEvictsItself) {
  for (const Family& family : families()) {
    SCOPED_TRACE(family.name);
    const size_t chat_bytes = bytes_of_chat(family, 6);
    for (const bool has_shares : {false, true}) {
      Host host(family.model, chat_bytes * 4);
      if (has_shares) host.cache.set_shares({kAnna, kBert}, chat_bytes * 2);
      ASSERT_TRUE(chat_of(host, 6, 1000, kAnna));
      for (int32_t number = 2000; number <= 41000; number += 1000) {
        ASSERT_TRUE(chat_of(host, 6, number, kBert, number % 2000 == 0));
      }
      EXPECT_EQ(is_whole(host, 6, 1000, kAnna), has_shares);
      EXPECT_TRUE(is_whole(host, 6, 41000, kBert)) << "its last one is there";
      // Its own need is no reason to spare anything of its own.
      if (!has_shares) continue;
      for (int32_t number = 50000; number < 60000; number += 1000) {
        ASSERT_TRUE(chat_of(host, 6, number, kAnna));
      }
      EXPECT_FALSE(is_whole(host, 6, 1000, kAnna));
      EXPECT_TRUE(is_whole(host, 6, 59000, kAnna));
    }
  }
}

// Who is above its share gives as much as that, whoever asks; what is left of it stays, and goes
// last where somebody may take everything.
TEST(Shares, AreTakenAsTheLastResort) {
  const Family family = families()[0];
  const size_t chat_bytes = bytes_of_chat(family, 6);
  const size_t budget = chat_bytes * 13 / 2;
  Host host(family.model, budget);
  host.cache.set_shares({kAnna, kBert, kCleo}, budget / 3);
  const auto whole_count = [&](uint64_t tenant, std::vector<int32_t> numbers) {
    return std::ranges::count_if(numbers,
                                 [&](int32_t number) { return is_whole(host, 6, number, tenant); });
  };
  for (int32_t number = 1000; number < 5000; number += 1000) chat_of(host, 6, number, kAnna);
  for (const int32_t number : {5000, 5500}) chat_of(host, 6, number, kBert);
  for (int32_t number = 6000; number < 8000; number += 1000) {
    ASSERT_TRUE(chat_of(host, 6, number, kCleo, true));
  }
  EXPECT_EQ(whole_count(kAnna, {1000, 2000, 3000, 4000}), 2);
  EXPECT_GE(used_bytes(host, kAnna), budget / 3 - chat_bytes / 8);
  EXPECT_EQ(whole_count(kBert, {5000, 5500}), 2);
  EXPECT_EQ(whole_count(kCleo, {6000, 7000}), 2);
  // More than a share, beside what others hold within theirs.
  Chat large(&host, text(100, 9000), Variant(0, kBert));
  large.spare_shares(true);
  const Text document = text(1800, 9001);
  EXPECT_FALSE(large.turn(document, 1, 9002));
  EXPECT_EQ(whole_count(kAnna, {1000, 2000, 3000, 4000}) + whole_count(kCleo, {6000, 7000}), 4)
      << "nothing goes in vain";
  Chat alone(&host, text(100, 9000), Variant(0, kBert));
  EXPECT_TRUE(alone.turn(document, 1, 9002));
  EXPECT_EQ(whole_count(kBert, {5000, 5500}), 0) << "its own goes before others'";
  EXPECT_LT(whole_count(kAnna, {1000, 2000, 3000, 4000}) + whole_count(kCleo, {6000, 7000}), 4);
}

// What an entry still holds.
using Content = std::tuple<int64_t, int32_t, size_t, int32_t, bool>;
std::vector<Content> contents_of(const Host& host, uint64_t tenant) {
  std::vector<Content> contents;
  for (const PrefixCache::Listed& each : host.cache.list()) {
    const Sequence& sequence = *each.sequence;
    if (sequence.variant().tenant != tenant) continue;
    contents.emplace_back(each.id, sequence.length(), sequence.anchors().size(),
                          sequence.protected_from(), sequence.has_live_state());
  }
  return contents;
}

struct Visits {
  Host host;
  size_t share;
  std::vector<Chat> chats = {};
  int32_t spared_count = 0, taken_count = 0;
};

// Conversations of three tenants and of one without a share go on, some of them held meanwhile.
void visit(Visits& visits, std::mt19937& random, int32_t number) {
  const size_t index = random() % visits.chats.size();
  Chat& chat = visits.chats[index];
  const uint64_t asking = chat.variant().tenant;
  const bool spares = random() % 2 == 0;
  if (chat.history().size() > 600) {
    chat = Chat(&visits.host, text(150, int32_t(random() % 3)), chat.variant());
  }
  chat.spare_shares(spares);
  std::map<uint64_t, std::vector<Content>> before;
  for (const uint64_t tenant : {kAnna, kBert, kCleo}) {
    const bool is_within = used_bytes(visits.host, tenant) <= visits.share;
    if (tenant != asking && is_within) before[tenant] = contents_of(visits.host, tenant);
  }
  (void)chat.turn(text(10 + int32_t(random() % 200), number), 5 + int32_t(random() % 20), number);
  for (const auto& [tenant, contents] : before) {
    const bool is_same = contents_of(visits.host, tenant) == contents;
    if (spares) {
      ASSERT_TRUE(is_same) << "tenant " << tenant << " lost something to " << asking;
    }
    ++(is_same ? visits.spared_count : visits.taken_count);
  }
  if (random() % 3 != 0) {
    chat.close();
    chat.reopen();
  }
}

TEST(Shares, NothingWithinThemGoesForWhoSparesThem) {
  for (const Family& family : families()) {
    SCOPED_TRACE(family.name);
    constexpr uint32_t kSeeds = test::kIsSanitized ? 3 : 6;
    int32_t spared_count = 0, taken_count = 0;
    for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
      std::mt19937 random(seed);
      const size_t budget = size_t(40000 + 20000 * (seed % 4));
      Visits visits{.host = Host(family.model, budget), .share = budget / (3 + seed % 3)};
      visits.host.cache.set_shares({kAnna, kBert, kCleo}, visits.share);
      for (int32_t index = 0; index < 12; ++index) {
        const uint64_t tenant = std::array{kAnna, kBert, kCleo, kNobody}[size_t(index) % 4];
        visits.chats.emplace_back(&visits.host, text(150, index % 3), Variant(0, tenant));
      }
      // What others hold within their shares goes when nothing else is left.
      visits.host.cache.on_evict([&](const Sequence& sequence) {
        const uint64_t asking = Inspector::asking_tenant(visits.host.cache);
        const uint64_t tenant = sequence.variant().tenant;
        const bool is_within = used_bytes(visits.host, tenant) <= visits.share;
        if (tenant == asking || tenant == kNobody || !is_within) return;
        if (family.model.layout().recurrent_group >= 0) return;  // A log's base stays.
        EXPECT_EQ(visits.host.cache.evictable_bytes_for(asking), 0u);
      });
      for (int32_t number = 0; number < 150; ++number) {
        ASSERT_NO_FATAL_FAILURE(visit(visits, random, 1000 + number)) << seed;
      }
      for (const Chat& chat : visits.chats) {
        if (!chat.sequence().is_closed()) visits.host.expect_exact(chat.sequence());
      }
      spared_count += visits.spared_count;
      taken_count += visits.taken_count;
    }
    EXPECT_GT(spared_count, 100);
    EXPECT_GT(taken_count, 0);
  }
}

}  // namespace
}  // namespace cairn::memory::shares_test
