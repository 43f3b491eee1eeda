// Cuts matrix products and the quantization of activations into tasks, and unpacks ops and steps
// into plain arguments for the vector kernels. A task is some groups of outputs times some rows:
// a few microseconds of memory traffic for few rows, panels that fit the second level cache for
// many. Products of experts gather the rows that chose the same expert, so that its weights are
// read once for all of them. Where prompts have kernels of their own (fast-1), a task's rows are
// two lists, and which of them a row is in depends on its role alone.
#include "backends/cpu/product/matmul.h"

#include <algorithm>
#include <bit>
#include <new>
#include <variant>

#include "backends/cpu/pack/pack.h"
#include "backends/cpu/product/fast_product.h"
#include "backends/cpu/product/product.h"
#include "base/check.h"

namespace cairn::cpu {
namespace {

// Packed weights that a task reads for few rows: a share of the matrix, so that all threads end at
// about the same time, but enough for the memory's prefetchers to get going.
constexpr int64_t kTaskBytesMin = 64 * 1024, kTaskBytesMax = 256 * 1024, kTaskShare = 24;

// Rows that compute longer than they read, but multiply the packed form too, are cut into so many
// tasks, where a matrix has the outputs for them.
constexpr int32_t kTasks = 16;

constexpr int64_t kOnTheWayBytes = 512 * 1024;

const PackedMatrix& packed(const Weight& weight) {
  return *static_cast<const PackedMatrix*>(weight.packed);
}

// A thread gets so many tasks of a product at least, where its matrix has the outputs for them.
constexpr int32_t kTasksOfThread = 2, kPanelGroupsMin = 8;

// How outputs and rows are cut into tasks.
struct Cut {
  int32_t groups;       // Of a task,
  int32_t rows;         // and rows at most.
  int32_t group_tasks;  // Tasks that cover all groups of one matrix.
  int32_t row_chunks;
};

// Groups of a task that multiplies panels: many, since each task prepares all of its rows, but few
// enough that every thread has something to do.
int32_t panel_groups(const MatrixKernels& kernels, const PackedMatrix& weight, int32_t row_chunks,
                     int32_t thread_count) {
  int32_t groups = kernels.panel_groups;
  const auto tasks = [&] { return (weight.group_count + groups - 1) / groups * row_chunks; };
  while (groups > kPanelGroupsMin && tasks() < kTasksOfThread * thread_count) groups /= 2;
  return groups;
}

Cut cut_product(const MatrixKernels& kernels, const PackedMatrix& weight, int32_t row_count,
                int32_t thread_count) {
  Cut cut;
  cut.rows = is_float(weight.form.plane) ? kernels.float_rows : kernels.chunk_rows;
  cut.row_chunks = (row_count + cut.rows - 1) / cut.rows;
  if (row_count <= kDirectRows) {
    const int64_t share = weight.group_count * weight.group_bytes / kTaskShare;
    const int64_t bytes = std::clamp(share, kTaskBytesMin, kTaskBytesMax);
    cut.groups = int32_t(std::max<int64_t>(1, bytes / weight.group_bytes));
    cut.groups = (cut.groups + 3) / 4 * 4;  // A row alone has four of them side by side.
  } else if (is_float(weight.form.plane)) {
    cut.groups = std::min(kernels.float_groups,
                          panel_groups(kernels, weight, cut.row_chunks, thread_count));
  } else if (row_count <= kernels.direct_rows) {
    cut.groups = std::clamp(weight.group_count / kTasks, 4, kPanels);
  } else {
    cut.groups = panel_groups(kernels, weight, cut.row_chunks, thread_count);
  }
  cut.group_tasks = (weight.group_count + cut.groups - 1) / cut.groups;
  return cut;
}

// A product's rows and the scratch behind them.
struct RowList {
  ProductRow rows[kTileChunkRows];
  int32_t count = 0;
};
constexpr size_t kRowListBytes = (sizeof(RowList) + 63) / 64 * 64;

// Values [first, …) of a row as the op's weight multiplies it: quantized (or rounded), or f32.
template <class T>
ProductRow product_row(const T& op, const Step& step, int32_t row, int32_t first) {
  ProductRow out{};
  if (!op.weight->type->is_float()) {
    const QuantizedRows& quantized = op.quantized;
    const std::byte* bytes = step.row(quantized, row);
    out.q = reinterpret_cast<const int8_t*>(bytes) + first;
    out.scales = reinterpret_cast<const float*>(bytes + quantized.scales_offset()) + first / 32;
    out.sums = reinterpret_cast<const int32_t*>(bytes + quantized.sums_offset()) + first / 16;
    out.rounded = reinterpret_cast<const uint16_t*>(bytes) + first;
  }
  if (op.weight->type->is_float()) out.x = step.row(op.x, row) + first;
  return out;
}

// Weights that stay in the file are packed on the way, so many groups at a time: as a product takes
// them, as long as they fit the second level cache.
int32_t groups_on_the_way(const PackedMatrix& weight) {
  if (weight.data != nullptr) return 0;
  if (is_float(weight.form.plane)) return 4;
  return int32_t(std::clamp<int64_t>(kOnTheWayBytes / weight.group_bytes, 1, kPanels));
}

size_t kernel_scratch_bytes(const MatrixKernels& kernels, const PackedMatrix& weight) {
  return std::max(kernels.scratch_bytes, product_scratch_bytes(weight));
}

// What the sums of a matrix's products are multiplied by, and what is added to them.
struct Ending {
  float scale;
  const float* bias;  // Of the matrix's first output; may be null.
};

// Groups [first_group, first_group + groups) of a matrix times the rows of the list. The list's
// `out` is that of the matrix's first output.
template <const MatrixKernels& Kernels>
void multiply_list(const PackedMatrix& weight, int32_t matrix, int32_t first_group, int32_t groups,
                   Ending ending, RowList& list, std::byte* scratch) {
  const int32_t end_group = std::min(first_group + groups, weight.group_count);
  const int32_t on_the_way = groups_on_the_way(weight);
  const int32_t step = on_the_way == 0 ? groups : on_the_way;
  uint8_t* const buffer =
      reinterpret_cast<uint8_t*>(scratch + kernel_scratch_bytes(Kernels, weight));
  int32_t done = 0;  // Outputs that the list's `out` has moved on.
  for (int32_t group = first_group; group < end_group; group += step) {
    const int32_t first = group * kGroupRows;
    const int32_t end =
        std::min({weight.rows, (group + step) * kGroupRows, end_group * kGroupRows});
    for (int32_t row = 0; row < list.count; ++row) list.rows[row].out += first - done;
    done = first;
    for (int32_t i = 0; i < on_the_way && group + i < end_group; ++i) {
      pack_group(*weight.source, weight, matrix, group + i, buffer + i * weight.group_bytes);
    }
    Kernels.multiply({.weight = &weight,
                      .groups = on_the_way == 0 ? group_at(weight, matrix, group) : buffer,
                      .output_count = end - first,
                      .row_count = list.count,
                      .rows = list.rows,
                      .bias = ending.bias == nullptr ? nullptr : ending.bias + first,
                      .scratch = scratch,
                      .scale = ending.scale});
  }
}

bool is_answer(const Step& step, int32_t row) {
  return step.slices[size_t(step.slice_of_row[size_t(row)])].is_answer;
}

// The kernels of an op's products, and those for rows of prompts, which may be the same.
template <const MatrixKernels& Kernels, const MatrixKernels& OfPrompts = Kernels>
struct ByRole {
  static constexpr bool kAreApart = &Kernels != &OfPrompts;
  static constexpr const MatrixKernels& kOfAnswers = Kernels;
  static constexpr const MatrixKernels& kOfPrompts = OfPrompts;
  static constexpr size_t kListsBytes = (kAreApart ? 2 : 1) * kRowListBytes;
  // What both take at a time.
  static int32_t chunk_rows() { return std::min(Kernels.chunk_rows, OfPrompts.chunk_rows); }

