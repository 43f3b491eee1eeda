// Sampling as the header has it, and as the library has it. Thread-safe: pure.
#pragma once

#include <cairn.h>

#include <memory>

#include "base/result.h"
#include "capi/answer_maker.h"
#include "capi/objects.h"

namespace cairn::capi {

// What the model's file suggests, over what is usual. Errors: those of
// session::effective_sampling().
Result<cairn_sampling> suggested_sampling(const ModelObject& model);

// Errors: invalid_argument and invalid_data, naming the member.
Result<std::shared_ptr<const AnswerTerms>> terms_of(const cairn_sampling& sampling,
                                                    EngineObject& engine);

}  // namespace cairn::capi
