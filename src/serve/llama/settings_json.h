// The settings of an answer as llama.cpp's server tells them. Thread-safe: pure.
#pragma once

#include "json/value.h"
#include "serve/answer_settings.h"

namespace cairn::serve::llama {

json::Value settings_json(const AnswerSettings& settings);

}  // namespace cairn::serve::llama
