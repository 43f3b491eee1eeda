// Baichuan 1 and 2 (Yang et al., 2023): Llama's shape. The size of 13B has slopes instead of
// rotation, and its files say so by their number of layers alone.
#include "models/dense/llama.h"

namespace cairn::models {

extern const Architecture arch_refact;

namespace baichuan {

constexpr int32_t kLayersWithSlopes = 40;

Result<std::unique_ptr<Model>> create_baichuan(const gguf::Metadata& meta) {
  CAIRN_TRY(const int32_t layer_count, meta.count("block_count"));
  return layer_count == kLayersWithSlopes ? arch_refact.create(meta) : create_llama(meta, {});
}

}  // namespace baichuan

extern const Architecture arch_baichuan;
constinit const Architecture arch_baichuan = {.name = "baichuan",
                                              .create = &baichuan::create_baichuan};

}  // namespace cairn::models
