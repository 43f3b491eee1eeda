// What handles own, but conversations (capi/conversation.h). Each keeps what it stands on, so that
// handles may be closed in any order. Thread rule: constant once made, but for what says otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "capi/handles.h"
#include "engine/engine.h"
#include "engine/model_text.h"
#include "gguf/gguf.h"
#include "memory/sequence.h"
#include "sample/state.h"
#include "session/service.h"

namespace cairn::capi {

struct ModelObject {
  static constexpr Kind kKind = Kind::model;

  std::string path;
  gguf::File file;
  uint64_t digest;  // Of the file: engines read the same one again.
  std::unique_ptr<ModelText> text;
  std::string info;  // JSON.
};

struct EngineObject {
  static constexpr Kind kKind = Kind::engine;

  // The engine's thread's own, but for its constant parts.
  std::unique_ptr<Engine> engine;
  std::unique_ptr<session::Service> service;  // Goes before its engine.
  std::atomic<uint32_t> snapshot_count = 0;
};

// Asks the engine's thread what may not fail: where there is no memory to ask, soon again. Whether
// it came to that.
inline bool ask_surely(session::Service& service, const std::function<void(Engine&)>& question) {
  constexpr int kTriesMax = 100;
  for (int count = 0; count < kTriesMax; ++count) {
    try {
      service.ask(question);
      return true;
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  return false;
}

struct SnapshotObject {
  static constexpr Kind kKind = Kind::snapshot;

  explicit SnapshotObject(std::shared_ptr<EngineObject> of)
      : engine(std::move(of)), sequence(std::make_unique<memory::Sequence>()) {
    ++engine->snapshot_count;
  }
  // What cannot be given back on the engine's thread stays.
  ~SnapshotObject() {
    const bool is_done = ask_surely(*engine->service, [this](Engine&) { sequence.reset(); });
    if (!is_done) (void)sequence.release();
    --engine->snapshot_count;
  }
  SnapshotObject(const SnapshotObject&) = delete;
  SnapshotObject& operator=(const SnapshotObject&) = delete;

  std::shared_ptr<EngineObject> engine;
  std::vector<Token> tokens;
  // The engine's thread's own: of the tokens, or of the first of them.
  std::unique_ptr<memory::Sequence> sequence;
  sample::SamplerState sampler;
};

struct LogitsObject {
  static constexpr Kind kKind = Kind::logits;

  std::vector<float> row;
};

}  // namespace cairn::capi
