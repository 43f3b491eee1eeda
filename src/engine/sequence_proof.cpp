// Reads the tokens again, up to each position of which something is kept.
#include "engine/sequence_proof.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "memory/archive.h"

namespace cairn {

using memory::Archive;

SequenceProver::SequenceProver(Engine* engine, memory::Sequence stored)
    : engine_(engine),
      stored_(std::move(stored)),
      fresh_(engine->memory().new_sequence(stored_.variant())),
      outline_(Archive::outline_of(stored_)),
      stops_(outline_.state_positions()) {
  const std::vector<int32_t> rows = outline_.hidden_positions();
  stops_.insert(stops_.end(), rows.begin(), rows.end());
  stops_.push_back(outline_.length());
  std::ranges::sort(stops_);
}

Status SequenceProver::advance(int32_t row_count_max) {
  CHECK(!is_done_);
  if (next_stop_ < stops_.size()) {
    if (fresh_.length() < stops_[next_stop_]) CAIRN_TRY(read_rows(row_count_max));
    for (; next_stop_ < stops_.size() && stops_[next_stop_] == fresh_.length(); ++next_stop_) {
      compare_at(stops_[next_stop_]);
    }
    return Ok{};
  }
  compare_pages();
  CAIRN_TRY(compare_next());
  proof_.tokens = outline_.length();
  is_done_ = true;
  return Ok{};
}

Status SequenceProver::read_rows(int32_t row_count_max) {
  const int32_t begin = fresh_.length();
  const int32_t count =
      std::min({stops_[next_stop_] - begin, row_count_max, engine_->runner().row_count_max()});
  const int32_t last = count - 1;
  const StepItem item{.sequence = &fresh_,
                      .tokens = std::span(outline_.tokens).subspan(size_t(begin), size_t(count)),
                      .outputs = {&last, 1},
                      .keeps_hidden = true};
  CAIRN_TRY(engine_->step({&item, 1}));
  return Ok{};
}

void SequenceProver::compare(DeviceBytes a, DeviceBytes b, int32_t group, const char* what,
                             int32_t position) {
  if (!a.exists() || !b.exists()) return;
  const memory::Layout& layout = engine_->memory().layout();
  // A page holds what comes behind its position, all else what comes before.
  const bool is_page = layout.groups[size_t(group)].has_pages();
  for (const memory::BlockPart& part : block_parts(layout, group)) {
    compare_bytes({a.data + part.offset, part.bytes}, {b.data + part.offset, part.bytes}, what,
                  position, is_page ? position : position - 1);
  }
}

void SequenceProver::compare_bytes(std::span<const std::byte> a, std::span<const std::byte> b,
                                   const char* what, int32_t position, int32_t first_position) {
  proof_.compared_bytes += a.size();
  if (std::memcmp(a.data(), b.data(), a.size()) == 0) return;
  for (size_t i = 0; i < a.size(); ++i) proof_.differing_bytes += uint64_t(a[i] != b[i]);
  const bool is_first = proof_.first_difference.empty();
  if (is_first) proof_.first_difference = fmt::format("{} at position {}", what, position);
  if (is_first || first_position < proof_.first_position) proof_.first_position = first_position;
}

void SequenceProver::compare_at(int32_t position) {
  const memory::Layout& layout = engine_->memory().layout();
  if (layout.recurrent_group >= 0) {
    compare(Archive::state(stored_, position), Archive::state(fresh_, position),
            layout.recurrent_group, "the state", position);
  }
  compare(Archive::hidden(stored_, position), Archive::hidden(fresh_, position),
          layout.hidden_group, "the hidden row", position);
}

void SequenceProver::compare_pages() {
  const memory::Layout& layout = engine_->memory().layout();
  for (int32_t group = 0; group < int32_t(layout.groups.size()); ++group) {
    const memory::GroupSpec& spec = layout.groups[size_t(group)];
    if (!spec.has_pages() || group == layout.log_group) continue;
    const int32_t whole_pages = outline_.length() / spec.page_tokens();
    for (int32_t page = 0; page < whole_pages; ++page) {
      compare(Archive::page(stored_, group, page), Archive::page(fresh_, group, page), group,
              "a page", page * spec.page_tokens());
    }
  }
}

Status SequenceProver::compare_next() {
  if (outline_.length() == engine_->options().context_tokens) return Ok{};
  CAIRN_TRY(const std::vector<float> here, next_logits(stored_));
  CAIRN_TRY(const std::vector<float> there, next_logits(fresh_));
  const int32_t end = outline_.length();
  compare_bytes(std::as_bytes(std::span(here)), std::as_bytes(std::span(there)), "the logits", end,
                end - 1);
  const int32_t group = engine_->memory().layout().recurrent_group;
  if (group < 0) return Ok{};
  compare(Archive::state(stored_, end + 1), Archive::state(fresh_, end + 1), group,
          "the state that the log gives", end);
  return Ok{};
}

Result<std::vector<float>> SequenceProver::next_logits(memory::Sequence& sequence) {
  const int32_t output = 0;
  const StepItem item{
      .sequence = &sequence, .tokens = {outline_.tokens.data(), 1}, .outputs = {&output, 1}};
  std::vector<float> logits;
  CAIRN_TRY(engine_->step({&item, 1}, [&](size_t, const StepOutputs& rows) {
    logits.assign(rows.logits(0).begin(), rows.logits(0).end());
    return 1;
  }));
  return logits;
}

Result<SequenceProof> prove_sequence(Engine& engine, memory::Sequence stored) {
  SequenceProver prover(&engine, std::move(stored));
  while (!prover.is_done()) CAIRN_TRY(prover.advance(engine.runner().row_count_max()));
  return prover.proof();
}

}  // namespace cairn