  // Those that a step is cut into tasks for.
  static const MatrixKernels& of(const Step& step) {
    if (!kAreApart) return Kernels;
    const bool has_prompts = !std::ranges::all_of(step.slices, &Slice::is_answer);
    return has_prompts ? OfPrompts : Kernels;
  }

  // The rows of a task, in its scratch.
  class TaskRows {
   public:
    explicit TaskRows(std::byte* scratch)
        : list_(*new (scratch) RowList),
          prompts_(kAreApart ? *new (scratch + kRowListBytes) RowList : list_),
          scratch_(scratch + kListsBytes) {}

    // Whoever adds a row to it multiplies the rows once it is full.
    RowList& list_of(const Step& step, int32_t row) {
      return kAreApart && !is_answer(step, row) ? prompts_ : list_;
    }

    // As multiply_list(); there are no rows afterwards.
    void multiply(const PackedMatrix& weight, int32_t matrix, int32_t first_group, int32_t groups,
                  Ending ending) {
      if (list_.count > 0) {
        multiply_list<Kernels>(weight, matrix, first_group, groups, ending, list_, scratch_);
      }
      if (kAreApart && prompts_.count > 0) {
        multiply_list<OfPrompts>(weight, matrix, first_group, groups, ending, prompts_, scratch_);
      }
      list_.count = prompts_.count = 0;
    }

