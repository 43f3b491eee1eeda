// What handles own, but conversations (capi/conversation.h). Each keeps what it stands on, so that
// handles may be closed in any order. Thread rule: constant once made, but for what says otherwise.
#pragma once

#include <cairn.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "capi/handles.h"
#include "capi/mailbox.h"
#include "capi/track.h"
#include "engine/model_text.h"
#include "gguf/fields.h"
#include "gguf/gguf.h"
#include "session/grammar_cache.h"
#include "session/prompt_probabilities.h"
#include "tokenize/tokenizer.h"

namespace cairn::capi {

struct ModelObject {
  static constexpr Kind kKind = Kind::model;

  std::string path;
  gguf::File file;
  uint64_t digest;  // Of the file: engines read the same one again.
  std::unique_ptr<ModelText> text;
  std::string info;  // JSON.
};

// What an engine is to its callers, whatever computes behind it.
class EngineObject {
 public:
  static constexpr Kind kKind = Kind::engine;

  // Constant once it is open.
  struct Traits {
    const gguf::Fields* fields = nullptr;  // Of the model's file.
    const ModelText* text = nullptr;
    int32_t vocabulary_count = 0, context_tokens = 0;
    bool makes_vectors = false;
    bool has_store = false;
    bool keeps_receipts = false;
    std::string_view backend;
  };
  virtual ~EngineObject() = default;
  const Traits& traits() const { return traits_; }
  const tokenize::Tokenizer* tokenizer() const { return traits_.text->tokenizer(); }

  virtual cairn_engine_facts facts() = 0;
  virtual cairn_memory memory() = 0;
  virtual session::TenantGrammars grammars() = 0;
  // REQUIRES: here and below: ids of the vocabulary, at least one; it makes text.
  virtual cairn_plan plan_prompt(std::span<const Token> tokens) = 0;
  virtual Result<session::PromptProbabilities> score(std::vector<Token> tokens) = 0;
  // The mailbox outlives it, and so does this.
  virtual Result<std::unique_ptr<Track>> open_track(Mailbox* mailbox) = 0;
  // REQUIRES: it makes vectors.
  virtual Result<std::vector<float>> embed(std::vector<Token> tokens) = 0;

  std::atomic<uint32_t> snapshot_count = 0;

 protected:
  Traits traits_;
};

// Tries what may not fail: where there is no memory to say it, soon again. Whether it came to that.
template <class Attempt>
bool try_surely(Attempt attempt) {
  constexpr int kTriesMax = 100;
  for (int count = 0; count < kTriesMax; ++count) {
    try {
      attempt();
      return true;
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  return false;
}

struct SnapshotObject {
  static constexpr Kind kKind = Kind::snapshot;

  explicit SnapshotObject(std::shared_ptr<EngineObject> of) : engine(std::move(of)) {
    ++engine->snapshot_count;
  }
  ~SnapshotObject() { --engine->snapshot_count; }
  SnapshotObject(const SnapshotObject&) = delete;
  SnapshotObject& operator=(const SnapshotObject&) = delete;

  std::shared_ptr<EngineObject> engine;
  std::vector<Token> tokens;
  std::unique_ptr<TrackState> state;  // Goes before the engine.
};

struct LogitsObject {
  static constexpr Kind kKind = Kind::logits;

  std::vector<float> row;
};

}  // namespace cairn::capi
