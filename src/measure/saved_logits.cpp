// Rows of 16-bit codes.
#include "measure/saved_logits.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace cairn::measure {

namespace {

constexpr char kMagic[8] = {'_', 'l', 'o', 'g', 'i', 't', 's', '_'};
constexpr size_t kHeadBytes = sizeof kMagic + 3 * sizeof(int32_t);
constexpr size_t kRowHeadBytes = 2 * sizeof(float);
// Further below the best than this nothing is told apart: e^-16 is a ten-millionth.
constexpr float kReach = 16;
constexpr float kCodeMax = 65535;
constexpr int32_t kContextMax = 1 << 24;

size_t row_bytes(int32_t vocabulary) {
  return kRowHeadBytes + sizeof(uint16_t) * size_t((vocabulary + 1) / 2 * 2);
}

// REQUIRES: `row` has row_bytes(logits.size()).
void encode_row(std::span<const float> logits, double log_total, std::span<std::byte> row) {
  const auto [least, most] = std::minmax_element(logits.begin(), logits.end());
  const float floor = std::max(*least, *most - kReach);
  const float head[] = {(*most - floor) / kCodeMax, float(double(floor) - log_total)};
  std::fill(row.begin(), row.end(), std::byte(0));
  std::memcpy(row.data(), head, sizeof head);
  for (size_t i = 0; i < logits.size() && head[0] > 0; ++i) {
    const float code = std::nearbyint(std::max(logits[i] - floor, 0.0f) / head[0]);
    const uint16_t stored = uint16_t(std::min(code, kCodeMax));
    std::memcpy(row.data() + kRowHeadBytes + i * sizeof stored, &stored, sizeof stored);
  }
}

SavedRow decode_row(const std::byte* at, int32_t vocabulary) {
  SavedRow row{};
  std::memcpy(&row.scale, at, sizeof row.scale);
  std::memcpy(&row.lowest, at + sizeof row.scale, sizeof row.lowest);
  // The file's head has 20 bytes and all else an even number, so that codes are aligned.
  row.codes = {reinterpret_cast<const uint16_t*>(at + kRowHeadBytes), size_t(vocabulary)};
  return row;
}

}  // namespace

Result<LogitsWriter> LogitsWriter::open(OutputFile file, const LogitsShape& shape,
                                        std::span<const Token> tokens) {
  CHECK(tokens.size() == size_t(shape.context) * size_t(shape.chunk_count));
  const int32_t numbers[] = {shape.context, shape.vocabulary, shape.chunk_count};
  CAIRN_TRY(file.append(std::as_bytes(std::span(kMagic))));
  CAIRN_TRY(file.append(std::as_bytes(std::span(numbers))));
  static_assert(sizeof(Token) == sizeof(int32_t), "ids lie in the file as they are");
  CAIRN_TRY(file.append(std::as_bytes(tokens)));
  LogitsWriter writer(std::move(file));
  writer.row_.resize(row_bytes(shape.vocabulary));
  return writer;
}

Status LogitsWriter::append(std::span<const float> logits, double log_total) {
  encode_row(logits, log_total, row_);
  return file_.append(row_);
}

Result<SavedLogits> SavedLogits::open(const std::string& path) {
  CAIRN_TRY(MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  int32_t numbers[3] = {};
  if (bytes.size() < kHeadBytes || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
    return fail(ErrorCode::invalid_data, "{}: expected saved logits, found another file", path);
  }
  std::memcpy(numbers, bytes.data() + sizeof kMagic, sizeof numbers);
  const LogitsShape shape{numbers[0], numbers[1], numbers[2]};
  const bool is_sane = shape.context >= 4 && shape.context <= kContextMax &&
                       shape.vocabulary >= 1 && shape.vocabulary <= kContextMax &&
                       shape.chunk_count >= 1 && shape.chunk_count <= kContextMax;
  const uint64_t token_bytes =
      is_sane ? uint64_t(shape.context) * uint64_t(shape.chunk_count) * 4 : 0;
  // Bounds are far below overflow: 2^24 chunks of 2^24 rows would not be, so rows come by division.
  const uint64_t rows = is_sane ? uint64_t(shape.chunk_count) * uint64_t(shape.row_count()) : 0;
  if (!is_sane || bytes.size() < kHeadBytes + token_bytes ||
      (bytes.size() - kHeadBytes - token_bytes) / row_bytes(shape.vocabulary) < rows) {
    return fail(ErrorCode::invalid_data,
                "{}: expected {} chunks of {} tokens with {} logits each, found {} bytes", path,
                shape.chunk_count, shape.context, shape.vocabulary, bytes.size());
  }
  SavedLogits saved(std::move(file), shape);
  saved.tokens_.resize(size_t(token_bytes / 4));
  std::memcpy(saved.tokens_.data(), bytes.data() + kHeadBytes, size_t(token_bytes));
  saved.rows_offset_ = kHeadBytes + size_t(token_bytes);
  for (const Token token : saved.tokens_) {
    if (index_of(token) >= 0 && index_of(token) < shape.vocabulary) continue;
    return fail(ErrorCode::invalid_data, "{}: expected tokens below {}, found {}", path,
                shape.vocabulary, index_of(token));
  }
  return saved;
}

SavedRow SavedLogits::row(int64_t index) const {
  return decode_row(
      file_.bytes().data() + rows_offset_ + size_t(index) * row_bytes(shape_.vocabulary),
      shape_.vocabulary);
}

void KeptLogits::append(std::span<const float> logits, double log_total) {
  CHECK(logits.size() == size_t(vocabulary_));
  const size_t begin = bytes_.size();
  bytes_.resize(begin + row_bytes(vocabulary_));
  encode_row(logits, log_total, std::span(bytes_).subspan(begin));
}

int64_t KeptLogits::row_count() const {
  return int64_t(bytes_.size() / row_bytes(vocabulary_));
}

SavedRow KeptLogits::row(int64_t index) const {
  CHECK(index < row_count());
  return decode_row(bytes_.data() + size_t(index) * row_bytes(vocabulary_), vocabulary_);
}

}  // namespace cairn::measure
