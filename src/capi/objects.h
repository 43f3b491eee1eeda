// What handles own, but conversations (capi/conversation.h). Each keeps what it stands on, so that
// handles may be closed in any order. Thread rule: constant once made, but for what says otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
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

struct SnapshotObject {
  static constexpr Kind kKind = Kind::snapshot;

  explicit SnapshotObject(std::shared_ptr<EngineObject> of) : engine(std::move(of)) {
    ++engine->snapshot_count;
  }
  ~SnapshotObject() {
    engine->service->ask([this](Engine&) { sequence = memory::Sequence(); });
    --engine->snapshot_count;
  }
  SnapshotObject(const SnapshotObject&) = delete;
  SnapshotObject& operator=(const SnapshotObject&) = delete;

  std::shared_ptr<EngineObject> engine;
  std::vector<Token> tokens;
  memory::Sequence sequence;  // The engine's thread's own: of the tokens, or of the first of them.
  sample::SamplerState sampler;
};

struct LogitsObject {
  static constexpr Kind kKind = Kind::logits;

  std::vector<float> row;
};

}  // namespace cairn::capi
