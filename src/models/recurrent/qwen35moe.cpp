// Qwen 3.5 with experts: the layers of the dense model (gated delta nets and, every fourth, gated
// attention), with a mixture of experts behind each, and one expert that every token uses.
#include "models/common/delta_hybrid.h"

namespace cairn::models {

namespace {

class Qwen35Moe final : public DeltaHybrid {
 public:
  using DeltaHybrid::DeltaHybrid;

  static Result<DeltaHybridConfig> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DeltaHybridConfig c, read_delta_hybrid_moe(meta));
    c.delta.order = HeadOrder::tiled;
    return c;
  }
};

}  // namespace

extern const Architecture arch_qwen35moe;
constinit const Architecture arch_qwen35moe = architecture<Qwen35Moe>("qwen35moe");

}  // namespace cairn::models
