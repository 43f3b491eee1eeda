// The choice of the reference kernel for each op, and the backend that runs nothing else.
#include "backends/reference/reference.h"

#include <memory>
#include <variant>

#include "backends/reference/kernels.h"

namespace cairn {
namespace reference {
namespace {

struct Choice {
  host::HostKernel operator()(const op::Embed&) const { return embed_kernel(); }
  host::HostKernel operator()(const op::Given&) const { return given_kernel(); }
  host::HostKernel operator()(const op::Quantize&) const { return quantize_kernel(); }
  host::HostKernel operator()(const op::MatMul&) const { return matmul_kernel(); }
  host::HostKernel operator()(const op::RmsNorm&) const { return rms_norm_kernel(); }
  host::HostKernel operator()(const op::LayerNorm&) const { return layer_norm_kernel(); }
  host::HostKernel operator()(const op::Add&) const { return add_kernel(); }
  host::HostKernel operator()(const op::Scale&) const { return scale_kernel(); }
  host::HostKernel operator()(const op::Clamp&) const { return clamp_kernel(); }
  host::HostKernel operator()(const op::Activate&) const { return activate_kernel(); }
  host::HostKernel operator()(const op::Gate&) const { return gate_kernel(); }
  host::HostKernel operator()(const op::RopeTable&) const { return rope_table_kernel(); }
  host::HostKernel operator()(const op::Rope&) const { return rope_kernel(); }
  host::HostKernel operator()(const op::ScaleByPosition&) const {
    return scale_by_position_kernel();
  }
  host::HostKernel operator()(const op::StoreKv&) const { return store_kv_kernel(); }
  host::HostKernel operator()(const op::Attend&) const { return attend_kernel(); }
  host::HostKernel operator()(const op::ShortConv&) const { return short_conv_kernel(); }
  host::HostKernel operator()(const op::MambaScan&) const { return mamba_scan_kernel(); }
  host::HostKernel operator()(const op::Mamba2Scan&) const { return mamba2_scan_kernel(); }
  host::HostKernel operator()(const op::GatedDeltaScan&) const { return gated_delta_scan_kernel(); }
  host::HostKernel operator()(const op::ChannelDeltaScan&) const {
    return channel_delta_scan_kernel();
  }
  host::HostKernel operator()(const op::ScaleByDots&) const { return scale_by_dots_kernel(); }
  host::HostKernel operator()(const op::PickColumns&) const { return pick_columns_kernel(); }
  host::HostKernel operator()(const op::JoinColumns&) const { return join_columns_kernel(); }
  host::HostKernel operator()(const op::Route&) const { return route_kernel(); }
  host::HostKernel operator()(const op::ExpertMatMul&) const { return expert_matmul_kernel(); }
  host::HostKernel operator()(const op::ExpertScale&) const { return expert_scale_kernel(); }
  host::HostKernel operator()(const op::ExpertSum&) const { return expert_sum_kernel(); }
  host::HostKernel operator()(const op::StoreLog&) const { return store_log_kernel(); }
  host::HostKernel operator()(const op::LoadLog&) const { return load_log_kernel(); }
  host::HostKernel operator()(const op::MixStreams&) const { return mix_streams_kernel(); }
  host::HostKernel operator()(const op::MatchMagnitude&) const { return match_magnitude_kernel(); }
  host::HostKernel operator()(const op::GaussianTopk&) const { return gaussian_topk_kernel(); }
  host::HostKernel operator()(const op::GatherOutputs&) const { return gather_outputs_kernel(); }
};

Result<std::unique_ptr<Backend>> create(const BackendOptions& options) {
  if (options.threads == nullptr) {
    return fail(ErrorCode::invalid_argument,
                "backend reference: expected a thread pool, found none");
  }
  if (options.numerics != Numerics::exact_1) {
    return fail(ErrorCode::unsupported, "backend reference: expected numerics {}, found {}",
                name(Numerics::exact_1), name(options.numerics));
  }
  return std::unique_ptr<Backend>(
      std::make_unique<host::HostBackend>(options.threads, &kernel_for, &kernel_for));
}

}  // namespace

host::HostKernel kernel_for(const Op& op) {
  return std::visit(Choice{}, op);
}

}  // namespace reference

extern const BackendType backend_reference;
constinit const BackendType backend_reference{.name = "reference", .create = &reference::create};

}  // namespace cairn
