// For tests: a copy of a model whose vocabulary is another one: ids in another order, and, if
// wanted, without some of the words, so that these are cut into smaller ones. Tables with a row for
// each token follow; all else stays.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <unordered_set>
#include <vector>

#include "gguf/gguf.h"
#include "gguf/writer.h"

namespace cairn::test {

class TwinVocabulary {
 public:
  // `dropped_part`: of the words that merges make, so many of the last ones are dropped.
  TwinVocabulary(const std::string& path, double dropped_part)
      : file_(gguf::File::open(path).value()) {
    const gguf::Strings tokens = get<gguf::Strings>("tokens");
    tokens_.assign(tokens.begin(), tokens.end());
    const gguf::Strings merges = get<gguf::Strings>("merges");
    merges_.assign(merges.begin(), merges.end());
    const size_t kept = size_t(double(merges_.size()) * (1 - dropped_part));
    std::unordered_set<std::string> dropped;
    for (size_t i = kept; i < merges_.size(); ++i) {
      std::string joined = merges_[i];
      joined.erase(joined.find(' ', 1), 1);
      dropped.insert(joined);
    }
    merges_.resize(kept);
    // The other way round: no id but the middle one's means the same.
    for (int32_t id = int32_t(tokens_.size()) - 1; id >= 0; --id) {
      if (!dropped.contains(tokens_[size_t(id)])) order_.push_back(id);
    }
  }

  void write(const std::string& path) const {
    gguf::Writer writer;
    for (const gguf::Field& field : file_.fields().all()) add(field, writer);
    for (const gguf::Tensor& tensor : file_.tensors()) {
      std::vector<int64_t> dims(tensor.dims.begin(), tensor.dims.begin() + tensor.dim_count);
      if (is_table(tensor)) dims[1] = int64_t(order_.size());
      writer.declare(tensor.name, dims, tensor.type_id);
    }
    gguf::TensorStream stream = writer.open_file(path).value();
    for (const gguf::Tensor& tensor : file_.tensors()) {
      if (!is_table(tensor)) {
        ASSERT_TRUE(stream.append(tensor.bytes));
        continue;
      }
      const size_t row_bytes = tensor.bytes.size() / tokens_.size();
      for (const int32_t id : order_) {
        ASSERT_TRUE(stream.append(tensor.bytes.subspan(size_t(id) * row_bytes, row_bytes)));
      }
    }
    ASSERT_TRUE(stream.finish());
  }

 private:
  static constexpr std::string_view kKeys = "tokenizer.ggml.";

  template <class T>
  T get(std::string_view key) const {
    return file_.fields().get<T>(std::string(kKeys) += key).value();
  }
  bool is_table(const gguf::Tensor& tensor) const {
    return tensor.dim_count == 2 && tensor.dims[1] == int64_t(tokens_.size()) &&
           (tensor.name == "token_embd.weight" || tensor.name == "output.weight" ||
            tensor.name == "per_layer_token_embd.weight");
  }
  void add(const gguf::Field& field, gguf::Writer& writer) const {
    if (field.key.ends_with(".vocab_size")) {
      writer.add(field.key, uint32_t(order_.size()));
    } else if (field.key == "tokenizer.ggml.merges") {
      writer.add_array(field.key, std::span<const std::string>(merges_));
    } else if (field.key == "tokenizer.ggml.tokens") {
      std::vector<std::string> tokens;
      for (const int32_t id : order_) tokens.push_back(tokens_[size_t(id)]);
      writer.add_array(field.key, std::span<const std::string>(tokens));
    } else if (field.key == "tokenizer.ggml.token_type") {
      const gguf::Integers types = get<gguf::Integers>("token_type");
      std::vector<int32_t> all;
      for (const int32_t id : order_) all.push_back(int32_t(types[size_t(id)]));
      writer.add_array(field.key, std::span<const int32_t>(all));
    } else if (field.key.starts_with(kKeys) && field.key.ends_with("_token_id")) {
      const int32_t old = file_.fields().get<int32_t>(field.key).value();
      const auto place = std::find(order_.begin(), order_.end(), old);
      writer.add(field.key, uint32_t(place - order_.begin()));
    } else {
      writer.add(field.key, field.value);
    }
  }

  gguf::File file_;
  std::vector<std::string> tokens_, merges_;
  std::vector<int32_t> order_;  // Of the new ids: which token it was.
};

// A copy of the model at `from`.
inline void write_twin(const std::string& from, const std::string& to, double dropped_part) {
  TwinVocabulary(from, dropped_part).write(to);
}

}  // namespace cairn::test
