// The request for an answer, and the answer. Knows neither terminals nor conversations.
// Thread-safe: values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/conversation.h"
#include "chat/format.h"
#include "chat/tools.h"
#include "draft/speculator.h"
#include "engine/lane.h"
#include "grammar/matcher.h"
#include "sample/sampler.h"
#include "sample/state.h"
#include "session/prompt_probabilities.h"

namespace cairn::session {

class ChoiceLog;
struct Receipt;

enum class FinishReason {
  stop,         // The model ended its answer, or a stop text did.
  tool_calls,   // It ended with calls that want results.
  length,       // As many tokens as were asked for.
  context,      // The context is full.
  memory,       // The memory budget is full.
  interrupted,  // The caller stopped it.
};

std::string_view name(FinishReason reason);

// The spans need to live until the answer is begun; what the pointers lead to, until its end.
struct AnswerRequest {
  std::span<const Token> prompt;            // Not empty.
  std::span<const int32_t> message_starts;  // Tokens before each user message; may be empty.
  // The beginning of the answer, where an answer is continued: the last tokens of the prompt.
  std::span<const Token> answer_prefix;
  int32_t token_count_max = -1;  // Negative: as many as the model likes.
  // What the answer must look like, its prefix included, but for its reasoning; null: anything.
  grammar::Matcher* matcher = nullptr;
  bool constrains_calls = false;  // The matcher knows how the model writes calls and headers.
  // How the model writes calls and reasoning; null: all is text.
  const chat::ChatFormat* format = nullptr;
  std::span<const chat::Tool> tools = {};  // What it may call; none: calls are text.
  std::span<const std::string> stop = {};  // Texts that end the answer.
  std::string_view prompt_end = {};        // The prompt's last bytes.
  int32_t reasoning_tokens_max = -1;       // Then its end is forced; negative: never.
  ChoiceLog* choices = nullptr;            // Takes down what each token is chosen from.
};

struct Answer {
  std::string text;  // Without its prefix, reasoning and calls.
  std::vector<Token> tokens;
  chat::Message message;         // All of it, with its prefix.
  int32_t reasoning_tokens = 0;  // Of the tokens.
  // One for each token, where the sampler's parameters ask for them, but for those whose text
  // begins with or behind the stop text.
  std::vector<sample::LogProbabilities> probabilities;
  // Likewise of the token that ended it, which is none of its tokens; none where none did.
  std::optional<sample::LogProbabilities> end_probabilities;
  // Null where the order did not ask for them.
  std::shared_ptr<const PromptProbabilities> prompt_probabilities;
  PromptReport prompt;
  int32_t pinned_tokens = 0;    // Of the prompt's beginning, that stay in memory as was asked for.
  int32_t left_out_tokens = 0;  // Because the context was full: of the prompt, and meanwhile.
  int32_t left_out_turns = 0;   // Whole turns among them.
  FinishReason finish = FinishReason::stop;
  std::string stop_text;      // The stop text that ended it; empty: none did.
  std::string cut_by;         // By what limit the model was cut off, for people; empty: by none.
  bool fits_form = true;      // It looks like what the request's matcher describes, to its end.
  double prompt_seconds = 0;  // Until the whole prompt was read.
  double first_token_seconds = 0;       // Until the first token was chosen; 0 if there was none.
  double generation_seconds = 0;        // From then on to the end.
  std::optional<draft::Report> drafts;  // None where nothing was to be drafted.
  std::string program;                  // models::Program::text(); empty of the model itself.
  sample::SamplerState sampler;         // What its stages remember, for going on with the answer.
  std::shared_ptr<const Receipt> receipt;  // Where the order asked for one.
};

}  // namespace cairn::session
