// What passes a router: bodies of requests, replies in pieces that the first bytes choose, lists of
// nodes. A prompt's keys lie one behind the other and begin with those of its beginning; what a
// reply tells does not depend on how it is cut.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "route/fleet.h"
#include "route/prompt_keys.h"
#include "route/reply_figures.h"

namespace route = cairn::route;
namespace http = cairn::serve::http;

namespace {

constexpr std::string_view kPaths[] = {"/v1/chat/completions",
                                       "/v1/completions",
                                       "/v1/messages",
                                       "/v1/responses",
                                       "/api/chat",
                                       "/completion",
                                       "/v1/sessions",
                                       "/v1/sessions/a/messages"};

void read_prompt(uint8_t choice, std::string_view body) {
  http::RequestHead head;
  head.method = http::Method::post;
  head.path = kPaths[choice % std::size(kPaths)];
  if (choice >= 128) head.headers.push_back({"x-cairn-affinity", "a"});
  const route::PromptKeys keys = route::prompt_keys(head, body);
  size_t end = 0;
  for (const route::PromptKeys::Prefix& prefix : keys.prefixes) {
    CHECK(prefix.end >= end);
    end = prefix.end;
  }
  CHECK(keys.bytes() == end);
  CHECK(keys.prefixes.size() <= body.size() + 1);
  (void)route::makes_owned(head, body);
}

void read_reply(size_t piece, std::string_view reply) {
  route::ReplyReader whole, pieces;
  whole.add(reply);
  for (std::string_view rest = reply; !rest.empty();) {
    const std::string_view part = rest.substr(0, piece);
    pieces.add(part);
    rest.remove_prefix(part.size());
  }
  const auto told = whole.figures(), again = pieces.figures();
  CHECK(told.has_value() == again.has_value());
  CHECK(whole.begin() == pieces.begin());
  CHECK(route::first_id(reply).size() <= reply.size());
  if (!told) return;
  CHECK(told->reused_tokens == again->reused_tokens);
  CHECK(told->computed_tokens == again->computed_tokens);
}

void read_nodes(std::string_view text) {
  auto nodes = route::parse_nodes("nodes", text);
  if (!nodes) {
    CHECK(!nodes.error().message.empty());
    return;
  }
  for (const route::ListedNode& node : *nodes) CHECK(!route::name_of(node.url).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
  switch (data[0] % 4) {
    case 0:
      read_nodes(text);
      break;
    case 1:
      read_reply(size_t(data[1]) + 1, text);
      break;
    default:
      read_prompt(data[1], text);
  }
  return 0;
}
