// What all requests for answers have in common, whatever they call it: how tokens are sampled, how
// long answers are, what they look like. Thread-safe: pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sample/params.h"
#include "serve/fields.h"
#include "serve/served_model.h"
#include "session/constraint.h"
#include "session/drafts/drafting.h"

namespace cairn::serve {

struct AnswerSettings {
  sample::SamplingParams sampling;
  int32_t token_count_max = -1;
  int32_t answer_count = 1;  // To each prompt.
  int32_t top_count = 0;     // Of the likeliest tokens, how many are told beside each token.
  bool tells_probabilities = false;
  std::vector<std::string> stop;
  session::ConstraintChoice constraint;
  session::DraftOrder drafts;
  bool is_stream = false;
  bool tells_usage = false;  // At the end of a stream.
};

// What the body does not say is the model's.
Checked<AnswerSettings> read_answer_settings(const Body& body, const ServedModel& model);

// How many likeliest tokens are told, where that is said beside other settings.
Checked<Ok> read_probabilities(const Body& body, AnswerSettings& settings);

}  // namespace cairn::serve
