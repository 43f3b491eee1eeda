// Vectors of texts as a job of the scheduler: a batch of texts in each step of its own, so that
// requests of other clients come in between. Thread rule: made on any thread; then that of Job.
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/embedder.h"
#include "engine/schedule/job.h"

namespace cairn::session {

class EmbeddingJob final : public Job {
 public:
  using Done = std::function<void(Result<std::vector<Embedding>>)>;

  // `done` is called once, on the engine's thread. REQUIRES: the engine was loaded with
  // EngineOptions::pooling.
  EmbeddingJob(Engine* engine, const EmbedderOptions& options,
               std::vector<std::vector<Token>> texts, Done done)
      : engine_(engine),
        embedder_(engine, options),
        texts_(std::move(texts)),
        done_(std::move(done)) {}

  Lane* lane() override { return nullptr; }
  int64_t own_tokens() const override { return computed_tokens_; }
  memory::Variant variant() const override { return memory::Variant::plain; }
  std::span<const Token> prompt() const override { return {}; }
  memory::ResumePlan plan() override { return {}; }  // Nothing stays in memory.
  Status start() override;
  Status advance() override;
  bool is_done() const override { return embeddings_.size() == texts_.size(); }
  void end(Status status) override;

 private:
  Engine* engine_;
  Embedder embedder_;
  std::vector<std::vector<Token>> texts_;
  std::vector<Embedding> embeddings_;  // Of the first texts.
  int64_t computed_tokens_ = 0;
  Done done_;
};

}  // namespace cairn::session
