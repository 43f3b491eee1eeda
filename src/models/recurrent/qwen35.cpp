// Qwen 3.5, dense: three layers in four mix by gated delta nets, the fourth by gated attention;
// behind each a gated feed-forward block. Text only: the three position axes of images are equal
// then, which makes the sections of the rotation one.
#include "models/common/delta_hybrid.h"

namespace cairn::models {

namespace {

class Qwen35 final : public DeltaHybrid {
 public:
  using DeltaHybrid::DeltaHybrid;

  static Result<DeltaHybridConfig> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DeltaHybridConfig c, read_delta_hybrid(meta));
    c.delta.order = HeadOrder::tiled;
    return c;
  }
};

}  // namespace

extern const Architecture arch_qwen35;
constinit const Architecture arch_qwen35 = architecture<Qwen35>("qwen35");

}  // namespace cairn::models
