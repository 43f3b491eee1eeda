// Architectures that differ from another one in their names, or in what its traits say: a line
// each. A comment says what the model is, and what the traits have to do with it.
#include <array>
#include <span>

#include "models/common/delta_hybrid.h"
#include "models/common/sparse.h"
#include "models/dense/llama.h"
#include "models/experts/hunyuan.h"
#include "models/model.h"

namespace cairn::models {

extern const Architecture arch_gpt2, arch_granite, arch_lfm2, arch_nemotron_h, arch_qwen3,
    arch_qwen3moe;

namespace {

// The same architecture under another name.
template <const Architecture& same>
constexpr Architecture alias(std::string_view name) {
  return {.name = name, .create = [](const gguf::Metadata& meta) { return same.create(meta); }};
}

// The plain decoder.
constexpr LlamaTraits kAdjacent = {.rope_style = RopeStyle::adjacent};
constexpr LlamaTraits kHalves = {.rope_style = RopeStyle::halves};
constexpr LlamaTraits kSeedOss = {.rope_style = RopeStyle::halves,
                                  .mlp_norm = "post_attention_norm.weight"};

// The usual decoder with experts.
constexpr SparseTraits kDots1 = {.router = {.score = RouterScore::sigmoid}};
constexpr SparseTraits kErnie45Moe = {.rope_style = RopeStyle::adjacent,
                                      .router = {.normalize = true}};
constexpr SparseTraits kGlm4Moe = {.router = {.score = RouterScore::sigmoid, .normalize = true},
                                   .mlp_norm = "post_attention_norm.weight"};

// Gated delta nets and gated attention.
constexpr DeltaHybridTraits kQwen3Next = {.has_experts = true, .joined_rates = true};
constexpr DeltaHybridTraits kQwen35 = {.order = HeadOrder::tiled};
constexpr DeltaHybridTraits kQwen35Moe = {.has_experts = true, .order = HeadOrder::tiled};

constexpr bool kHasExperts = true;

constexpr std::array kAliases = {
    // dots.llm1 (Xiaohongshu, 2025): queries and keys have norms; experts are scored each by itself
    // and chosen with a bias.
    variant<create_sparse, kDots1>("dots1"),
    // ERNIE 4.5 (Baidu, 2025); with experts, these are scored against each other and chosen with a
    // bias.
    variant<create_llama, kAdjacent>("ernie4_5"),
    variant<create_sparse, kErnie45Moe>("ernie4_5-moe"),
    // EXAONE 3 and 3.5 (LG AI Research, 2024).
    variant<create_llama, kHalves>("exaone"),
    // GLM-4.5 to 4.7 (Zhipu, 2025): a part of each head rotates; experts are scored each by itself
    // and chosen with a bias; in some sizes queries and keys have norms.
    variant<create_sparse, kGlm4Moe>("glm4moe"),
    // Granite 3 with experts (IBM, 2024).
    alias<arch_granite>("granitemoe"),
    // Hunyuan with experts (Tencent, 2025).
    variant<create_hunyuan, kHasExperts>("hunyuan-moe"),
    // InternLM 2 and 2.5 (Shanghai AI Laboratory, 2024).
    variant<create_llama, kAdjacent>("internlm2"),
    // LFM2 with experts (Liquid AI, 2025).
    alias<arch_lfm2>("lfm2moe"),
    // Nemotron-H with experts, which includes Nemotron 3 (NVIDIA, 2025).
    alias<arch_nemotron_h>("nemotron_h_moe"),
    // Qwen 2 and 2.5 (Yang et al., 2024): queries, keys and values have biases.
    variant<create_llama, kHalves>("qwen2"),
    // Qwen 2 VL and 2.5 VL (2024), Qwen 3 VL (2025), the text sides: the three axes of positions
    // are equal where there is only text.
    variant<create_llama, kHalves>("qwen2vl"),
    alias<arch_qwen3>("qwen3vl"),
    alias<arch_qwen3moe>("qwen3vlmoe"),
    // Qwen 3.5 (2026), text only as well: value heads that share a key head do not stand together.
    variant<create_delta_hybrid, kQwen35>("qwen35"),
    variant<create_delta_hybrid, kQwen35Moe>("qwen35moe"),
    // Qwen3-Next (2025): rates and decays come from one matrix.
    variant<create_delta_hybrid, kQwen3Next>("qwen3next"),
    // Seed-OSS (ByteDance, 2025): heads are wider than their share of the stream; queries, keys and
    // values have biases.
    variant<create_llama, kSeedOss>("seed_oss"),
    // StarCoder 1 (Li et al., 2023): one head of keys and values.
    alias<arch_gpt2>("starcoder"),
};

}  // namespace

extern const std::span<const Architecture> arch_aliases;
constinit const std::span<const Architecture> arch_aliases = kAliases;

}  // namespace cairn::models
