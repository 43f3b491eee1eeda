// Writing: a piece of rows at a time is gathered, widened to f32, changed where the format wants it
// and narrowed; rows whose type stays and that are not changed are copied.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/half.h"
#include "convert/tensors.h"
#include "quant/quant.h"
#include "quant/reach.h"

namespace cairn::convert {
namespace {

constexpr size_t kPieceBytes = size_t(1) << 20;

size_t width_of(Number number) {
  return number == Number::f64 ? 8 : number == Number::f32 ? 4 : 2;
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

float widen(Number number, const std::byte* at) {
  switch (number) {
    case Number::f64:
      return float(load<double>(at));
    case Number::f32:
      return load<float>(at);
    case Number::f16:
      return to_float(Half(load<uint16_t>(at)));
    default:
      return to_float(BFloat16(load<uint16_t>(at)));
  }
}

class Rows {
 public:
  explicit Rows(const PlannedTensor& tensor)
      : tensor_(tensor), out_(*quant::find(tensor.type_id)) {}

  size_t out_row_bytes() const { return quant::row_bytes(out_, tensor_.row_numbers); }

  // Appends row `row` of the run to `bytes`. Error: a number that the type cannot hold.
  Status append(const RowRun& run, int64_t row, std::vector<std::byte>& bytes) {
    const int64_t out_row = row_count_++;
    const SourceTensor& source = *run.source;
    const size_t width = width_of(source.number), step = size_t(run.step) * width;
    const std::byte* in =
        source.bytes.data() + size_t(run.first + source_row(row) * run.row_stride) * width;
    const bool is_scaled = run.factor != 1 || run.second_factor != 1;
    if (!is_scaled && changes_nothing() && run.step == 1 && is_same(source.number)) {
      bytes.insert(bytes.end(), in, in + size_t(tensor_.row_numbers) * width);
      return Ok{};
    }
    numbers_.resize(size_t(tensor_.row_numbers));
    for (size_t i = 0; i < numbers_.size(); ++i) numbers_[i] = widen(source.number, in + i * step);
    if (is_scaled) {
      for (float& number : numbers_) number = scaled(number, run);
    }
    if (!changes_nothing()) {
      for (float& number : numbers_) number = edited(number, source.number);
    }
    CAIRN_TRY(check_reach(out_row));
    const size_t at = bytes.size();
    bytes.resize(at + out_row_bytes());
    quant::encode_row(out_, numbers_, std::span(bytes).subspan(at));
    return Ok{};
  }

  // A row that a function makes.
  void append_made(int64_t row, std::vector<std::byte>& bytes) {
    const size_t at = bytes.size();
    bytes.resize(at + out_row_bytes());
    tensor_.make_row(row, std::span(bytes).subspan(at));
  }

 private:
  // What is beyond a 16-bit type would become an infinity, and the model would no longer run.
  Status check_reach(int64_t row) const {
    if (out_.name == "F32") return Ok{};
    const float reach = quant::reach_of(out_);
    const auto bad = std::find_if(numbers_.begin(), numbers_.end(), [reach](float number) {
      return !quant::is_within(number, reach);
    });
    if (bad == numbers_.end()) return Ok{};
    return fail(ErrorCode::invalid_data,
                "tensor {}: row {}, weight {}: expected at most {} for {}, found {}; use {}",
                tensor_.name, row, bad - numbers_.begin(), reach, out_.name, *bad,
                quant::wider_than(out_));
  }

  // The first half's rows and the second half's alternate: 0, h/2, 1, h/2 + 1, …
  int64_t source_row(int64_t row) const {
    const int64_t height = tensor_.head_rows;
    if (height == 0) return row;
    const int64_t in_head = row % height;
    return row - in_head + in_head % 2 * (height / 2) + in_head / 2;
  }

  bool changes_nothing() const {
    return tensor_.edit != Edit::add_one && tensor_.edit != Edit::negative_exp;
  }

  static float scaled(float number, const RowRun& run) {
    if (run.factor == 0) return 0;
    const auto rounded = [&](float product) {
      return run.source->number == Number::f16 ? to_float(to_half(product)) : product;
    };
    return rounded(rounded(number * run.factor) * run.second_factor);
  }

  float edited(float number, Number type) const {
    number = tensor_.edit == Edit::add_one ? number + 1 : -float(std::exp(double(number)));
    // The usual converter computes in the type of the file, and f16 is one it has.
    return type == Number::f16 ? to_float(to_half(number)) : number;
  }

  bool is_same(Number number) const {
    return (number == Number::f32 && out_.name == "F32") ||
           (number == Number::f16 && out_.name == "F16") ||
           (number == Number::bf16 && out_.name == "BF16");
  }

  const PlannedTensor& tensor_;
  const quant::Type& out_;
  int64_t row_count_ = 0;  // That were appended.
  std::vector<float> numbers_;
};

}  // namespace

Status write_tensors(const Checkpoint& checkpoint, const std::vector<PlannedTensor>& tensors,
                     gguf::TensorStream& stream, const OnBytes& on_bytes) {
  std::vector<std::byte> piece;
  const auto flush = [&]() -> Status {
    CAIRN_TRY(stream.append(piece));
    if (on_bytes) on_bytes(piece.size());
    piece.clear();
    return Ok{};
  };
  for (const PlannedTensor& tensor : tensors) {
    const auto* numbers = reinterpret_cast<const std::byte*>(tensor.numbers.data());
    piece.assign(numbers, numbers + tensor.numbers.size() * sizeof(float));
    Rows rows(tensor);
    for (int64_t row = 0; tensor.make_row != nullptr && row < tensor.row_count(); ++row) {
      rows.append_made(row, piece);
      if (piece.size() >= kPieceBytes) CAIRN_TRY(flush());
    }
    for (const RowRun& run : tensor.runs) {
      for (int64_t row = 0; row < run.row_count; ++row) {
        CAIRN_TRY(rows.append(run, row, piece));
        if (piece.size() >= kPieceBytes) CAIRN_TRY(flush());
      }
      checkpoint.forget(*run.source);
    }
    CAIRN_TRY(flush());
  }
  return Ok{};
}

}  // namespace cairn::convert
