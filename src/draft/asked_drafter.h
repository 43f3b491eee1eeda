// A drafter that is not trusted: what it proposes is checked before anybody uses it, its chances
// are replaced by how often it was right, and who breaks the rules three times is not asked again.
// Knows neither steps nor what they cost. Thread rule: the engine's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "draft/calibration.h"
#include "draft/draft.h"

namespace cairn::draft {

class AskedDrafter {
 public:
  // `shared`: how right such drafters were in all sequences; may be null.
  AskedDrafter(std::unique_ptr<Drafter> drafter, Calibration* shared);

  std::string_view name() const { return drafter_->name(); }
  // Why it is not asked any more; empty: it is.
  std::string_view off_reason() const {
    return off_reason_.empty() ? drafter_->off_reason() : off_reason_;
  }
  bool is_costly() const { return drafter_->is_costly(); }
  // The first time it also sets itself up.
  bool is_reading() const { return ask_count_ <= 1 || drafter_->is_reading(); }

  // Has it propose something in place of its last draft. A token that cannot be, and all after it,
  // are dropped.
  void ask(const View& view, int32_t vocabulary_count);
  // It took longer than it may: nothing is proposed.
  void drop_late();
  // No draft, without being asked.
  void skip() { current_.drop(); }

  std::span<const Token> tokens() const { return current_.draft.tokens; }
  // How likely the token is right where those before it are.
  float chance(int32_t depth) const;

  // Compares what it proposed with what the text is now, whether it was checked or not.
  void follow(std::span<const Token> text);
  // Reports what became of the first `count` tokens of its draft, once that is known; then of the
  // next as many, to its end. Of drafts that are to be watched while another one is, none.
  void watch(int32_t count);
  // So many of them the text became; -1: not known yet, or asked for already.
  struct Watched {
    int32_t count = 0;
    int32_t right = -1;
  };
  Watched take_watched();

  void take(const Verdict& verdict) { drafter_->take(verdict); }

 private:
  // A draft, from where in the text it starts, and how far it was compared.
  struct Followed {
    Draft draft;
    size_t begin = 0;
    size_t compared = 0;
    bool is_open = false;  // All compared tokens are right, and there are more.
    int32_t watch_count = 0;  // Of the tokens that are reported together; 0: none are.
    int32_t watch_right = 0;  // So many of them were right so far.

    void drop() {
      draft.clear();
      is_open = false;
      watch_count = watch_right = 0;
    }
  };
  void add_fault(std::string_view reason);
  void compare(Followed& followed, std::span<const Token> text);
  void report_watched(Followed& followed, bool is_right);
  float expected(int32_t depth, float claimed) const;

  std::unique_ptr<Drafter> drafter_;
  Calibration* shared_;
  Calibration own_{Calibration::kSequence};
  Followed current_;
  Followed earlier_;  // One draft before it whose end is not known yet.
  Watched watched_;
  // The text when it was last compared: what is shorter or other now was rewound.
  size_t text_size_ = 0;
  Token last_token_ = Token(0);
  int32_t ask_count_ = 0;
  int32_t fault_count_ = 0;
  std::string_view off_reason_;
};

}  // namespace cairn::draft
