// The tree against asking every sequence, over random insertions and removals of sequences that
// part and end anywhere and have lost whatever can be lost.
#include "memory/cache/prefix_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <optional>
#include <random>
#include <tuple>

#include "device/host_memory.h"
#include "memory/common_prefix.h"
#include "tests/memory/toy_model.h"
#include "tests/sanitized.h"

namespace cairn::memory::prefix_tree_test {
namespace {

using toy::ToyModel;

struct Family {
  const char* name;
  ToyModel model;
};

std::vector<Family> families() {
  using Toy = ToyModel;
  return {{"full", Toy({{Toy::full()}})},
          {"windows", Toy({{Toy::window(40)}, {Toy::full()}, {Toy::window(7)}})},
          {"chunks", Toy({{Toy::chunked(48)}, {Toy::full()}})},
          {"recurrent", Toy({{Toy::recurrent()}})},
          {"hybrid", Toy({{Toy::recurrent()}, {Toy::full()}})},
          {"all", Toy({{Toy::recurrent()}, {Toy::window(50)}, {Toy::chunked(64)}})}};
}

// Sequences at random, and the entries that are in the tree.
class Forest {
 public:
  Forest(const ToyModel& model, bool with_log, uint32_t seed)
      : random_(seed),
        memory_(Memory::create(model.layout(with_log),
                               {.budget_bytes = 16 << 20, .context_tokens_max = 600}, device_)
                    .value()),
        tree_(memory_.get()) {}

  uint32_t below(uint32_t bound) { return uint32_t(random_() % bound); }
  std::list<CacheEntry>& entries() { return entries_; }
  const PrefixTree& tree() const { return tree_; }
  const Memory& memory() const { return *memory_; }

  // Few different tokens, so that sequences part late and often.
  std::vector<Token> tokens(uint32_t count) {
    std::vector<Token> list(count);
    for (Token& token : list) token = Token(1 + (below(8) == 0 ? 1 + below(2) : 0));
    return list;
  }
  // The beginning of an entry with another end; sometimes an entry as it is.
  std::vector<Token> prompt() {
    if (entries_.empty()) return tokens(1 + below(100));
    const std::span<const Token> all = any().sequence.tokens();
    const size_t kept = below(3) == 0 ? all.size() : below(uint32_t(all.size()) + 1);
    std::vector<Token> list(all.begin(), all.begin() + std::ptrdiff_t(kept));
    if (below(3) == 0) return list;
    const std::vector<Token> end = tokens(1 + below(50));
    list.insert(list.end(), end.begin(), end.end());
    return list;
  }

  void insert() {
    Sequence sequence = memory_->new_sequence(Variant(below(4) == 0));
    if (!entries_.empty() && below(4) != 0) {
      const Sequence& parent = any().sequence;
      sequence = memory_->at(parent, int32_t(below(uint32_t(parent.length()) + 1))).value();
    }
    while (sequence.length() == 0 || (sequence.length() < 400 && below(3) != 0)) grow(sequence);
    thin(sequence);
    CacheEntry& entry = entries_.emplace_back();
    entry.id = entry.last_use = ++last_use_;
    entry.sequence = std::move(sequence);
    tree_.insert(entry);
  }
  void use() {
    if (!entries_.empty()) tree_.use(any(), ++last_use_);
  }
  void erase() {
    if (entries_.empty()) return;
    const auto entry = std::next(entries_.begin(), below(uint32_t(entries_.size())));
    tree_.erase(*entry);
    entries_.erase(entry);
  }
  // As eviction does it: out of the tree, changed, and in again.
  void change() {
    if (entries_.empty()) return;
    CacheEntry& entry = any();
    tree_.erase(entry);
    thin(entry.sequence);
    tree_.insert(entry);
  }

 private:
  CacheEntry& any() { return *std::next(entries_.begin(), below(uint32_t(entries_.size()))); }

  void grow(Sequence& sequence) {
    if (memory_->needs_replay(sequence)) memory_->begin_replay(sequence, 1000).value().commit();
    const std::vector<Token> list = tokens(1 + below(below(2) == 0 ? 9 : 80));
    std::vector<int32_t> captures;
    for (int32_t count = 1; count <= int32_t(list.size()); ++count) {
      if (below(30) == 0) captures.push_back(count);
    }
    memory_->begin(sequence, {.tokens = list, .captures = captures, .keeps_hidden = below(2) == 0})
        .value()
        .commit(int32_t(list.size()));
    if (below(2) != 0) return;
    EXPECT_TRUE(memory_->keep_anchor(sequence, AnchorKind::prompt_end));
  }

