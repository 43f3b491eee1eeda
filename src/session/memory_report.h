// What an engine's memory holds, for people who look at it: groups of layers, sequences in use and
// kept ones, where their blocks lie, and what all of it is of the process. Positions and sizes
// alone: no text, no tokens. Bounded, whatever is in memory. Thread rule: reports are values; they
// are made on the engine's thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "engine/engine.h"
#include "engine/schedule/scheduler.h"
#include "memory/sequence_map.h"

namespace cairn::session {

// Layers that keep the same kind of state; rows of the last hidden state, and the log, have none.
struct GroupReport {
  std::string_view kind;    // "full", "window" …
  int32_t window = 0;       // In tokens, of windows and chunks.
  int32_t page_tokens = 0;  // 0: of states and rows.
  size_t block_bytes = 0;
  std::vector<int32_t> layers;
};

struct SequenceReport {
  std::string id;  // The same as long as it is in memory: "answer-" or "kept-" and 16 hex digits.
  std::string_view use;  // "reading", "answering", "kept" or "pinned"
  int32_t length = 0;    // In tokens.
  int32_t common = 0;    // Tokens in which it begins as the one before it does.
  struct Mark {
    int32_t position = 0;
    std::string_view kind;  // Of the anchor: "prompt_end" …

    bool operator==(const Mark&) const = default;
  };
  std::vector<Mark> marks;               // Ascending: where one can always go back to.
  std::vector<memory::GroupMap> groups;  // In the order of the report's groups.
  bool is_stored = false;                // The disk has all of it.
  // What the disk has of it, by group as well; none: nothing.
  std::vector<std::vector<store::PositionRun>> stored;
};

// In bytes. `rest` is what is resident and nothing else says: code, tokenizers, buffers; negative
// where more is counted than was touched by now.
struct ProcessReport {
  size_t resident = 0;
  size_t files = 0;          // Resident pages of files: weights that are mapped, the program.
  size_t weights = 0;        // Packed ones beside those.
  size_t steps = 0;          // Rows that are being computed, and the recorded ops.
  size_t conversations = 0;  // Used blocks and free ones that are kept ready.
  int64_t rest = 0;
};

struct MemoryReport {
  // Of one tenant alone: its sequences and what is known of the model; what says something of
  // others, up to `store`, is empty.
  bool is_partial = false;
  ProcessReport process;
  memory::Usage usage;
  SchedulerStats scheduler;
  std::optional<store::StoreStats> store;  // None: there is none.
  std::vector<GroupReport> groups;
  // In the order of their tokens, so that those which begin alike are neighbours.
  std::vector<SequenceReport> sequences;
  int32_t left_out = 0;  // Kept ones that were used least recently, beyond kSequencesMax.
};

// What reading a prompt would cost now, and the kept sequence that it would go on from, if any;
// what the store has of it is told apart. `wants_logits` false: a prompt that more tokens will
// follow. Changes nothing. Thread rule: the engine's thread.
struct PricedPrompt {
  memory::ResumePlan plan;  // Of what memory has of it; forward_tokens: of all of it.
  std::string sequence;     // Its id in reports.
  store::StoredPart stored;
};
PricedPrompt price(Engine& engine, std::span<const Token> prompt, uint64_t tenant = 0,
                   bool wants_logits = true);

class MemoryReporter {
 public:
  static constexpr size_t kSequencesMax = 32;
  static constexpr size_t kRunsMax = 512;   // Of a sequence in a group.
  static constexpr size_t kMarksMax = 256;  // Of a sequence: the last ones.

  // Both outlive it.
  MemoryReporter(Engine* engine, const Scheduler* scheduler)
      : engine_(engine), scheduler_(scheduler) {}

  // Of this tenant alone; none: of all.
  MemoryReport make(std::optional<uint64_t> tenant = std::nullopt);

 private:
  struct Listed {
    SequenceReport report;
    const memory::Sequence* sequence;
  };
  std::vector<Listed> list(std::optional<uint64_t> tenant, int32_t& left_out) const;
  void look_in_store(std::vector<Listed>& listed);

  Engine* engine_;
  const Scheduler* scheduler_;
  // What the store had of a sequence when it was asked last, and what it had seen change by then.
  struct Stored {
    int32_t length = 0;
    uint64_t changes = 0;
    store::StoredPart part;
  };
  std::map<std::string, Stored> stored_;
};

}  // namespace cairn::session
