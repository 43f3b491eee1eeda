// The tensors of the file to be, while they are planned: what a family's functions see and add to.
// A row of an output is a run of numbers of a source, or it is made by a function when it is
// written; so any order of rows, transposition or packing is a plan, and nothing is held in memory.
// Thread rule: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "convert/config.h"
#include "convert/family.h"
#include "convert/key_values.h"
#include "convert/safetensors.h"

namespace cairn::convert {

enum class OutType : uint8_t { automatic, f32, f16, bf16 };

// Rows of a source, counted in its numbers: row r of the run has first + r * row_stride + c * step.
struct RowRun {
  const SourceTensor* source;
  int64_t first, row_count, row_stride, step = 1;
  // Each number times one, then times the other, each rounded as the source is; 0 makes zeros.
  float factor = 1, second_factor = 1;
};

struct PlannedTensor {
  std::string name;
  std::vector<int64_t> dims;  // dims[0] is the length of a row.
  uint32_t type_id;
  std::vector<RowRun> runs;    // All rows, one run after another.
  std::vector<float> numbers;  // Instead of runs: what is made here.
  // Instead of runs: writes a row's bytes in the tensor's type.
  std::function<void(int64_t row, std::span<std::byte> bytes)> make_row;
  int64_t row_numbers;  // In a row; a row of a permuted bias is one number.
  // Above 0: within so many rows (a head's) the first half's rows and the second half's alternate.
  int64_t head_rows = 0;
  Edit edit = Edit::none;  // Of each number.

  int64_t row_count() const;
};

// "model.layers.3.mlp.experts.5.w1.weight": layer 3, "mlp.experts.*.w1", expert 5, ".weight".
struct TensorName {
  std::string rest;
  std::optional<int64_t> layer, expert;
  std::string_view ending;
};

std::string shape_text(const SourceTensor& tensor);  // For messages: "[3, 4]".

class TensorPlan {
 public:
  TensorPlan(const Checkpoint& checkpoint, const Config& config, const Family& family, OutType type,
             int64_t token_count, KeyValues& out);
  // Errors: invalid_data (a count of config.json).
  Status start_counts();

  const Checkpoint& checkpoint() const { return checkpoint_; }
  const Config& config() const { return config_; }
  const Family& family() const { return family_; }
  KeyValues& out() { return out_; }
  int64_t head_count() const { return heads_; }
  int64_t kv_head_count() const { return kv_heads_ > 0 ? kv_heads_ : heads_; }
  int64_t layer_count() const { return layers_; }
  int64_t expert_count() const { return experts_count_; }

  // With the type that the name and the shape ask for; without rows yet.
  PlannedTensor start(std::string name, std::vector<int64_t> dims) const;
  // "blk.3.attn_q.weight" of a parsed name and "attn_q".
  static std::string target_name(const TensorName& name, std::string_view target);
  // Errors: invalid_data (the rows of the runs are not those of the shape).
  Status add(PlannedTensor tensor);
  void add_numbers(std::string name, std::vector<float> numbers);

  // What the row of the table says, with its edit.
  Status add_row(const TensorName& name, const NameRow& row, const SourceTensor& source);
  // As it is, under another name, in the type that the name asks for or in that of matrices.
  enum class Width : uint8_t { by_name, of_matrices };
  Status add_whole(const TensorName& name, std::string_view target, const SourceTensor& source,
                   Width width = Width::by_name);
  // Rows of a matrix, or numbers of a vector, as a tensor of its own. `parts` are pairs of a first
  // row and a count, one after the other. `head_rows` as in PlannedTensor.
  struct Rows {
    int64_t first, count;
  };
  Status add_rows(const TensorName& name, std::string_view target, const SourceTensor& source,
                  std::span<const Rows> parts, int64_t head_rows = 0);

  // Experts that are still waited for are an error.
  Result<std::vector<PlannedTensor>> finish();

 private:
  // A layer's experts, until all have come: by row of the table, then by number.
  using Buffer = std::map<std::pair<const NameRow*, int64_t>, const SourceTensor*>;

  Status add_expert(const TensorName& name, const NameRow& row, const SourceTensor& source);
  Status add_halves(const TensorName& name, const NameRow& row, const SourceTensor& source);
  Status write_experts(const TensorName& name, const Buffer& buffer);
  Status add_edited(const TensorName& name, const NameRow& row, const SourceTensor& source);
  size_t wanted_count() const;
  bool must_be_f32(const PlannedTensor& tensor) const;
  std::string_view half_target(std::string_view target) const;

  const Checkpoint& checkpoint_;
  const Config& config_;
  const Family& family_;
  OutType type_;
  int64_t token_count_, heads_ = 0, kv_heads_ = 0, experts_count_ = 0, layers_ = 0;
  KeyValues& out_;
  std::map<int64_t, Buffer> experts_;
  std::vector<PlannedTensor> planned_;
};

}  // namespace cairn::convert
