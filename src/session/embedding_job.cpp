// Batches of texts.
#include "session/embedding_job.h"

namespace cairn::session {

// A text that cannot be embedded is told before anything is computed.
Status EmbeddingJob::start() {
  for (size_t index = 0; index < texts_.size(); ++index) {
    CAIRN_TRY(embedder_.check(texts_[index], index));
  }
  return Ok{};
}

Status EmbeddingJob::advance() {
  const size_t first = embeddings_.size();
  const size_t row_count_max = size_t(engine_->runner().row_count_max());
  size_t count = 0, rows = 0;
  while (first + count < texts_.size()) {
    rows += texts_[first + count].size();
    if (count > 0 && rows > row_count_max) break;
    ++count;
  }
  CAIRN_TRY(std::vector<Embedding> made,
            embedder_.embed(std::span(texts_).subspan(first, count), first));
  for (Embedding& each : made) {
    computed_tokens_ += each.token_count;
    embeddings_.push_back(std::move(each));
  }
  return Ok{};
}

void EmbeddingJob::end(Status status) {
  if (status) {
    done_(std::move(embeddings_));
  } else {
    done_(std::move(status).error());
  }
}

}  // namespace cairn::session
