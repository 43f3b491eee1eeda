// Pages, states and transactions without a model: what a step would write is written by hand, and
// every sequence must read back its own tokens whatever the others did. The seeded programs mix
// appends, rewinds, forks, aborts and drops under a small budget.
#include "memory/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace cairn::memory {
namespace {

Layout hybrid_layout() {
  const std::vector<std::vector<State>> layers = {
      {State::full(2, 3, 5)}, {State::recurrent({4, 9})}, {State::full(1, 4, 4)}};
  return Layout::make(layers, KvType::f32, KvType::f16);
}

std::unique_ptr<Memory> make_memory(Layout layout, size_t budget_bytes, int32_t context) {
  auto memory = Memory::create(std::move(layout),
                               {.budget_bytes = budget_bytes, .context_tokens_max = context});
  EXPECT_TRUE(bool(memory));
  return std::move(memory).value();
}

TEST(Layout, GroupsLayersByKindAndAlignsPlanes) {
  const Layout layout = hybrid_layout();
  ASSERT_EQ(layout.groups.size(), 2u);
  EXPECT_EQ(layout.kv_planes.size(), 2u);
  EXPECT_EQ(layout.state_tensors.size(), 2u);
  EXPECT_EQ(layout.kv_plane_of_layer, (std::vector<int32_t>{0, -1, 1}));
  EXPECT_EQ(layout.state_tensor_of_layer, (std::vector<int32_t>{-1, 0, -1}));
  EXPECT_EQ(layout.kv_planes[0].keys_page_bytes, 2u * 3 * 32 * 4);
  EXPECT_EQ(layout.kv_planes[0].values_page_bytes, 2u * 5 * 32 * 2);
  EXPECT_EQ(layout.state_tensors[1].offset, 64u);
}

// A toy model: a page's row holds its token; the state is a hash of all tokens so far.
uint64_t fold(uint64_t hash, Token token) {
  return (hash ^ uint64_t(uint32_t(index_of(token)))) * 1099511628211u + 7;
}

class Toy {
 public:
  explicit Toy(Memory* memory) : memory_(memory) {}

  void step(const Transaction& transaction) const {
    const Slice slice = transaction.slice(0);
    const KvPlane& plane = memory_->layout().kv_planes[0];
    for (int32_t row = 0; row < slice.row_count; ++row) {
      const int32_t position = slice.first_position + row;
      const PageId page = slice.pages[plane.group][position / kPageTokens];
      std::byte* keys = plane.keys + size_t(index_of(page)) * plane.keys_page_bytes;
      std::memcpy(keys + size_t(position % kPageTokens) * sizeof(Token),
                  &transaction.tokens()[size_t(row)], sizeof(Token));
    }
    const int32_t group = memory_->layout().state_tensors[0].group;
    uint64_t hash = 0;
    if (slice.states[group] != nullptr) std::memcpy(&hash, slice.states[group], sizeof hash);
    int32_t row = 0;
    for (const Capture& capture : slice.captures) {
      for (; row < capture.row_count; ++row) hash = fold(hash, transaction.tokens()[size_t(row)]);
      std::memcpy(capture.states[group], &hash, sizeof hash);
    }
  }

  // What the memory holds of a sequence must be what its tokens say.
  void verify(Sequence& sequence) const {
    const Token probe[] = {Token(0)};
    auto begun = memory_->begin(sequence, probe);
    if (!begun) return;  // No room for the probe: nothing to read through.
    const Transaction transaction = std::move(begun).value();
    const Slice slice = transaction.slice(0);
    const KvPlane& plane = memory_->layout().kv_planes[0];
    uint64_t hash = 0;
    for (int32_t position = 0; position < sequence.length(); ++position) {
      const PageId page = slice.pages[plane.group][position / kPageTokens];
      Token stored{};
      std::memcpy(&stored,
                  plane.keys + size_t(index_of(page)) * plane.keys_page_bytes +
                      size_t(position % kPageTokens) * sizeof(Token),
                  sizeof stored);
      ASSERT_EQ(stored, sequence.tokens()[size_t(position)]) << "position " << position;
      hash = fold(hash, stored);
    }
    uint64_t state = 0;
    const int32_t group = memory_->layout().state_tensors[0].group;
    if (slice.states[group] != nullptr) std::memcpy(&state, slice.states[group], sizeof state);
    ASSERT_EQ(state, hash);
  }

