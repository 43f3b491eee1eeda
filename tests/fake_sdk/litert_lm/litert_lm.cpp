// A library with the functions of LiteRT-LM that are used, over a toy: an answer is a number made
// of all that the session has read. Which devices take a model stands in its path: "npu", "gpu".
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>

namespace {

struct Settings {
  std::string path, backend;
};
struct Session {
  std::string read;
  bool is_cancelled = false;
};

int live_count = 0;

}  // namespace

extern "C" {

int fake_litert_live_count() {
  return live_count;
}

void* litert_lm_engine_settings_create(const char* path, const char* backend, const char*,
                                       const char*) {
  ++live_count;
  return new Settings{path, backend};
}
void litert_lm_engine_settings_delete(void* settings) {
  --live_count;
  delete static_cast<Settings*>(settings);
}
void litert_lm_engine_settings_set_max_num_tokens(void*, int) {}
void litert_lm_engine_settings_set_num_threads(void*, int) {}
void* litert_lm_engine_create(const void* settings) {
  const auto& wanted = *static_cast<const Settings*>(settings);
  const bool is_cpu = wanted.backend == "cpu" && wanted.path.find("nothing") == std::string::npos;
  if (!is_cpu && wanted.path.find(wanted.backend) == std::string::npos) return nullptr;
  ++live_count;
  return new Settings(wanted);
}
void litert_lm_engine_delete(void* engine) {
  --live_count;
  delete static_cast<Settings*>(engine);
}
void* litert_lm_engine_create_session(void*, void*) {
  ++live_count;
  return new Session;
}
void litert_lm_session_delete(void* session) {
  --live_count;
  delete static_cast<Session*>(session);
}
void litert_lm_session_cancel_process(void* session) {
  static_cast<Session*>(session)->is_cancelled = true;
}
int litert_lm_session_run_prefill(void* session, const void* const* inputs, size_t count) {
  for (size_t index = 0; index < count; ++index) {
    const auto& text = *static_cast<const std::string*>(inputs[index]);
    if (text == "fail") return 13;
    static_cast<Session*>(session)->read += text + "|";
  }
  return 0;
}
void* litert_lm_session_run_decode(void* session) {
  auto& reader = *static_cast<Session*>(session);
  if (reader.is_cancelled) return nullptr;
  ++live_count;
  auto* answer = new std::string(std::to_string(std::hash<std::string>()(reader.read)));
  reader.read += *answer + "|";
  return answer;
}
void* litert_lm_input_data_create(int type, const void* data, size_t bytes) {
  if (type != 0) return nullptr;
  ++live_count;
  return new std::string(static_cast<const char*>(data), bytes);
}
void litert_lm_input_data_delete(void* input) {
  --live_count;
  delete static_cast<std::string*>(input);
}
int litert_lm_responses_get_num_candidates(const void*) {
  return 1;
}
const char* litert_lm_responses_get_response_text_at(const void* responses, int) {
  return static_cast<const std::string*>(responses)->c_str();
}
void litert_lm_responses_delete(void* responses) {
  --live_count;
  delete static_cast<std::string*>(responses);
}
}
