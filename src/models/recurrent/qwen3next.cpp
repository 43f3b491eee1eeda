// Qwen3-Next: gated delta nets and, every fourth layer, gated attention; behind each a mixture of
// experts and one expert that every token uses. Value heads stand by the key head that they share,
// and rates and decays come from one matrix; Qwen 3.5 has both in another order.
#include "models/common/delta_hybrid.h"

namespace cairn::models {

namespace {

class Qwen3Next final : public DeltaHybrid {
 public:
  using DeltaHybrid::DeltaHybrid;

  static Result<DeltaHybridConfig> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DeltaHybridConfig c, read_delta_hybrid_moe(meta));
    c.delta.joined_rates = true;
    return c;
  }
};

}  // namespace

extern const Architecture arch_qwen3next;
constinit const Architecture arch_qwen3next = architecture<Qwen3Next>("qwen3next");

}  // namespace cairn::models
