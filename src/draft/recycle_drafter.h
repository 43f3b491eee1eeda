// Drafts from the successor of each token, one after the other: short and cheap, for texts that
// repeat nothing word for word. Learns from its own text; rows that were computed are fed to the
// table by whoever computes them. Thread rule: the engine's thread.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "draft/draft.h"
#include "draft/recycle_table.h"

namespace cairn::draft {

class RecycleDrafter : public Drafter {
 public:
  // The table is that of all sequences of a tenant.
  explicit RecycleDrafter(std::shared_ptr<RecycleTable> table) : table_(std::move(table)) {}

  std::string_view name() const override { return "recycle"; }
  void propose(const View& view, Draft& draft) override;

 private:
  std::shared_ptr<RecycleTable> table_;
  size_t seen_ = 0;  // Tokens of the text that were learned from.
};

}  // namespace cairn::draft
