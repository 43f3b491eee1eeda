// The reference kernels, one for each op: scalar, in index order, the definition of every bit
// (docs/numerics.md). Each family's file owns the arithmetic as pure functions and wraps it as
// kernels here; which op uses which kernel is chosen in reference.cpp.
#pragma once

#include "backends/host/host.h"

namespace cairn::reference {

host::HostKernel embed_kernel();
host::HostKernel given_kernel();
host::HostKernel gather_outputs_kernel();
host::HostKernel pick_columns_kernel();

host::HostKernel quantize_kernel();
host::HostKernel matmul_kernel();
host::HostKernel expert_matmul_kernel();

host::HostKernel rms_norm_kernel();
host::HostKernel layer_norm_kernel();

host::HostKernel add_kernel();
host::HostKernel scale_kernel();
host::HostKernel clamp_kernel();
host::HostKernel activate_kernel();
host::HostKernel gate_kernel();
host::HostKernel expert_scale_kernel();
host::HostKernel expert_sum_kernel();

host::HostKernel rope_table_kernel();
host::HostKernel rope_kernel();
host::HostKernel scale_by_position_kernel();

host::HostKernel store_kv_kernel();
host::HostKernel attend_kernel();

host::HostKernel short_conv_kernel();
host::HostKernel mamba_scan_kernel();
host::HostKernel mamba2_scan_kernel();
host::HostKernel gated_delta_scan_kernel();
host::HostKernel channel_delta_scan_kernel();
host::HostKernel scale_by_dots_kernel();
host::HostKernel store_log_kernel();
host::HostKernel load_log_kernel();

host::HostKernel join_columns_kernel();
host::HostKernel route_kernel();

host::HostKernel mix_streams_kernel();
host::HostKernel match_magnitude_kernel();
host::HostKernel gaussian_topk_kernel();

}  // namespace cairn::reference
