// Qwen3-Next: gated delta nets and, every fourth layer, gated attention; behind each a mixture of
// experts and one expert that every token uses. Value heads stand by the key head that they share,
// and rates and decays come from one matrix; Qwen 3.5 has both in another order.
#include "models/decoder.h"
#include "models/delta_hybrid.h"

namespace cairn::models {

namespace {

struct Config : DeltaHybridConfig {
  ExpertsConfig experts;
};

struct Layer {
  Vector mixer_norm, mlp_norm;
  DeltaHybridMixer mixer;
  blocks::Experts experts;
  blocks::SharedExpert shared;
};

class Qwen3Next final : public Decoder<Config, Layer> {
 public:
  using Decoder::Decoder;

  static Result<Config> read(const gguf::Metadata& meta) {
    CAIRN_TRY(DeltaHybridConfig common, read_delta_hybrid(meta));
    CAIRN_TRY(ExpertsConfig experts, read_delta_hybrid_experts(meta));
    common.delta.joined_rates = true;
    return Config{std::move(common), experts};
  }

  std::vector<State> layer_states(int32_t layer) const override { return {c_.state(layer)}; }

  Tensor forward(Graph& g) const override {
    Tensor x = g.embed(ends_.embedding);
    for (int32_t layer = 0; layer < c_.size.layer_count; ++layer) {
      const Layer& l = layers_[size_t(layer)];
      const Tensor h = g.rms_norm(x, l.mixer_norm, c_.norm_epsilon);
      x = g.add(x, l.mixer.mix(g, layer, h, c_));
      const Tensor m = g.rms_norm(x, l.mlp_norm, c_.norm_epsilon);
      const Tensor routed = blocks::mixture(g, m, l.experts, c_.experts.router, Activation::silu);
      x = g.add(x, g.add(routed, blocks::shared_expert(g, m, l.shared, Activation::silu)));
    }
    return blocks::logits(g, x, ends_, c_.norm_epsilon);
  }

 private:
  void layer_parameters(Parameters& p, int32_t layer, Layer& l) override {
    p.vector("attn_norm.weight", l.mixer_norm, {c_.size.width});
    l.mixer.parameters(p, layer, c_);
    p.vector("post_attention_norm.weight", l.mlp_norm, {c_.size.width});
    l.experts.parameters(p, c_.size.width, c_.experts.expert_width, c_.experts.expert_count);
    l.shared.parameters(p, c_.size.width, c_.experts.shared_expert_width);
  }
};

}  // namespace

extern const Architecture arch_qwen3next;
constinit const Architecture arch_qwen3next = architecture<Qwen3Next>("qwen3next");

}  // namespace cairn::models
