// Conversations in token counts, as a server sees them (the scenarios of the peer's measurements:
// a system prompt of 100 tokens, user messages of 600, answers of 24).
#include <algorithm>
#include <array>
#include <chrono>
#include <random>

#include "engine/generator.h"
#include "measure/memory_figures.h"

namespace cairn::measure {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int32_t kSystemTokens = 100, kMessageTokens = 600, kAnswerTokens = 24;

// What llama.cpp computed, or kept, in the same scenarios with the same sizes, default settings.
struct Peer {
  std::string_view preset;
  double regenerate, edit, old_branch, shared_prompt, kept_mib;
};
constexpr Peer kPeers[] = {
    {"llama-1b", 1, 605, 2500, 229, -1},
    {"gemma3-1b", 1, 611, 2513, 232, 148.7},
    {"granite-h-1b", 4, 610, 2512, 236, 740},
    {"qwen35-0.8b", 4, 608, 2503, 232, 281},
};

Peer peer_of(std::string_view preset) {
  for (const Peer& peer : kPeers) {
    if (peer.preset == preset) return peer;
  }
  return {preset, -1, -1, -1, -1, -1};
}

// A conversation's tokens, and where its user messages begin.
struct History {
  std::vector<Token> tokens;
  std::vector<int32_t> starts;

  History first_turns(size_t count) const {
    if (count == starts.size()) return *this;
    History part;
    part.tokens.assign(tokens.begin(), tokens.begin() + starts[count]);
    part.starts.assign(starts.begin(), starts.begin() + std::ptrdiff_t(count));
    return part;
  }
};

class Client {
 public:
  explicit Client(Engine& engine) : engine_(engine), generator_(&engine) {}

  void add_system(History& history, int32_t count) { add_random(history, count); }

  // A user message and an answer; the tokens that the prompt cost.
  Result<double> turn(History& history, int32_t message_tokens = kMessageTokens) {
    history.starts.push_back(int32_t(history.tokens.size()));
    add_random(history, message_tokens);
    CAIRN_TRY(const double computed, read(history));
    CAIRN_TRY(answer(history, kAnswerTokens));
    return computed;
  }

  // Some tokens of an answer; it ends or is stopped there.
  Status answer(History& history, int32_t count) {
    for (int32_t token = 0; token < count; ++token) {
      const std::span<const float> logits = generator_.logits();
      const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
      history.tokens.push_back(Token(best));
      CAIRN_TRY(generator_.advance(Token(best)));
    }
    return generator_.finish_turn();
  }

  // Brings the sequence to exactly these tokens; how many had to be computed.
  Result<double> read(const History& history) {
    CAIRN_TRY(const PromptReport report,
              generator_.read(history.tokens, {.message_starts = history.starts}));
    return double(report.computed_tokens);
  }

  Generator& generator() { return generator_; }

 private:
  void add_random(History& history, int32_t count) {
    const uint64_t vocabulary = uint64_t(engine_.size().vocabulary_count);
    for (int32_t i = 0; i < count; ++i) history.tokens.push_back(Token(random_() % vocabulary));
  }

