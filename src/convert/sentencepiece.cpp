// Of the message three fields are read: the pieces, the kind of the model, and how a text is
// prepared. Fields are a tag (number and wire type) and a value; those of other numbers are stepped
// over.
#include "convert/sentencepiece.h"

#include <cstring>
#include <optional>

namespace cairn::convert {
namespace {

constexpr uint64_t kNormalizer = 3, kDummyPrefix = 3;
constexpr size_t kPiecesMax = size_t(1) << 22;

enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// One message, front to back.
class Message {
 public:
  explicit Message(std::string_view bytes) : left_(bytes) {}

  struct Field {
    uint64_t number;
    Wire wire;
    uint64_t varint = 0;
    std::string_view bytes;  // Of the other kinds.
  };

  bool is_done() const { return left_.empty(); }

  std::optional<Field> next() {
    const auto tag = read_varint();
    if (!tag) return std::nullopt;
    Field field{.number = *tag >> 3, .wire = Wire(*tag & 7)};
    switch (field.wire) {
      case Wire::varint: {
        const auto value = read_varint();
        if (!value) return std::nullopt;
        field.varint = *value;
        return field;
      }
      case Wire::fixed64:
        return take(field, 8);
      case Wire::fixed32:
        return take(field, 4);
      case Wire::bytes: {
        const auto length = read_varint();
        if (!length) return std::nullopt;
        return take(field, *length);
      }
    }
    return std::nullopt;
  }

 private:
  std::optional<uint64_t> read_varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = uint8_t(left_.front());
      left_.remove_prefix(1);
      value |= uint64_t(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  std::optional<Field> take(Field field, uint64_t count) {
    if (count > left_.size()) return std::nullopt;
    field.bytes = left_.substr(0, size_t(count));
    left_.remove_prefix(size_t(count));
    return field;
  }

  std::string_view left_;
};

Error broken(size_t piece) {
  return fail(ErrorCode::invalid_data,
              "expected a SentencePiece model, found broken bytes at "
              "piece {}",
              piece);
}

Result<Piece> read_piece(std::string_view bytes, size_t number) {
  Piece piece;
  Message message(bytes);
  while (!message.is_done()) {
    const auto field = message.next();
    if (!field) return broken(number);
    if (field->number == 1 && field->wire == Wire::bytes) {
      piece.text = field->bytes;
    } else if (field->number == 2 && field->wire == Wire::fixed32) {
      std::memcpy(&piece.score, field->bytes.data(), sizeof piece.score);
    } else if (field->number == 3 && field->wire == Wire::varint) {
      if (field->varint < 1 || field->varint > 6) return broken(number);
      piece.kind = PieceKind(int32_t(field->varint));
    }
  }
  return piece;
}

constexpr uint64_t kUnigram = 1;

Status read_normalizer(std::string_view bytes, UnigramNormalizer& normalizer) {
  Message message(bytes);
  while (!message.is_done()) {
    const auto field = message.next();
    if (!field) return broken(0);
    if (field->number == 2 && field->wire == Wire::bytes) {
      normalizer.charsmap = field->bytes;
    } else if (field->number == 3 && field->wire == Wire::varint) {
      normalizer.adds_space = field->varint != 0;
    } else if (field->number == 4 && field->wire == Wire::varint) {
      normalizer.removes_extra_spaces = field->varint != 0;
    }
  }
  return Ok{};
}

Status check_kind(std::string_view bytes) {
  Message message(bytes);
  while (!message.is_done()) {
    const auto field = message.next();
    if (!field) return broken(0);
    const bool is_kind = field->number == 3 && field->wire == Wire::varint;
    if (!is_kind || field->varint == kUnigram) continue;
    return fail(ErrorCode::unsupported, "expected a unigram model, found kind {}", field->varint);
  }
  return Ok{};
}

}  // namespace

bool is_byte_token(std::string_view text) {
  const auto is_hex = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
  };
  return text.size() == 6 && text.starts_with("<0x") && text[5] == '>' && is_hex(text[3]) &&
         is_hex(text[4]);
}

Result<UnigramNormalizer> parse_unigram_normalizer(std::string_view bytes) {
  UnigramNormalizer normalizer;
  Message message(bytes);
  while (!message.is_done()) {
    const auto field = message.next();
    if (!field) return broken(0);
    if (field->wire != Wire::bytes) continue;
    if (field->number == 2) CAIRN_TRY(check_kind(field->bytes));
    if (field->number == 3) CAIRN_TRY(read_normalizer(field->bytes, normalizer));
  }
  return normalizer;
}

Result<std::vector<Piece>> parse_sentencepiece(std::string_view bytes) {
  std::vector<Piece> pieces;
  Message message(bytes);
  while (!message.is_done()) {
    const auto field = message.next();
    if (!field || pieces.size() >= kPiecesMax) return broken(pieces.size());
    if (field->number != 1 || field->wire != Wire::bytes) continue;
    CAIRN_TRY(Piece piece, read_piece(field->bytes, pieces.size()));
    pieces.push_back(std::move(piece));
  }
  if (pieces.empty()) return broken(0);
  return pieces;
}

Result<bool> sentencepiece_prepends_space(std::string_view bytes) {
  bool prepends = true;
  Message message(bytes);
  while (!message.is_done()) {
    const auto field = message.next();
    if (!field) return broken(0);
    if (field->number != kNormalizer || field->wire != Wire::bytes) continue;
    Message normalizer(field->bytes);
    while (!normalizer.is_done()) {
      const auto inner = normalizer.next();
      if (!inner) return broken(0);
      if (inner->number == kDummyPrefix && inner->wire == Wire::varint)
        prepends = inner->varint != 0;
    }
  }
  return prepends;
}

}  // namespace cairn::convert