   private:
    RowList& list_;
    RowList& prompts_;
    std::byte* scratch_;
  };

  template <class T>
  static size_t scratch_bytes(const Op& any) {
    const PackedMatrix& weight = packed(*std::get<T>(any).weight);
    return kListsBytes +
           std::max(kernel_scratch_bytes(Kernels, weight),
                    kernel_scratch_bytes(OfPrompts, weight)) +
           size_t(groups_on_the_way(weight) * weight.group_bytes);
  }
};

template <class Products>
struct MatMulTasks {
  static int64_t count(const Op& any, const Step& step) {
    const Cut cut = cut_of(std::get<op::MatMul>(any), step);
    return int64_t(cut.group_tasks) * cut.row_chunks;
  }

  static void run(const Op& any, const Step& step, int64_t task, std::byte* scratch) {
    const auto& op = std::get<op::MatMul>(any);
    const Cut cut = cut_of(op, step);
    const int32_t first_row = int32_t(task / cut.group_tasks) * cut.rows;
    const int32_t end_row = std::min(step.row_count(op.out.set), first_row + cut.rows);
    run_groups(op, step, {first_row, end_row},
               {int32_t(task % cut.group_tasks) * cut.groups, cut.groups}, scratch);
  }

  static int32_t piece_columns(const Op& any, const Step& step) {
    return cut_of(std::get<op::MatMul>(any), step).groups * kGroupRows;
  }

  // The rows of a piece are those of one task, so that the kernel takes them the same way.
  static void run_piece(const Op& any, const Step& step, const host::Piece& piece,
                        std::byte* scratch) {
    run_groups(
        std::get<op::MatMul>(any), step, {piece.first_row, piece.end_row},
        {piece.first_column / kGroupRows, (piece.column_count() + kGroupRows - 1) / kGroupRows},
        scratch);
  }

 private:
  struct RowRange {
    int32_t first, end;
  };
  struct Groups {
    int32_t first, count;
  };

  static Cut cut_of(const op::MatMul& op, const Step& step) {
    return cut_product(Products::of(step), packed(*op.weight), step.row_count(op.out.set),
                       step.thread_count);
  }

  static void run_groups(const op::MatMul& op, const Step& step, RowRange rows, Groups groups,
                         std::byte* scratch) {
    CHECK(rows.end - rows.first <= Products::chunk_rows());
    typename Products::TaskRows task_rows(scratch);
    for (int32_t row = rows.first; row < rows.end; ++row) {
      RowList& list = task_rows.list_of(step, row);
      ProductRow& entry = list.rows[list.count++];
      entry = product_row(op, step, row, 0);
      entry.out = step.row(op.out, row);
    }
    task_rows.multiply(packed(*op.weight), 0, groups.first, groups.count,
                       {op.weight->scale_of(0), op.bias.data()});
  }
};

template <class Products>
struct ExpertTasks {
  // One row: its experts one after the other. More: for each expert, the rows that chose it; tasks
  // are large then, since each looks through all choices.
  static Cut cut_experts(const PackedMatrix& weight, int32_t row_count) {
    Cut cut = cut_product(Products::kOfAnswers, weight, 1, 1);
    if (row_count > 1) {
      cut.groups = std::max(cut.groups, 16);
      cut.group_tasks = (weight.group_count + cut.groups - 1) / cut.groups;
    }
    return cut;
  }

  static int64_t count(const Op& any, const Step& step) {
    const auto& op = std::get<op::ExpertMatMul>(any);
    const int32_t row_count = step.row_count(op.out.set);
    const Cut cut = cut_experts(packed(*op.weight), row_count);
    if (row_count <= 1) return int64_t(row_count) * op.rank_count() * cut.group_tasks;
    return int64_t(op.weight->count) * cut.group_tasks;
  }