  Engine& engine_;
  Generator generator_;
  std::mt19937_64 random_{1};
};

Figure tokens(std::string what, double measured, double bar, double peer = -1) {
  return {
      .what = std::move(what), .measured = measured, .unit = "tokens", .bar = bar, .peer = peer};
}

// Rewinds into the last answer: planned for every position, walked for some.
Status add_rewinds(Engine& engine, Client& client, const History& history,
                   std::vector<Figure>& figures) {
  double forward = 0, steps = 0;
  for (int32_t back = 0; back < kAnswerTokens; ++back) {
    const memory::ResumePlan plan =
        engine.memory().plan(client.generator().sequence(), int32_t(history.tokens.size()) - back);
    forward = std::max(forward, double(plan.forward_tokens));
    steps = std::max(steps, double(plan.recurrence_steps));
  }
  figures.push_back(tokens("rewind to any token of the last answer", forward, 0));
  figures.push_back({.what = "the same, recurrence steps",
                     .measured = steps,
                     .unit = "steps",
                     .bar = double(engine.memory().log_step())});
  return Ok{};
}

// One long chat: what each way back costs, and what is kept for it.
Status add_one_chat(Engine& engine, const Peer& peer, std::vector<Figure>& figures) {
  const size_t used_before = engine.memory().usage().used_bytes();
  Client client(engine);
  History chat;
  client.add_system(chat, kSystemTokens);
  double next_turn = 0;
  for (int32_t turn = 0; turn < 4; ++turn) {
    CAIRN_TRY(const double computed, client.turn(chat));
    if (turn > 0) next_turn = std::max(next_turn, computed);
  }
  figures.push_back(tokens("next turn", next_turn, kMessageTokens));
  figures.push_back({.what = "kept for a chat of 4 turns, 2596 tokens",
                     .measured = double(engine.memory().usage().used_bytes() - used_before) / kMiB,
                     .unit = "MiB",
                     .bar = peer.preset == "granite-h-1b" ? 350.0 : 0,
                     .has_bar = peer.preset == "granite-h-1b",
                     .peer = peer.kept_mib});
  CAIRN_TRY(add_rewinds(engine, client, chat, figures));

  History asked = chat;
  asked.tokens.resize(chat.tokens.size() - kAnswerTokens);
  CAIRN_TRY(const double regenerated, client.read(asked));
  figures.push_back(tokens("regenerate", regenerated, 0, peer.regenerate));
  CAIRN_TRY(client.answer(asked, kAnswerTokens / 2));
  CAIRN_TRY(const double continued, client.read(asked));
  figures.push_back(tokens("stop and continue", continued, 0));

  History edited_last = chat.first_turns(3);
  CAIRN_TRY(const double last, client.turn(edited_last));
  figures.push_back(tokens("edit of the last message", last, kMessageTokens));
  History edited = chat.first_turns(1);
  CAIRN_TRY(const double older, client.turn(edited));
  figures.push_back(tokens("edit of the second message", older, kMessageTokens, peer.edit));
  CAIRN_TRY(const double returned, client.turn(chat));
  figures.push_back(tokens("back to the old branch, next turn (3220)", returned, kMessageTokens,
                           peer.old_branch));
  return Ok{};
}

// Several chats with one system prompt, in turn.
Status add_shared_prompt(Engine& engine, const Peer& peer, std::vector<Figure>& figures) {
  constexpr int32_t kShared = 2000, kShort = 105;
  Client client(engine);
  History system;
  client.add_system(system, kShared);
  std::array<History, 5> chats;
  chats.fill(system);
  double first = 0, second = 0;
  for (size_t chat = 0; chat < chats.size(); ++chat) {
    CAIRN_TRY(const double computed, client.turn(chats[chat], kShort));
    if (chat > 0) first = std::max(first, computed);
  }
  for (History& chat : chats) {
    CAIRN_TRY(const double computed, client.turn(chat, kShort));
    second = std::max(second, computed);
  }
  figures.push_back(tokens("first turn behind a shared system prompt", first, kShort));
  figures.push_back(
      tokens("second turns of five chats with it", second, kShort, peer.shared_prompt));
  return Ok{};
}

// Two chats held in memory: to the other one and back.
Status add_switch(Engine& engine, std::vector<Figure>& figures) {
  Client client(engine);
  History a, b;
  client.add_system(a, kSystemTokens);
  client.add_system(b, kSystemTokens);
  CAIRN_TRY(client.turn(a));
  CAIRN_TRY(client.turn(b));
  const size_t used_before = engine.memory().usage().used_bytes();
  const Clock::time_point start = Clock::now();
  CAIRN_TRY(client.generator().start(a.tokens));
  const double milliseconds =
      std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  figures.push_back(
      {.what = "switch to the other chat", .measured = milliseconds, .unit = "ms", .bar = 1});
  const size_t used = engine.memory().usage().used_bytes();
  figures.push_back({.what = "bytes copied for it",
                     .measured = double(used) - double(used_before),
                     .unit = "bytes",
                     .bar = 0});
  return Ok{};
}

// What it takes to be able to go back to any position of such a chat.
Status add_every_position(Engine& engine, const Peer& peer, std::vector<Figure>& figures) {
  constexpr int32_t kChatTokens = 2596;
  memory::Memory& memory = engine.memory();
  if (memory.layout().recurrent_group >= 0) return Ok{};
  memory::Sequence sequence = memory.new_sequence();
  while (sequence.length() < kChatTokens) {
    const int32_t count = std::min(512, kChatTokens - sequence.length());
    const std::vector<Token> some(size_t(count), Token(1));
    CAIRN_TRY(memory::Transaction transaction, memory.begin(sequence, {.tokens = some}));
    transaction.commit(count);
  }
  size_t bytes = 0;
  for (const memory::GroupUsage& group : memory.usage(sequence)) bytes += group.bytes;
  figures.push_back({.what = "kept where every position can be gone back to",
                     .measured = double(bytes) / kMiB,
                     .unit = "MiB",
                     .bar = 70,
                     .has_bar = peer.preset == "gemma3-1b",
                     .peer = peer.kept_mib});
  return Ok{};
}

}  // namespace

Result<std::vector<Figure>> measure_conversations(Engine& engine, std::string_view preset) {
  const Peer peer = peer_of(preset);
  std::vector<Figure> figures;
  CAIRN_TRY(add_one_chat(engine, peer, figures));
  engine.cache().clear();
  CAIRN_TRY(add_shared_prompt(engine, peer, figures));
  engine.cache().clear();
  CAIRN_TRY(add_switch(engine, figures));
  engine.cache().clear();
  CAIRN_TRY(add_every_position(engine, peer, figures));
  return figures;
}

}  // namespace cairn::measure
