// Writes random adapters for models of the fixtures: a change for every matrix that is multiplied
// with, experts' too.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gguf/gguf.h"
#include "gguf/writer.h"
#include "quant/quant.h"

namespace cairn::test {

inline bool is_adapted(const gguf::Tensor& tensor) {
  for (const char* part : {".attn_q.weight",
                           ".attn_k.weight",
                           ".attn_v.weight",
                           ".attn_qkv.weight",
                           ".attn_gate.weight",
                           ".attn_output.weight",
                           ".ffn_gate.weight",
                           ".ffn_up.weight",
                           ".ffn_down.weight",
                           ".ffn_gate_exps.weight",
                           ".ffn_up_exps.weight",
                           ".ffn_down_exps.weight",
                           ".ssm_in.weight",
                           ".ssm_x.weight",
                           ".ssm_dt.weight",
                           ".ssm_out.weight",
                           ".ssm_ba.weight",
                           ".shortconv.in_proj.weight",
                           ".shortconv.out_proj.weight",
                           ".attn_kv_a_mqa.weight",
                           ".ssm_beta.weight",
                           ".ssm_f_a.weight",
                           ".ssm_g_b.weight",
                           ".time_mix_receptance.weight",
                           ".time_mix_key.weight",
                           ".time_mix_value.weight",
                           ".time_mix_output.weight",
                           ".time_mix_w1.weight",
                           ".time_mix_g2.weight",
                           ".channel_mix_key.weight",
                           ".channel_mix_value.weight"}) {
    if (tensor.name.ends_with(part)) return true;
  }
  return false;
}

// The adapter lies at `path` then. Of rank 2, and as strong as the matrices themselves.
inline void write_random_adapter(const std::string& model, const std::string& path, uint32_t seed) {
  Result<gguf::File> file = gguf::File::open(model);
  ASSERT_TRUE(file);
  constexpr int64_t kRank = 2;
  gguf::Writer writer;
  writer.add("general.architecture", std::string(file->metadata()->architecture()));
  writer.add("general.type", "adapter");
  writer.add("adapter.type", "lora");
  writer.add("adapter.lora.alpha", 1.0f);
  const uint32_t f32 = quant::find("F32")->gguf_id;
  std::vector<std::vector<int64_t>> shapes;
  for (const gguf::Tensor& tensor : file->tensors()) {
    if (!is_adapted(tensor)) continue;
    shapes.push_back({tensor.dims[0], kRank, tensor.dims[2]});
    shapes.push_back({kRank, tensor.dims[1], tensor.dims[2]});
    writer.declare(std::string(tensor.name) + ".lora_a", shapes[shapes.size() - 2], f32);
    writer.declare(std::string(tensor.name) + ".lora_b", shapes.back(), f32);
  }
  Result<gguf::TensorStream> stream = writer.open_file(path);
  ASSERT_TRUE(stream);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (const std::vector<int64_t>& shape : shapes) {
    std::vector<float> values(size_t(shape[0] * shape[1] * shape[2]));
    for (float& value : values) value = normal(random) / std::sqrt(float(shape[0]));
    ASSERT_TRUE(stream->append(std::as_bytes(std::span(values))));
  }
  ASSERT_TRUE(stream->finish());
}

}  // namespace cairn::test
