// What is said about an answer besides its text: a line for people, an object for programs.
// Thread-safe: pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/lane.h"
#include "gguf/gguf.h"
#include "memory/memory.h"
#include "sample/params.h"
#include "session/answer.h"
#include "tokenize/tokenizer.h"

namespace cairn::terminal_chat {

// What is shown of them after each answer.
enum class Figures : uint8_t { none, brief, all };

struct AnswerContext {
  std::string_view model;
  std::string_view architecture;
  sample::SamplingParams sampling;
  memory::Usage memory;
  int32_t used_tokens = 0, free_tokens = 0;     // Of the context.
  std::optional<ContextShift> next_shift = {};  // When the free ones are used.
};

struct ContextUse {
  int32_t used_tokens = 0;
  int32_t free_tokens = -1;   // Negative: nothing is said of the context.
  uint64_t weight_bytes = 0;  // Of the model's file; 0: nothing is said of them.
};

// "9 tokens · 41/s · 58 reused · 1.0 MiB": at most 80 columns.
std::string brief_line(const session::Answer& answer, const memory::Usage& usage);

// "12 tokens, 85 a second; prompt of 31 tokens, 20 reused, 410 a second; first token after 0.08 s;
// context 43 of 4096; memory 1.2 MiB of 12 GiB (keys and values 1.0 MiB, states 0.2 MiB), weights
// 340 MiB".
std::string statistics_line(const session::Answer& answer, const memory::Usage& usage,
                            const ContextUse& context = {});

// "the answer was cut off: 20 tokens, as many as were asked for"; empty where it is whole.
std::string cut_line(const session::Answer& answer);

// "leaving out 3 turns (212 tokens), reading 96 tokens again".
std::string shift_line(const ContextShift& shift);

// Of all tensors in the model's file.
uint64_t weight_bytes(const gguf::File& file);

// "1365 tokens stay, 12 to compute, 24 recurrence steps (why not more)".
std::string plan_line(const memory::ResumePlan& plan);

// "1.2 MiB of 12 GiB (keys and values 1.0 MiB, states 0.2 MiB)": kinds that there are none of are
// left out. States are those of recurrences, logs what older ones are derived from, rows what lets
// an answer be made again without reading a token.
std::string memory_line(const memory::Usage& usage);
// What a folder of stored conversations has, and how often it helped.
std::string store_line(const SequenceStore& store);

// One JSON object; bytes that are not UTF-8 become U+FFFD in it.
std::string answer_json(const session::Answer& answer, const AnswerContext& context,
                        const tokenize::Tokenizer& tokenizer);

}  // namespace cairn::terminal_chat
