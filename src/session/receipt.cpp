// Taking down choices, and comparing them.
#include "session/receipt.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace cairn::session {

namespace {

static_assert(std::endian::native == std::endian::little, "rows are digested as they lie there");

// Big-endian, so that its hexadecimal digits are those that the whole digest begins with.
uint64_t first_bits(const Sha256Digest& digest) {
  uint64_t bits = 0;
  for (size_t byte = 0; byte < sizeof bits; ++byte) bits = bits << 8 | digest[byte];
  return bits;
}

std::string text_of(const AdapterSource& source) {
  return fmt::format("{} of scale {}", hex_of(source.adapter), source.scale);
}

bool is_same(const AdapterSource& a, const AdapterSource& b) {
  return a.adapter == b.adapter &&
         std::bit_cast<uint32_t>(a.scale) == std::bit_cast<uint32_t>(b.scale);
}

// Cut off somewhere, a text may begin within a character, which is no text.
std::string from_character(std::string_view text) {
  while (!text.empty() && (uint8_t(text[0]) & 0xC0) == 0x80) text.remove_prefix(1);
  return std::string(text);
}

std::string token_text(const Choice* choice) {
  if (choice == nullptr) return "no token";
  return fmt::format("{}{}", index_of(choice->token), choice->is_forced ? ", forced" : "");
}

}  // namespace

void ChoiceLog::add(std::span<const float> logits, Token token, bool is_forced) {
  rows_before_ = rows_;
  rows_.add(std::as_bytes(logits));
  choices_.push_back({.token = token, .is_forced = is_forced, .rows = first_bits(rows())});
}

void ChoiceLog::take_back() {
  rows_ = rows_before_;
  choices_.pop_back();
}

ReceiptSources ReceiptSources::of(const Engine& engine, std::span<const AdapterUse> adapters) {
  return {.model = engine.file().identity(),
          .numerics = engine.numerics(),
          .isa = engine.numerics() == Numerics::exact_1 ? "" : engine.options().isa,
          .key_type = engine.options().key_type,
          .value_type = engine.options().value_type,
          .adapters = engine.adapter_sources(adapters),
          .program = engine.program()};
}

Fingerprint ReceiptSources::fingerprint() const {
  return Fingerprint::of({.model = model,
                          .numerics = numerics,
                          .isa = isa,
                          .key_type = key_type,
                          .value_type = value_type,
                          .adapters = adapters,
                          .program = &program});
}

ReceiptDraft::ReceiptDraft(const Engine& engine, const Selection& selection,
                           const AnswerRequest& request, const sample::Sampler& sampler,
                           ReceiptForm form) {
  const auto steps = sampler.state().steps();
  receipt_ = {.program = "cairn " CAIRN_VERSION,
              .sources = ReceiptSources::of(engine, selection.uses()),
              .prompt = {request.prompt.begin(), request.prompt.end()},
              .answer_prefix = int32_t(request.answer_prefix.size()),
              .message_starts = {request.message_starts.begin(), request.message_starts.end()},
              .is_raw = request.format == nullptr,
              .prompt_end = from_character(request.prompt_end),
              .stop = {},
              .reasoning_tokens_max = request.reasoning_tokens_max,
              .form = std::move(form),
              .context_tokens = engine.options().context_tokens,
              .context_policy = engine.options().context_policy,
              .shift_keep = engine.options().shift_keep,
              .sampling = sampler.params(),
              .sampler = {steps.begin(), steps.end()},
              .choices = {},
              .rows = {}};
  receipt_.form.calls_end = from_character(receipt_.form.calls_end);
  for (const std::string& text : request.stop) {
    if (!text.empty()) receipt_.stop.push_back(text);
  }
}

Receipt ReceiptDraft::finish(FinishReason reason) && {
  receipt_.choices = choices.choices();
  receipt_.rows = choices.rows();
  receipt_.finish = reason;
  return std::move(receipt_);
}

std::optional<ReceiptDifference> difference_of(const ReceiptSources& expected,
                                               const ReceiptSources& found) {
  const std::pair<std::string_view, std::pair<std::string, std::string>> fields[] = {
      {"model", {hex_of(expected.model), hex_of(found.model)}},
      {"numerics", {std::string(name(expected.numerics)), std::string(name(found.numerics))}},
      {"isa", {expected.isa, found.isa}},
      {"keys", {std::string(name(expected.key_type)), std::string(name(found.key_type))}},
      {"values", {std::string(name(expected.value_type)), std::string(name(found.value_type))}},
      {"program", {expected.program.text(), found.program.text()}},
  };
  for (const auto& [field, both] : fields) {
    if (both.first == both.second) continue;
    return ReceiptDifference{.field = fmt::format("fingerprint.{}", field),
                             .expected = both.first,
                             .found = both.second};
  }
  const size_t count = std::max(expected.adapters.size(), found.adapters.size());
  for (size_t i = 0; i < count; ++i) {
    const bool is_in_both = i < expected.adapters.size() && i < found.adapters.size();
    if (is_in_both && is_same(expected.adapters[i], found.adapters[i])) continue;
    const auto text = [i](const std::vector<AdapterSource>& all) {
      return i < all.size() ? text_of(all[i]) : "none";
    };
    return ReceiptDifference{.field = fmt::format("fingerprint.adapters[{}]", i),
                             .expected = text(expected.adapters),
                             .found = text(found.adapters)};
  }
  return std::nullopt;
}

std::optional<ReceiptDifference> difference_of(const Receipt& expected, const Receipt& found) {
  if (auto difference = difference_of(expected.sources, found.sources)) return difference;
  const size_t count = std::max(expected.choices.size(), found.choices.size());
  for (size_t i = 0; i < count; ++i) {
    const Choice* const a = i < expected.choices.size() ? &expected.choices[i] : nullptr;
    const Choice* const b = i < found.choices.size() ? &found.choices[i] : nullptr;
    if (a != nullptr && b != nullptr && *a == *b) continue;
    if (a != nullptr && b != nullptr && a->rows != b->rows) {
      return ReceiptDifference{.field = "answer.logits",
                               .token = int32_t(i),
                               .expected = fmt::format("{:016x}", a->rows),
                               .found = fmt::format("{:016x}", b->rows)};
    }
    return ReceiptDifference{.field = "answer.token",
                             .token = int32_t(i),
                             .expected = token_text(a),
                             .found = token_text(b)};
  }
  if (expected.rows == found.rows) return std::nullopt;
  return ReceiptDifference{
      .field = "answer.digest", .expected = hex_of(expected.rows), .found = hex_of(found.rows)};
}

}  // namespace cairn::session
