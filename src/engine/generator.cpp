// Steps of one lane, until it wants no more.
#include "engine/generator.h"

namespace cairn {

Result<PromptReport> Generator::read(std::span<const Token> prompt, const ReadOptions& options) {
  CAIRN_TRY(PromptReport report, start(prompt, options.message_starts));
  while (wants_rows()) {
    CAIRN_TRY(batch_.step(*this));
    const int32_t done = sequence().length();
    if (options.on_progress && !options.on_progress(done, report.prompt_tokens)) {
      return fail(ErrorCode::cancelled, "prompt: stopped after {} of {} tokens", done,
                  report.prompt_tokens);
    }
  }
  return report;
}

Status Generator::advance(Token token) {
  CAIRN_TRY(push(token));
  while (wants_rows()) CAIRN_TRY(batch_.step(*this));
  return Ok{};
}

}  // namespace cairn
