// Pieces, and what goes between them.
#include "terminal_chat/answer_printer.h"

#include "terminal/interrupt.h"

namespace cairn::terminal_chat {

AnswerPrinter::AnswerPrinter(terminal::TextOut* out, bool is_silent)
    : out_(out),
      is_silent_(is_silent),
      shows_reasoning_(terminal::is_terminal(stdout) && !is_silent) {
  progress_.emplace("reading", terminal::Progress::Unit::tokens);
}

session::AnswerHooks AnswerPrinter::hooks() {
  return {
      .on_text = [this](std::string_view piece) { text(piece); },
      .on_other =
          [this](const chat::OutputEvent& event) {
            progress_.reset();
            if (event.kind == chat::OutputEvent::Kind::reasoning) reasoning(event.text);
          },
      .on_prompt =
          [this](int32_t done, int32_t total) {
            if (progress_) progress_->update(uint64_t(done), uint64_t(total));
          },
      .wants_stop = [] { return terminal::interrupted(); },
  };
}

void AnswerPrinter::text(std::string_view piece) {
  progress_.reset();
  if (is_silent_) return;
  end_reasoning();
  out_->write(piece);
  is_at_line_start_ = piece.ends_with('\n');
}

void AnswerPrinter::reasoning(std::string_view piece) {
  if (!shows_reasoning_) return;
  if (!is_reasoning_) out_->style(terminal::kDim);
  is_reasoning_ = true;
  out_->write(piece);
  is_at_line_start_ = piece.ends_with('\n');
}

void AnswerPrinter::end_reasoning() {
  if (!is_reasoning_) return;
  is_reasoning_ = false;
  out_->style(terminal::kNormal);
  out_->write(is_at_line_start_ ? "\n" : "\n\n");
  is_at_line_start_ = true;
}

void AnswerPrinter::finish() {
  progress_.reset();
  end_reasoning();
  if (!is_at_line_start_) out_->write("\n");
  is_at_line_start_ = true;
}

std::string call_line(const chat::ToolCall& call) {
  return call.name + "(" + call.arguments + ")";
}

}  // namespace cairn::terminal_chat
