// A body is read as JSON, and its parts in the order in which models read them.
#include "route/prompt_keys.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/sha256.h"
#include "json/value.h"

namespace cairn::route {

namespace {

using serve::http::RequestHead;

// Members that come before the messages in what a model reads, and those with messages or texts, of
// which a request has one.
constexpr std::string_view kFirstMembers[] = {"tools", "functions", "system", "instructions"};
constexpr std::string_view kTextMembers[] = {"messages", "input", "prompt", "content"};
// Paths of things that one node alone has: their name is the next part.
constexpr std::string_view kOwnedPaths[] = {"/v1/sessions/", "/v1/responses/", "/v1/receipts/"};
constexpr size_t kNameBytesMax = 128;

uint64_t number_of(const Sha256Digest& digest) {
  uint64_t number = 0;
  std::memcpy(&number, digest.data(), sizeof(number));
  return number;
}

uint64_t key_of(uint64_t before, std::string_view text) {
  return number_of(Sha256().add(before).add(text).finish());
}

// A request's prompt, piece by piece.
class Chain {
 public:
  explicit Chain(uint64_t salt) : key_(salt) {}

  void add(std::string_view piece) {
    do {
      const std::string_view block = piece.substr(0, kBlockBytes);
      piece.remove_prefix(block.size());
      key_ = key_of(key_, block);
      end_ += block.size();
      if (prefixes_.size() == kPrefixesMax) prefixes_.pop_back();
      prefixes_.push_back({key_, end_});
    } while (!piece.empty());
    // "ab" and "c" are no "a" and "bc".
    prefixes_.back().key = key_ = weight_of(key_, 1);
  }
  uint64_t key() const { return key_; }
  std::vector<PromptKeys::Prefix> take() { return std::move(prefixes_); }

 private:
  uint64_t key_;
  size_t end_ = 0;
  std::vector<PromptKeys::Prefix> prefixes_;
};

// The texts of a list up to the first one of a user begin every turn of a conversation.
size_t first_user_of(const std::vector<json::Value>& items) {
  for (size_t index = 0; index < items.size(); ++index) {
    if (!items[index].is_object() || items[index].text_at("role") == "user") return index;
  }
  return items.size() - 1;
}

// Returns the affinity.
uint64_t add_pieces(const json::Value& body, Chain& chain) {
  for (const std::string_view name : kFirstMembers) {
    const json::Value* const member = body.find_set(name);
    if (member != nullptr) chain.add(json::to_text(*member));
  }
  for (const std::string_view name : kTextMembers) {
    const json::Value* const member = body.find_set(name);
    if (member == nullptr) continue;
    if (const auto text = member->as_text()) {
      chain.add(*text);
      return chain.key();
    }
    if (member->items().empty()) continue;
    const size_t first = first_user_of(member->items());
    uint64_t affinity = 0;
    for (size_t index = 0; index < member->items().size(); ++index) {
      chain.add(json::to_text(member->items()[index]));
      if (index == first) affinity = chain.key();
    }
    return affinity;
  }
  return chain.key();
}

std::string owned_of(const RequestHead& head, const json::Value& body) {
  for (const std::string_view path : kOwnedPaths) {
    if (!head.path.starts_with(path)) continue;
    const size_t begin = path.size();
    const std::string name = head.path.substr(begin, head.path.find('/', begin) - begin);
    // "/v1/responses/input_tokens" asks for no response.
    return name.size() <= kNameBytesMax && name != "input_tokens" && name != "replay"
               ? name
               : std::string();
  }
  const bool is_session = head.path == "/v1/sessions";
  const auto name = body.text_at(is_session ? "id" : "previous_response_id");
  return name && name->size() <= kNameBytesMax ? std::string(*name) : std::string();
}

}  // namespace

uint64_t weight_of(uint64_t key, uint64_t node) {
  uint64_t mixed = key ^ (node * 0x9e3779b97f4a7c15u);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
  return mixed ^ (mixed >> 31);
}

PromptKeys prompt_keys(const RequestHead& head, std::string_view text) {
  json::Value body;
  if (!text.empty()) {
    Result<json::Value> read = json::read_value("body", text, {});
    if (read && (*read).is_object()) body = std::move(read).value();
  }
  const std::string* secret = head.find("authorization");
  if (secret == nullptr) secret = head.find("x-api-key");
  Sha256 salt;
  salt.add(secret == nullptr ? std::string_view() : std::string_view(*secret));
  salt.add(uint64_t(secret == nullptr ? 0 : secret->size()));
  Chain chain(number_of(salt.add(body.text_at("model").value_or("")).finish()));
  PromptKeys keys;
  keys.affinity = add_pieces(body, chain);
  keys.prefixes = chain.take();
  keys.owned = owned_of(head, body);
  if (const std::string* const wish = head.find("x-cairn-affinity")) {
    keys.affinity = key_of(0, *wish);
  } else if (const auto cache_key = body.text_at("prompt_cache_key")) {
    keys.affinity = key_of(0, *cache_key);
  }
  return keys;
}

bool makes_owned(const RequestHead& head, std::string_view body) {
  if (head.method != serve::http::Method::post) return false;
  const std::string_view path = head.path;
  return path.ends_with("/responses") || path == "/v1/sessions" || path.ends_with("/fork") ||
         body.find("\"receipt\"") != body.npos;
}

std::string first_id(std::string_view reply) {
  constexpr std::string_view kName = "\"id\"";
  size_t at = reply.find(kName);
  if (at == reply.npos) return {};
  at = reply.find_first_not_of(": ", at + kName.size());
  if (at == reply.npos || reply[at] != '"') return {};
  const size_t end = reply.find('"', at + 1);
  if (end == reply.npos || end - at - 1 > kNameBytesMax) return {};
  return std::string(reply.substr(at + 1, end - at - 1));
}

}  // namespace cairn::route
