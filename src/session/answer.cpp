// Names of what ends an answer.
#include "session/answer.h"

namespace cairn::session {

std::string_view name(FinishReason reason) {
  switch (reason) {
    case FinishReason::stop:
      return "stop";
    case FinishReason::tool_calls:
      return "tool_calls";
    case FinishReason::length:
      return "length";
    case FinishReason::context:
      return "context";
    case FinishReason::memory:
      return "memory";
    case FinishReason::interrupted:
      return "interrupted";
  }
  return "";
}

}  // namespace cairn::session