  void thin(Sequence& sequence) {
    if (below(2) == 0) {
      memory_->protect_from(sequence, int32_t(below(uint32_t(sequence.length()) + 1)));
    }
    for (size_t index = sequence.anchors().size(); index-- > 0;) {
      if (below(4) == 0 && memory_->drop_anchor(sequence, index)) continue;
    }
    if (below(2) == 0) memory_->suspend(sequence);
  }

  std::mt19937 random_;
  HostMemory device_;
  std::unique_ptr<Memory> memory_;
  std::list<CacheEntry> entries_;
  PrefixTree tree_;
  int64_t last_use_ = 0;
};

// Tokens that are resumed at, and steps to replay, fewer being better.
using Cost = std::pair<int32_t, int32_t>;

Cost cost_from(const Forest& forest, const CacheEntry& entry, std::span<const Token> prompt,
               bool wants_logits) {
  const int32_t shared = common_prefix(entry.sequence.tokens(), prompt);
  const bool is_whole = size_t(shared) == prompt.size();
  const ResumePlan plan = forest.memory().plan(entry.sequence, shared, is_whole && wants_logits);
  return {int32_t(prompt.size()) - plan.resume, plan.resume == 0 ? 0 : plan.recurrence_steps};
}

void expect_as_good_as_asking_all(Forest& forest, std::span<const Token> prompt, Variant variant,
                                  bool wants_logits) {
  Cost least = {int32_t(prompt.size()), 0};
  int32_t shared = 0, foreign = 0;
  bool goes_on = false;
  for (const CacheEntry& entry : forest.entries()) {
    const int32_t own = common_prefix(entry.sequence.tokens(), prompt);
    if (entry.sequence.variant() != variant) {
      foreign = std::max(foreign, own);
      continue;
    }
    least = std::min(least, cost_from(forest, entry, prompt, wants_logits));
    if (own > shared) goes_on = false;
    shared = std::max(shared, own);
    goes_on = goes_on || (own > 0 && own == shared && entry.sequence.length() > own);
  }
  const PrefixTree::Match match = forest.tree().match(prompt, variant, wants_logits);
  ASSERT_EQ(match.shared, shared);
  ASSERT_EQ(match.goes_on, goes_on);
  ASSERT_EQ(match.nearest == nullptr, shared == 0);
  ASSERT_EQ(forest.tree().foreign_prefix(prompt, variant), foreign);
  if (match.nearest != nullptr) {
    ASSERT_EQ(common_prefix(match.nearest->sequence.tokens(), prompt), shared);
  }
  ASSERT_EQ(int32_t(prompt.size()) - match.resume, least.first);
  ASSERT_EQ(match.best == nullptr, match.resume == 0);
  if (match.best == nullptr) return;
  ASSERT_EQ(match.best->sequence.variant(), variant);
  ASSERT_EQ(cost_from(forest, *match.best, prompt, wants_logits), least);
}

void expect_relations(Forest& forest) {
  for (const CacheEntry& entry : forest.entries()) {
    int32_t shared = 0;
    std::vector<const CacheEntry*> beginnings, continuations;
    for (const CacheEntry& other : forest.entries()) {
      if (other.sequence.variant() != entry.sequence.variant()) continue;
      const int32_t both = common_prefix(entry.sequence, other.sequence);
      if (&other != &entry) shared = std::max(shared, both);
      if (both == other.sequence.length()) beginnings.push_back(&other);
      if (both == entry.sequence.length()) continuations.push_back(&other);
    }
    const PrefixTree::Neighbour neighbour = PrefixTree::neighbour(entry);
    ASSERT_EQ(neighbour.shared, shared);
    ASSERT_EQ(neighbour.entry == nullptr, shared == 0);
    ASSERT_NE(neighbour.entry, &entry);
    const Sequence& other = shared > 0 ? neighbour.entry->sequence : entry.sequence;
    ASSERT_GE(common_prefix(entry.sequence, other), shared);
    const auto expect_some = [&](const std::vector<CacheEntry*>& found,
                                 const std::vector<const CacheEntry*>& all, size_t count_max) {
      ASSERT_EQ(found.size(), std::min(all.size(), count_max));
      for (const CacheEntry* const each : found) {
        ASSERT_EQ(std::count(all.begin(), all.end(), each), 1);
        ASSERT_EQ(std::count(found.begin(), found.end(), each), 1);
      }
    };
    const std::span<const Token> tokens = entry.sequence.tokens();
    const Variant variant = entry.sequence.variant();
    for (const size_t count_max : {size_t(1), size_t(3), SIZE_MAX / 2}) {
      const auto found = forest.tree().beginnings(tokens, variant, count_max);
      ASSERT_NO_FATAL_FAILURE(expect_some(found, beginnings, count_max));
      ASSERT_TRUE(std::is_sorted(found.begin(), found.end(), [](auto* a, auto* b) {
        return a->sequence.length() > b->sequence.length();
      }));
      ASSERT_NO_FATAL_FAILURE(expect_some(forest.tree().continuations(tokens, variant, count_max),
                                          continuations, count_max));
    }
  }
}

TEST(PrefixTree, IsAsGoodAsAskingEverySequence) {
  for (const Family& family : families()) {
    for (uint32_t seed = 1; seed <= 40; ++seed) {
      SCOPED_TRACE(::testing::Message() << family.name << ", seed " << seed);
      Forest forest(family.model, seed % 3 != 0, seed);
      for (int32_t operation = 0; operation < 80; ++operation) {
        // Grows, and shrinks to nothing in the end.
        const bool shrinks = operation >= 50;
        const uint32_t sort = forest.below(10);
        if (sort == 0) {
          forest.change();
          forest.use();
        } else if (shrinks ? sort < 9 : sort < 3) {
          forest.erase();
        } else {
          forest.insert();
        }
        for (int32_t prompt_count = 0; prompt_count < 4; ++prompt_count) {
          const std::vector<Token> prompt = forest.prompt();
          ASSERT_NO_FATAL_FAILURE(expect_as_good_as_asking_all(
              forest, prompt, Variant(forest.below(3)), forest.below(2) == 0))
              << "operation " << operation;
        }
        if (operation % 10 != 0) continue;
        ASSERT_NO_FATAL_FAILURE(expect_relations(forest));
      }
    }
  }
}

// Where several entries serve equally well, it is the one that was used last that does.
TEST(PrefixTree, FindsWhatWasUsedLast) {
  const ToyModel model({{ToyModel::recurrent()}, {ToyModel::full()}});
  HostMemory device;
  const auto memory =
      Memory::create(model.layout(), {.budget_bytes = 1 << 20, .context_tokens_max = 400}, device)
          .value();
  const std::vector<Token> prompt(50, Token(3));
  std::list<CacheEntry> entries;
  PrefixTree tree(memory.get());
  for (int32_t index = 0; index < 100; ++index) {
    CacheEntry& entry = entries.emplace_back();
    entry.id = entry.last_use = index + 1;
    entry.sequence = memory->new_sequence();
    std::vector<Token> tokens = prompt;
    tokens.push_back(Token(10 + index % 50));
    const std::vector<int32_t> captures = {50};
    memory->begin(entry.sequence, {.tokens = tokens, .captures = captures}).value().commit(51);
    tree.insert(entry);
  }
  const auto found = [&] { return tree.match(prompt, Variant::plain, false).best->id; };
  EXPECT_EQ(found(), 100);
  const auto entry = [&](int32_t id) -> CacheEntry& { return *std::next(entries.begin(), id - 1); };
  tree.use(entry(3), 101);
  EXPECT_EQ(found(), 3);
  tree.use(entry(70), 102);
  tree.erase(entry(3));
  EXPECT_EQ(found(), 70);
  tree.erase(entry(70));
  EXPECT_EQ(found(), 100);
  tree.use(entry(5), 103);
  EXPECT_EQ(found(), 5);
}

// Every entry begins with all those before it.
TEST(PrefixTree, BearsALineOfBranchesThatIsLong) {
  HostMemory device;
  const auto memory =
      Memory::create(ToyModel({{ToyModel::full()}}).layout(),
                     {.budget_bytes = 64 << 20, .context_tokens_max = 20000}, device)
          .value();
  std::list<CacheEntry> entries;
  {
    PrefixTree tree(memory.get());
    Sequence sequence = memory->new_sequence();
    constexpr int32_t kCount = test::kIsSanitized ? 4000 : 10000;
    for (int32_t index = 0; index < kCount; ++index) {
      const Token token = Token(index % 7);
      memory->begin(sequence, {.tokens = {&token, 1}}).value().commit(1);
      CacheEntry& entry = entries.emplace_back();
      entry.id = entry.last_use = index;
      entry.sequence = sequence;
      tree.insert(entry);
    }
    EXPECT_EQ(tree.match(sequence.tokens(), Variant::plain, false).resume, kCount);
    const std::vector<Token> half(sequence.tokens().begin(),
                                  sequence.tokens().begin() + kCount / 2);
    EXPECT_EQ(tree.match(half, Variant::plain, false).resume, kCount / 2);
  }
}

}  // namespace
}  // namespace cairn::memory::prefix_tree_test
