// The small ops between the products: their rows come from a cache, so that the share of the roof
// (of reading memory) may be more than one.
#include <fmt/core.h>

#include "bench/kernels.h"

namespace cairn::bench {

namespace {

constexpr int32_t kWidth = 2048, kWide = 8192, kHeadDim = 64;

// `make` gives the op on rows of `width`; `passes`: how often it reads or writes such rows.
template <class Make>
void add(Context& context, std::string_view name, int32_t width, int32_t passes, Make make) {
  for (const int32_t rows : {1, 512}) {
    context.add(fmt::format("{}/rows:{}", name, rows), [&context, rows, width, passes, make] {
      auto work = std::make_unique<Rowwise>(context, rows);
      work->prepare({make(*work)});
      work->add_bytes(4.0 * width * passes * rows);
      return work;
    });
  }
}

}  // namespace

void add_row_ops(Context& context) {
  add(context, "quantize", kWidth, 1, [](Rowwise& w) -> Op {
    return op::Quantize{.x = w.rows(kWidth), .out = w.quantized(kWidth)};
  });
  add(context, "rms_norm", kWidth, 2, [](Rowwise& w) -> Op {
    return op::RmsNorm{.x = w.rows(kWidth),
                       .out = w.rows(kWidth),
                       .gain = w.parameters(kWidth),
                       .group = kWidth,
                       .epsilon = 1e-5f};
  });
  add(context, "rms_norm_of_heads", kWidth, 2, [](Rowwise& w) -> Op {
    return op::RmsNorm{.x = w.rows(kWidth),
                       .out = w.rows(kWidth),
                       .gain = w.parameters(kHeadDim),
                       .group = kHeadDim,
                       .epsilon = 1e-5f};
  });
  add(context, "layer_norm", kWidth, 2, [](Rowwise& w) -> Op {
    return op::LayerNorm{.x = w.rows(kWidth),
                         .out = w.rows(kWidth),
                         .gain = w.parameters(kWidth),
                         .group = kWidth,
                         .epsilon = 1e-5f};
  });
  add(context, "add", kWidth, 3, [](Rowwise& w) -> Op {
    return op::Add{.a = w.rows(kWidth), .b = w.rows(kWidth), .out = w.rows(kWidth)};
  });
  struct Named {
    const char* name;
    Activation activation;
  };
  for (const auto& [name, activation] :
       {Named{"silu", Activation::silu}, Named{"gelu_tanh", Activation::gelu_tanh},
        Named{"gelu_erf", Activation::gelu_erf}, Named{"sigmoid", Activation::sigmoid},
        Named{"softplus", Activation::softplus}}) {
    add(context, fmt::format("gate/{}", name), kWide, 3,
        [activation = activation](Rowwise& w) -> Op {
          return op::Gate{.gate = w.rows(kWide),
                          .x = w.rows(kWide),
                          .out = w.rows(kWide),
                          .activation = activation};
        });
  }
  for (const int32_t experts : {8, 128, 512}) {
    add(context, fmt::format("route/{}", experts), experts, 1, [experts](Rowwise& w) -> Op {
      const int32_t used = experts == 8 ? 2 : 8;
      return op::Route{.logits = w.rows(experts), .chosen = w.rows(used), .weights = w.rows(used)};
    });
  }
  for (const auto& [name, style] :
       {std::pair{"adjacent", RopeStyle::adjacent}, std::pair{"halves", RopeStyle::halves}}) {
    add(context, fmt::format("rope/{}", name), kWidth, 2, [style = style](Rowwise& w) -> Op {
      return op::Rope{.x = w.rows(kWidth),
                      .table = w.rows(kHeadDim),
                      .head_dim = kHeadDim,
                      .pair_count = kHeadDim / 2,
                      .style = style};
    });
  }
}

}  // namespace cairn::bench
