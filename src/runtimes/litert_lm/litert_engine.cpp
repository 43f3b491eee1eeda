// Unverified on hardware. Handles of the library, and which device takes a model.
#include "runtimes/litert_lm/litert_engine.h"

#include <utility>

#include "base/check.h"

namespace cairn::runtimes {

namespace {

constexpr std::string_view kDevices[] = {"npu", "gpu", "cpu"};
constexpr int kText = 0;  // A type of input.

}  // namespace

Result<std::unique_ptr<LiteRtEngine>> LiteRtEngine::open(const LiteRtFunctions& functions,
                                                         const std::string& path,
                                                         const RuntimeOptions& options) {
  if (!path.ends_with(".litertlm")) {
    return fail(ErrorCode::unsupported, "{}: expected a .litertlm file, found another one", path);
  }
  for (const std::string_view device : kDevices) {
    void* const settings = functions.settings_create(path.c_str(), device.data(), nullptr, nullptr);
    if (settings == nullptr) continue;
    if (options.context_tokens > 0) {
      functions.settings_set_max_tokens(settings, options.context_tokens);
    }
    if (options.thread_count > 0) functions.settings_set_threads(settings, options.thread_count);
    void* const engine = functions.engine_create(settings);
    functions.settings_delete(settings);
    if (engine == nullptr) continue;
    return std::unique_ptr<LiteRtEngine>(new LiteRtEngine(functions, engine, device));
  }
  return fail(ErrorCode::unsupported,
              "{}: expected a device that takes it, found none of npu, "
              "gpu, cpu",
              path);
}

LiteRtEngine::~LiteRtEngine() {
  functions_.engine_delete(engine_);
}

Result<std::unique_ptr<LiteRtSession>> LiteRtEngine::open_session() const {
  std::unique_ptr<LiteRtSession> made(new LiteRtSession(this));
  CAIRN_TRY(made->begin());
  return made;
}

Status LiteRtSession::begin() {
  const LiteRtFunctions& f = engine_->functions_;
  if (session_ != nullptr) f.session_delete(session_);
  session_ = f.session_create(engine_->engine_, nullptr);
  if (session_ == nullptr) return fail(ErrorCode::io, "litert-lm: cannot begin a session");
  return Ok{};
}

LiteRtSession::~LiteRtSession() {
  if (session_ != nullptr) engine_->functions_.session_delete(session_);
}

Status LiteRtSession::read(const std::string& text) {
  const LiteRtFunctions& f = engine_->functions_;
  void* const input = f.input_create(kText, text.data(), text.size());
  if (input == nullptr) return fail(ErrorCode::io, "litert-lm: cannot take a text");
  const int status = f.session_prefill(session_, &input, 1);
  f.input_delete(input);
  if (status != 0) return fail(ErrorCode::io, "litert-lm: prefill: found status {}", status);
  return Ok{};
}

Status LiteRtSession::prefill(std::string_view text) {
  CAIRN_TRY(read(std::string(text)));
  texts_.emplace_back(text);
  return Ok{};
}

Result<std::string> LiteRtSession::decode() {
  const LiteRtFunctions& f = engine_->functions_;
  void* const responses = f.session_decode(session_);
  if (responses == nullptr) return fail(ErrorCode::io, "litert-lm: no answer");
  const char* const text =
      f.responses_count(responses) > 0 ? f.responses_text(responses, 0) : nullptr;
  std::string answer = text == nullptr ? "" : text;
  f.responses_delete(responses);
  texts_.push_back(answer);
  return answer;
}

Status LiteRtSession::rewind(size_t text_count) {
  CHECK(text_count <= texts_.size());
  std::vector<std::string> kept(texts_.begin(), texts_.begin() + std::ptrdiff_t(text_count));
  texts_.clear();
  CAIRN_TRY(begin());
  for (std::string& text : kept) {
    CAIRN_TRY(read(text));
    texts_.push_back(std::move(text));
  }
  return Ok{};
}

void LiteRtSession::cancel() {
  engine_->functions_.session_cancel(session_);
}

}  // namespace cairn::runtimes
