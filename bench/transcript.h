// For benchmarks of drafts: recorded conversations, in the tokens of a vocabulary; and what steps
// take by their rows.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "json/value.h"
#include "tokenize/tokenizer.h"

namespace cairn::bench {

struct Turn {
  std::vector<Token> asked, answered;
  std::string schema = {};  // Of the answer; empty: it may be anything.
};

// Of a transcript (make_agent_transcript.py's, or tool_calls.json); who speaks is part of what is
// asked, as templates have it. Any other file is one answer to nothing.
inline Result<std::vector<Turn>> read_turns(const std::string& path,
                                            const tokenize::Tokenizer& tokenizer) {
  CAIRN_TRY(const std::string text, read_file(path, 64 << 20));
  if (!path.ends_with(".json")) return std::vector<Turn>{{{}, tokenizer.encode(text)}};
  CAIRN_TRY(const json::Value transcript, json::read_value(path, text, {}));
  const json::Value* const list = transcript.find("turns");
  CHECK(list != nullptr);
  std::vector<Turn> turns;
  for (const json::Value& turn : list->items()) {
    const std::string asked =
        fmt::format("\nUser: {}\nAssistant: ", turn.text_at("asked").value_or(""));
    const json::Value* const schema = turn.find("schema");
    turns.push_back(
        {.asked = tokenizer.encode(asked, {.goes_on = !turns.empty()}),
         .answered = tokenizer.encode(turn.text_at("answered").value_or(""), {.goes_on = true}),
         .schema = schema == nullptr ? std::string() : json::to_text(*schema)});
  }
  return turns;
}

// Between numbers of rows that are known, and behind the last, straight lines.
struct StepCurve {
  const char* name;
  std::vector<std::pair<double, double>> points;  // Rows, time; from one row on.

  // In parts of a step of one row.
  double at(size_t rows) const {
    size_t i = 1;
    while (i + 1 < points.size() && points[i].first < double(rows)) ++i;
    const auto [x0, y0] = points[i - 1];
    const auto [x1, y1] = points[i];
    return (y0 + (y1 - y0) * (double(rows) - x0) / (x1 - x0)) / points.front().second;
  }
};

// docs/speculation.md: Llama 1B Q4_0 on two cores of a Zen 4, milliseconds.
inline const StepCurve kLlamaCurve = {
    "Llama 1B", {{1, 17}, {4, 22}, {6, 30}, {8, 45}, {12, 62}, {16, 74}, {24, 113}}};

}  // namespace cairn::bench
