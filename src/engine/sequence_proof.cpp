// Reads the tokens again, up to each position of which something is kept.
#include "engine/sequence_proof.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "memory/archive.h"

namespace cairn {

namespace {

using memory::Archive;

class Proof {
 public:
  Proof(Engine& engine, memory::Sequence stored)
      : engine_(engine),
        stored_(std::move(stored)),
        fresh_(engine.memory().new_sequence(stored_.variant())),
        outline_(Archive::outline_of(stored_)) {}

  Result<SequenceProof> run() {
    std::vector<int32_t> stops = outline_.state_positions();
    const std::vector<int32_t> rows = outline_.hidden_positions();
    stops.insert(stops.end(), rows.begin(), rows.end());
    stops.push_back(outline_.length());
    std::ranges::sort(stops);
    for (const int32_t stop : stops) {
      CAIRN_TRY(read_to(stop));
      compare_at(stop);
    }
    compare_pages();
    CAIRN_TRY(compare_next());
    proof_.tokens = outline_.length();
    return proof_;
  }

 private:
  Status read_to(int32_t end) {
    while (fresh_.length() < end) {
      const int32_t begin = fresh_.length();
      const int32_t count = std::min(end - begin, engine_.runner().row_count_max());
      const int32_t last = count - 1;
      const StepItem item{
          .sequence = &fresh_,
          .tokens = std::span(outline_.tokens).subspan(size_t(begin), size_t(count)),
          .outputs = {&last, 1},
          .keeps_hidden = true};
      CAIRN_TRY(engine_.step({&item, 1}));
    }
    return Ok{};
  }

  void compare(DeviceBytes a, DeviceBytes b, int32_t group, const char* what, int32_t position) {
    if (!a.exists() || !b.exists()) return;
    for (const memory::BlockPart& part : block_parts(engine_.memory().layout(), group)) {
      compare_bytes({a.data + part.offset, part.bytes}, {b.data + part.offset, part.bytes}, what,
                    position);
    }
  }

  void compare_bytes(std::span<const std::byte> a, std::span<const std::byte> b, const char* what,
                     int32_t position) {
    proof_.compared_bytes += a.size();
    if (std::memcmp(a.data(), b.data(), a.size()) == 0) return;
    for (size_t i = 0; i < a.size(); ++i) proof_.differing_bytes += uint64_t(a[i] != b[i]);
    if (!proof_.first_difference.empty()) return;
    proof_.first_difference = fmt::format("{} at position {}", what, position);
  }

  void compare_at(int32_t position) {
    const memory::Layout& layout = engine_.memory().layout();
    if (layout.recurrent_group >= 0) {
      compare(Archive::state(stored_, position), Archive::state(fresh_, position),
              layout.recurrent_group, "the state", position);
    }
    compare(Archive::hidden(stored_, position), Archive::hidden(fresh_, position),
            layout.hidden_group, "the hidden row", position);
  }

  void compare_pages() {
    const memory::Layout& layout = engine_.memory().layout();
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

  Status compare_next() {
    if (outline_.length() == engine_.options().context_tokens) return Ok{};
    CAIRN_TRY(const std::vector<float> here, next_logits(stored_));
    CAIRN_TRY(const std::vector<float> there, next_logits(fresh_));
    compare_bytes(std::as_bytes(std::span(here)), std::as_bytes(std::span(there)), "the logits",
                  outline_.length());
    const int32_t group = engine_.memory().layout().recurrent_group;
    const int32_t end = stored_.length();
    if (group < 0) return Ok{};
    compare(Archive::state(stored_, end), Archive::state(fresh_, end), group,
            "the state that the log gives", end);
    return Ok{};
  }

  Result<std::vector<float>> next_logits(memory::Sequence& sequence) {
    const int32_t output = 0;
    const StepItem item{
        .sequence = &sequence, .tokens = {outline_.tokens.data(), 1}, .outputs = {&output, 1}};
    std::vector<float> logits;
    CAIRN_TRY(engine_.step({&item, 1}, [&](size_t, const StepOutputs& rows) {
      logits.assign(rows.logits(0).begin(), rows.logits(0).end());
      return 1;
    }));
    return logits;
  }

  Engine& engine_;
  memory::Sequence stored_, fresh_;
  memory::Outline outline_;
  SequenceProof proof_;
};

}  // namespace

Result<SequenceProof> prove_sequence(Engine& engine, memory::Sequence stored) {
  return Proof(engine, std::move(stored)).run();
}

}  // namespace cairn