 private:
  Memory* memory_;
};

TEST(Memory, FailedBeginChangesNothing) {
  const auto memory = make_memory(hybrid_layout(), 40000, 1000);
  const Toy toy(memory.get());
  Sequence sequence = memory->new_sequence();
  const std::vector<Token> tokens(40, Token(3));
  {
    auto transaction = memory->begin(sequence, tokens).value();
    toy.step(transaction);
    transaction.commit(40);
  }
  const size_t used = memory->usage().page_bytes + memory->usage().state_bytes;
  Sequence fork = sequence;  // Makes the tail shared, so that begin() also copies.
  const std::vector<Token> many(900, Token(4));
  const auto refused = memory->begin(sequence, many);
  ASSERT_FALSE(bool(refused));
  EXPECT_EQ(refused.error().code, ErrorCode::no_room);
  EXPECT_EQ(memory->usage().page_bytes + memory->usage().state_bytes, used);
  toy.verify(sequence);
  toy.verify(fork);
  const auto too_long = memory->begin(sequence, std::vector<Token>(961, Token(1)));
  ASSERT_FALSE(bool(too_long));
  EXPECT_NE(too_long.error().message.find("1001"), std::string::npos);
}

TEST(Memory, PlanNamesWhatLimitsARewind) {
  const auto memory = make_memory(hybrid_layout(), 1 << 20, 1000);
  const Toy toy(memory.get());
  Sequence sequence = memory->new_sequence();
  const int32_t captures[] = {10, 64};
  {
    auto transaction = memory->begin(sequence, std::vector<Token>(100, Token(2)), captures).value();
    toy.step(transaction);
    transaction.commit(100);
  }
  EXPECT_EQ(memory->plan(sequence, 100).forward_tokens, 0);
  const RewindPlan plan = memory->plan(sequence, 70);
  EXPECT_EQ(plan.resume, 64);
  EXPECT_EQ(plan.forward_tokens, 6);
  EXPECT_EQ(plan.limited_by, "recurrent");
  EXPECT_EQ(memory->plan(sequence, 9).resume, 0);
  // Going back to an anchor leaves it in place: the way can be gone again and again.
  Sequence again = memory->at(sequence, 64);
  {
    auto transaction = memory->begin(again, std::vector<Token>(5, Token(9))).value();
    toy.step(transaction);
    transaction.commit(5);
  }
  EXPECT_EQ(memory->plan(again, 64).forward_tokens, 0);
  EXPECT_EQ(memory->plan(again, 68).resume, 64);
  memory->keep_anchor(again);
  memory->keep_anchor(again);
  EXPECT_EQ(again.anchors().size(), 3u);
  EXPECT_EQ(memory->at(again, 69).length(), 69);
  memory->limit_anchors(sequence, 1);
  EXPECT_EQ(memory->plan(sequence, 63).resume, 0);
}

// One step of a random program on some of the sequences.
void random_step(Memory& memory, const Toy& toy, std::vector<Sequence>& sequences,
                 std::mt19937& random) {
  const size_t index = random() % sequences.size();
  Sequence& sequence = sequences[index];
  switch (random() % 6) {
    case 0:
    case 1: {
      std::vector<Token> tokens(1 + random() % 70);
      for (Token& token : tokens) token = Token(random() % 1000);
      const int32_t capture[] = {int32_t(1 + random() % tokens.size())};
      auto begun = memory.begin(sequence, tokens, capture);
      if (!begun) break;
      Transaction transaction = std::move(begun).value();
      toy.step(transaction);
      if (random() % 4 == 0) break;  // Cancelled: the destructor undoes it.
      transaction.commit(random() % 2 ? capture[0] : int32_t(tokens.size()));
      break;
    }
    case 2:
      sequence = memory.at(sequence, int32_t(random() % uint32_t(sequence.length() + 1)));
      break;
    case 3:
      if (sequences.size() < 12) sequences.push_back(Sequence(sequence));
      break;
    case 4:
      if (sequences.size() > 1) sequences.erase(sequences.begin() + std::ptrdiff_t(index));
      break;
    default:
      memory.limit_anchors(sequence, random() % 3);
  }
}

TEST(Memory, RandomProgramsKeepEverySequenceIntact) {
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto memory = make_memory(hybrid_layout(), 60000 + random() % 60000, 400);
    const Toy toy(memory.get());
    {
      std::vector<Sequence> sequences;
      sequences.push_back(memory->new_sequence());
      for (int32_t step = 0; step < 400; ++step) {
        random_step(*memory, toy, sequences, random);
        ASSERT_LE(memory->usage().page_bytes + memory->usage().state_bytes,
                  memory->usage().budget_bytes);
        if (step % 20 == 0) {
          for (Sequence& sequence : sequences) toy.verify(sequence);
        }
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
    EXPECT_EQ(memory->usage().page_bytes, 0u);
    EXPECT_EQ(memory->usage().state_bytes, 0u);
    memory->trim();
  }
}

}  // namespace
}  // namespace cairn::memory