  static void run(const Op& any, const Step& step, int64_t task, std::byte* scratch) {
    const auto& op = std::get<op::ExpertMatMul>(any);
    const PackedMatrix& weight = packed(*op.weight);
    const int32_t row_count = step.row_count(op.out.set);
    const Cut cut = cut_experts(weight, row_count);
    const int32_t first_group = int32_t(task % cut.group_tasks) * cut.groups;
    const int32_t which = int32_t(task / cut.group_tasks);  // A rank, or an expert.
    typename Products::TaskRows task_rows(scratch);
    if (row_count == 1) {
      const int32_t expert = expert_of(op, step, 0, which);
      CHECK(expert >= 0 && expert < op.weight->count);
      append(op, step, 0, which, task_rows.list_of(step, 0));
      task_rows.multiply(weight, expert, first_group, cut.groups, ending_of(op, expert));
      return;
    }
    for (int32_t row = 0; row < row_count; ++row) {
      if (!chooses(op, step, row, which)) continue;
      for (int32_t rank = 0; rank < op.rank_count(); ++rank) {
        const int32_t expert = expert_of(op, step, row, rank);
        DCHECK(expert >= 0 && expert < op.weight->count);
        if (expert != which) continue;
        RowList& list = task_rows.list_of(step, row);
        append(op, step, row, rank, list);
        if (list.count < Products::chunk_rows()) continue;
        task_rows.multiply(weight, which, first_group, cut.groups, ending_of(op, which));
      }
    }
    task_rows.multiply(weight, which, first_group, cut.groups, ending_of(op, which));
  }

  // Whether one of the row's ranks is the expert: most are not, and all of them are looked at side
  // by side.
  static bool chooses(const op::ExpertMatMul& op, const Step& step, int32_t row, int32_t expert) {
    if (!op.chosen.exists()) return true;
    const float* chosen = step.row(op.chosen, row);
    int32_t is_there = 0;
    for (int32_t rank = 0; rank < op.chosen.width; ++rank) {
      is_there |= int32_t(std::bit_cast<int32_t>(chosen[rank]) == expert);
    }
    return is_there != 0;
  }

  static Ending ending_of(const op::ExpertMatMul& op, int32_t expert) {
    const int64_t first = int64_t(expert) * op.weight->rows;
    return {op.weight->scale_of(expert), op.bias.from(first)};
  }

  static int32_t expert_of(const op::ExpertMatMul& op, const Step& step, int32_t row,
                           int32_t rank) {
    return op.chosen.exists() ? std::bit_cast<int32_t>(step.row(op.chosen, row)[rank]) : rank;
  }

  static void append(const op::ExpertMatMul& op, const Step& step, int32_t row, int32_t rank,
                     RowList& list) {
    ProductRow& entry = list.rows[list.count++];
    entry = product_row(op, step, row, op.x_per_rank ? rank * op.weight->cols : 0);
    entry.out = step.row(op.out, row) + int64_t(rank) * op.weight->rows;
  }
};

// Few rows are cut into pieces so that all threads take part; of many, a task takes several.
constexpr int32_t kQuantizePiece = 2048;
constexpr int32_t kQuantizeFewRows = 16;

template <class Products>
struct QuantizeTasks {
  static int32_t rows_of_task(const op::Quantize& op, int32_t row_count) {
    if (row_count <= kQuantizeFewRows) return 1;
    return std::max(1, 4 * kQuantizePiece / op.out.width);
  }
  static int32_t pieces(const op::Quantize& op, int32_t row_count) {
    if (row_count > kQuantizeFewRows) return 1;
    return (op.out.width + kQuantizePiece - 1) / kQuantizePiece;
  }

  static int64_t count(const Op& any, const Step& step) {
    const auto& op = std::get<op::Quantize>(any);
    const int32_t row_count = step.row_count(op.out.set);
    const int32_t rows = rows_of_task(op, row_count);
    return int64_t((row_count + rows - 1) / rows) * pieces(op, row_count);
  }

  static void run(const Op& any, const Step& step, int64_t task, std::byte*) {
    const auto& op = std::get<op::Quantize>(any);
    const int32_t row_count = step.row_count(op.out.set);
    const int32_t rows = rows_of_task(op, row_count);
    const int32_t piece_count = pieces(op, row_count);
    const int32_t first = piece_count == 1 ? 0 : int32_t(task % piece_count) * kQuantizePiece;
    const int32_t count =
        piece_count == 1 ? op.out.width : std::min(kQuantizePiece, op.out.width - first);
    const int32_t first_row = int32_t(task / piece_count) * rows;
    const int32_t end_row = std::min(row_count, first_row + rows);
    for (int32_t row = first_row; row < end_row; ++row) quantize(op, step, row, first, count);
  }

  static void run_piece(const Op& any, const Step& step, const host::Piece& piece, std::byte*) {
    for (int32_t row = piece.first_row; row < piece.end_row; ++row) {
      quantize(std::get<op::Quantize>(any), step, row, piece.first_column, piece.column_count());
    }
  }

