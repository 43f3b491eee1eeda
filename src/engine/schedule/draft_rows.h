// Which drafts a step checks: asks the answers for theirs, and takes as many rows as are worth what
// they cost, by what steps have cost so far. Not thread-safe: the engine's thread owns it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/drafted_answer.h"

namespace cairn {

// The sequences that a step goes on with.
struct DecodeLoad {
  int32_t sequences = 0;
  int64_t positions = 0;  // Of all their texts.
};

// What steps without rows of prompts take, by the number of sequences and rows, and by how long the
// texts are, since rows of long ones attend to more. A machine may hold steps up, for many times as
// long as they take: so averages say little, and of the last four steps of as many rows the second
// quickest counts. Behind a text that grows all steps take longer, those of more rows the more so,
// and most numbers of rows are seldom tried: what a step takes more or less than its like did moves
// all others by a part of that. Where the memory becomes faster, because others leave it alone,
// that shows in the steps without drafts first, and is believed of all others too. What was not
// tried for long is forgotten: rows that were dear while others used the machine would never be
// tried again.
class DecodeTime {
 public:
  void learn(const DecodeLoad& load, int32_t rows, double seconds);
  // 0: no step of such a load without drafts is known, or these are more than twice as many rows as
  // any that are. A number of rows that is not known lies on a line between two that are; the first
  // one above a known one may be cheaper than rows are on average, and so is tried. Above all of
  // them rows are as dear as they are on average. Of texts of a length of which nothing is known
  // yet, what is known of shorter ones.
  double seconds(const DecodeLoad& load, int32_t rows) const;

 private:
  static constexpr size_t kDraftedMax = 64;    // Rows beside those of the sequences.
  static constexpr size_t kSequenceSizes = 7;  // Powers of two.
  static constexpr size_t kLengths = 8;        // Likewise, the first one of all short texts.

  struct Entry {
    static constexpr size_t kLast = 4;
    std::array<double, kLast> last = {};  // The newest steps' seconds, in a ring.
    size_t count = 0;                     // Of all steps that told.
    int64_t learned_at = 0;
    double plain = 0;  // What a step without drafts took when the newest one was learned.

    double seconds() const;  // The second quickest; 0: not known.
    double median() const;   // REQUIRES: some are known.
    // Where a step without drafts takes so long now: as much longer than that, if that is less.
    double seconds(double plain_now) const;
    bool is_sure() const { return count + 1 >= kLast; }
    std::array<double, kLast> sorted() const;
  };
  struct Table {
    std::array<Entry, kDraftedMax + 1> drafted;  // The first one: without drafts.
    // What follows from all of them: the seconds of a number of rows; 0: not known.
    std::array<double, kDraftedMax + 1> known = {};
    int64_t step_count = 0;

    void learn(size_t drafts, double seconds);
    void follow(size_t drafts, double expected, double seconds);
  };
  static size_t table_of(const DecodeLoad& load);  // An index.
  // The load's own; or, where there is none, that of the next shorter texts; or null.
  const Table* known_table(const DecodeLoad& load) const;

  // [sequences][length]; null: nothing is known.
  std::array<std::unique_ptr<Table>, kSequenceSizes * kLengths> tables_;
};

class DraftRows {
 public:
  // `checks_all`: whatever they are worth.
  explicit DraftRows(bool checks_all = false) : checks_all_(checks_all) {}

  // Sequences that go on with an answer, for the step that is being chosen: of an answer without
  // drafts null. `row_count_max`: of them all; `length`: of the sequence's text.
  void begin(int32_t row_count_max);
  void add(DraftedAnswer* answer, int32_t length);
  // Has the answers check theirs; rows(i) are those of sequence i then, drafts included.
  void choose();
  int32_t rows(size_t sequence) const { return counts_[sequence] + 1; }

  int32_t draft_count() const { return draft_count_; }  // Those that are checked.

  // The step was made, with all these rows and no others, and before them so many steps of the
  // recurrence, which brought states back.
  void learn(double seconds, int32_t replayed_rows);
  // It was not: nobody learns of it.
  void forget() { begin(0); }

 private:
  void take_all(int32_t row_count);

  bool checks_all_;
  int32_t row_count_max_ = 0;
  std::vector<DraftedAnswer*> answers_;
  std::vector<std::span<const float>> reach_;
  std::vector<int32_t> counts_;
  DecodeLoad load_;
  int32_t draft_count_ = 0;
  DecodeTime time_;
};

}  // namespace cairn
