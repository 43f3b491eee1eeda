// Any bytes as the body of a request: the first byte chooses the endpoint. What passes the table of
// fields is read as a conversation, by each API's reader; all refusals are good, and short.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "chat/format.h"
#include "serve/anthropic/messages_request.h"
#include "serve/fields.h"
#include "serve/ollama/chat_request.h"
#include "serve/openai/chat_request.h"
#include "serve/openai/responses_request.h"

using namespace cairn::serve;

namespace {

constexpr size_t kMessageBytesMax = 4096;  // More is cut off before it is sent.

template <class T>
void check(const Checked<T>& result) {
  if (result) return;
  const int status = result.error().status;
  CHECK((status >= 400 && status < 500) || status == 501);
  CHECK(!result.error().message.empty());
  CHECK(refusal_json(result.error()).size() < kMessageBytesMax);
}

void read(const Body& body) {
  switch (body.endpoint()) {
    case kChat:
    case kSessionAnswer:
    case kSessionMessages: {
      check(openai::read_chat_request(body, true));
      check(openai::read_messages(body, false));
      ChatRequest form;
      check(openai::read_chat_form(body, form));
      break;
    }
    case kOllamaChat:
      check(ollama::read_chat_request(body, {}));
      check(body.part("options", kOllamaOptions));
      break;
    case kOllamaGenerate:
      check(ollama::read_generate_request(body));
      break;
    case kMessages:
    case kCountTokens:
      check(anthropic::read_messages_request(body));
      break;
    case kResponses:
      check(openai::read_responses_request(body, {}, true));
      check(openai::read_text_form(body));
      break;
    default:
      break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr int kEndpointCount = std::bit_width(uint32_t(kVectors));
  const auto endpoint = Endpoint(1u << (data[0] % kEndpointCount));
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  Checked<Body> body = Body::read(text, endpoint);
  check(body);
  if (body) read(*body);
  return 0;
}
