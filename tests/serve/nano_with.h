// For tests: the built-in model's file with other metadata, or weights.
#pragma once

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gguf/gguf.h"
#include "gguf/writer.h"

namespace cairn::serve {

// A chat template that has calls of tools.
inline constexpr char kToolTemplate[] =
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<c>{{ c.function | tojson }}</c>{% endfor %}<|end|>"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";

struct NanoChanges {
  std::string chat_template = {};                              // Empty: its own.
  std::vector<std::pair<std::string, uint32_t>> numbers = {};  // Further ones.
  std::vector<float> output_norm = {};  // Its weights, by turns; empty: its own.
};

inline void write_nano_with(const NanoChanges& changes, const std::string& path) {
  const gguf::File file = gguf::File::open(CAIRN_SOURCE "/assets/nano.gguf").value();
  gguf::Writer writer;
  constexpr std::string_view kTemplate = "tokenizer.chat_template";
  for (const gguf::Field& field : file.fields().all()) {
    if (field.key == kTemplate && !changes.chat_template.empty()) {
      writer.add(kTemplate, changes.chat_template);
    } else {
      writer.add(field.key, field.value);
    }
  }
  for (const auto& [key, number] : changes.numbers) writer.add(key, number);
  for (const gguf::Tensor& tensor : file.tensors()) {
    writer.declare(tensor.name, std::span(tensor.dims).first(size_t(tensor.dim_count)),
                   tensor.type_id);
  }
  gguf::TensorStream stream = writer.open_file(path).value();
  for (const gguf::Tensor& tensor : file.tensors()) {
    std::vector<float> weights;
    if (tensor.name == "output_norm.weight" && !changes.output_norm.empty()) {
      weights.resize(tensor.bytes.size() / sizeof(float));
      for (size_t i = 0; i < weights.size(); ++i) {
        weights[i] = changes.output_norm[i % changes.output_norm.size()];
      }
    }
    EXPECT_TRUE(stream.append(weights.empty() ? tensor.bytes : std::as_bytes(std::span(weights))));
  }
  EXPECT_TRUE(stream.finish());
}

}  // namespace cairn::serve