  static void quantize(const op::Quantize& op, const Step& step, int32_t row, int32_t first,
                       int32_t count) {
    const float* x = step.row(op.x, row) + first;
    std::byte* bytes = step.row(op.out, row);
    if constexpr (Products::kAreApart) {
      if (!is_answer(step, row)) {
        return Products::kOfPrompts.round(x, count, reinterpret_cast<uint16_t*>(bytes) + first);
      }
    }
    Products::kOfAnswers.quantize(
        x, count, reinterpret_cast<int8_t*>(bytes) + first,
        reinterpret_cast<float*>(bytes + op.out.scales_offset()) + first / 32,
        reinterpret_cast<int32_t*>(bytes + op.out.sums_offset()) + first / 16);
  }
};

template <const MatrixKernels& Kernels, const MatrixKernels& OfPrompts = Kernels>
host::HostKernel choose(const Op& op) {
  using Products = ByRole<Kernels, OfPrompts>;
  if (const auto* matmul = std::get_if<op::MatMul>(&op)) {
    if (matmul->weight->packed == nullptr) return {};
    return {.task_count = &MatMulTasks<Products>::count,
            .run = &MatMulTasks<Products>::run,
            .scratch_bytes = &Products::template scratch_bytes<op::MatMul>,
            .run_piece = &MatMulTasks<Products>::run_piece,
            .piece_columns = &MatMulTasks<Products>::piece_columns};
  }
  if (const auto* experts = std::get_if<op::ExpertMatMul>(&op)) {
    if (experts->weight->packed == nullptr) return {};
    return {&ExpertTasks<Products>::count, &ExpertTasks<Products>::run,
            &Products::template scratch_bytes<op::ExpertMatMul>};
  }
  if (std::holds_alternative<op::Quantize>(op)) {
    return {.task_count = &QuantizeTasks<Products>::count,
            .run = &QuantizeTasks<Products>::run,
            .run_piece = &QuantizeTasks<Products>::run_piece};
  }
  return {};
}

#if defined(__x86_64__)
// Whether fast-1 multiplies rows of prompts in bf16 by this op's weight, or rounds them for such
// products. Outputs choose an answer's tokens, so their products stay exact; and but for tiles, so
// do those with quantized weights.
bool rounds_prompts(const Op& op, IsaLevel isa) {
  const auto is_rounded = [isa](RowSet set, bool has_floats) {
    return set == RowSet::tokens && (isa == IsaLevel::amx || has_floats);
  };
  if (const auto* matmul = std::get_if<op::MatMul>(&op)) {
    return is_rounded(matmul->out.set, matmul->weight->type->is_float());
  }
  if (const auto* experts = std::get_if<op::ExpertMatMul>(&op)) {
    return is_rounded(experts->out.set, experts->weight->type->is_float());
  }
  const auto* quantize = std::get_if<op::Quantize>(&op);
  return quantize != nullptr && is_rounded(quantize->out.set, false);
}
#endif

}  // namespace

host::HostKernel choose_matrix_kernel(const Op& op, IsaLevel isa,
                                      [[maybe_unused]] Numerics numerics) {
#if defined(__x86_64__)
  if (numerics == Numerics::fast_1 && rounds_prompts(op, isa)) {
    if (isa == IsaLevel::amx) return choose<amx::matrix_kernels, amxbf16::matrix_kernels>(op);
    return choose<avx512::matrix_kernels, avx512bf16::matrix_kernels>(op);
  }
#endif
  switch (isa) {
#if defined(__x86_64__)
    case IsaLevel::avx2:
      return choose<avx2::matrix_kernels>(op);
    case IsaLevel::avx2_vnni:
      return choose<avxvnni::matrix_kernels>(op);
    case IsaLevel::avx512_vnni:
      return choose<avx512::matrix_kernels>(op);
    case IsaLevel::amx:
      return choose<amx::matrix_kernels>(op);
#elif defined(__aarch64__)
    case IsaLevel::neon_dot:
      return choose<neon::matrix_kernels>(op);
#endif
    default:  // Scalar, and levels of other machines.
      return {};
  }
}

std::string_view lacks_for_fast(IsaLevel isa, const CpuFeatures& features) {
  const bool has_pairs = features.avx512_bf16 && runs_on(IsaLevel::avx512_vnni, features);
  if (isa != IsaLevel::avx512_vnni && isa != IsaLevel::amx) return "AVX512_BF16 or AMX-BF16";
  if (!has_pairs) return "AVX512_BF16";
  return isa == IsaLevel::amx && !features.amx_bf16 ? "AMX-BF16" : "";
}

}  // namespace cairn::cpu
