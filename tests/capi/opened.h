// For tests of cairn.h: what opens a model, an engine and conversations on it, and closes them.
#pragma once

#include <cairn.h>
#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace cairn::test {

// The built-in model as a file.
inline std::string nano_path() {
  return std::string(CAIRN_SOURCE) + "/assets/nano.gguf";
}

inline std::string golden_path(const std::string& name) {
  return std::string(CAIRN_FIXTURES) + "/golden/" + name + ".gguf";
}

// A struct of the header with its size, and zeros.
template <class Struct>
Struct sized() {
  Struct value{};
  value.struct_size = sizeof value;
  return value;
}

struct Opened {
  explicit Opened(const std::string& path,
                  cairn_engine_params params = sized<cairn_engine_params>()) {
    EXPECT_EQ(cairn_model_open(path.c_str(), &model, &error), CAIRN_OK) << error.message;
    if (params.thread_count == 0) params.thread_count = 1;
    const bool is_built_in =
        params.options_json == nullptr || std::strstr(params.options_json, "backend") == nullptr;
    if (is_built_in && params.memory_budget_bytes == 0)
      params.memory_budget_bytes = uint64_t(64) << 20;
    EXPECT_EQ(cairn_engine_open(model, &params, &engine, &error), CAIRN_OK) << error.message;
  }
  ~Opened() {
    cairn_engine_close(engine);
    cairn_model_close(model);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  cairn_conversation* conversation() {
    cairn_conversation* c = nullptr;
    EXPECT_EQ(cairn_conversation_open(engine, &c, &error), CAIRN_OK) << error.message;
    return c;
  }
  cairn_engine_facts facts() {
    cairn_engine_facts found = sized<cairn_engine_facts>();
    EXPECT_EQ(cairn_engine_get_facts(engine, &found, &error), CAIRN_OK) << error.message;
    return found;
  }
  std::vector<cairn_token> chat(const std::string& question) {
    const std::string request = R"([{"role": "user", "content": ")" + question + R"("}])";
    std::vector<cairn_token> tokens(512);
    size_t count = 0;
    EXPECT_EQ(cairn_chat_render(model, request.data(), request.size(), tokens.data(), tokens.size(),
                                &count, &error),
              CAIRN_OK)
        << error.message;
    tokens.resize(count);
    return tokens;
  }

  cairn_error error = sized<cairn_error>();
  cairn_model* model = nullptr;
  cairn_engine* engine = nullptr;
};

// Of a model without a vocabulary: any ids.
inline std::vector<cairn_token> some_tokens(size_t count, uint32_t first = 1) {
  std::vector<cairn_token> tokens;
  uint32_t value = first;
  for (size_t index = 0; index < count; ++index) {
    value = value * 1664525u + 1013904223u;
    tokens.push_back(cairn_token((value >> 16) % 50));
  }
  return tokens;
}

inline std::vector<float> logits_of(cairn_conversation* c) {
  cairn_error error = sized<cairn_error>();
  cairn_logits* row = nullptr;
  EXPECT_EQ(cairn_logits_acquire(c, &row, &error), CAIRN_OK) << error.message;
  size_t count = 0;
  const float* const data = cairn_logits_data(row, &count);
  std::vector<float> copy(data, data + count);
  cairn_logits_release(row);
  return copy;
}

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && !a.empty() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

inline void set_greedy(cairn_model* model, cairn_conversation* c, int32_t max_tokens) {
  cairn_sampling sampling = sized<cairn_sampling>();
  cairn_sampling_init(model, &sampling, sizeof sampling);
  sampling.temperature = 0;
  sampling.max_tokens = max_tokens;
  EXPECT_EQ(cairn_set_sampling(c, &sampling, nullptr), CAIRN_OK);
}

// To the answer's end.
inline std::string answer_of(cairn_conversation* c) {
  cairn_error error = sized<cairn_error>();
  cairn_event event = sized<cairn_event>();
  std::string text;
  cairn_status status = CAIRN_OK;
  for (int count = 0; count < 1000 && status == CAIRN_OK; ++count) {
    status = cairn_next(c, &event, &error);
    if (status == CAIRN_OK) text.append(event.text, event.text_bytes);
  }
  EXPECT_EQ(status, CAIRN_DONE) << error.message;
  return text;
}

}  // namespace cairn::test
