// A request and the head of a reply, as plain values. Knows no sockets. Thread-safe: values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cairn {
struct TenantShares;
}

namespace cairn::serve::http {

enum class Method : uint8_t { get, head, post, delete_, options, other };

// What becomes of requests that come now.
enum class ServerPhase : uint8_t {
  serving,
  leaving,    // It was told to stop, and answers until those who choose servers have noticed.
  finishing,  // Nothing new is begun; whoever only looks is answered.
};

struct Header {
  std::string name;  // In small letters.
  std::string value;
};

struct RequestHead {
  Method method = Method::other;
  std::string method_name;  // As it was sent.
  std::string path;         // "/v1/models", its escapes undone.
  std::string query;        // What stands behind "?", as it was sent.
  std::vector<Header> headers;
  bool is_1_0 = false;
  bool keeps_alive = true;
  bool is_chunked = false;
  bool expects_continue = false;
  std::optional<uint64_t> content_length;

  bool has_body() const { return is_chunked || content_length.value_or(0) > 0; }
  // The field's value; null where there is none of this name.
  const std::string* find(std::string_view name) const {
    for (const Header& header : headers) {
      if (header.name == name) return &header.value;
    }
    return nullptr;
  }
};

struct Request {
  RequestHead head;
  std::string body;
  std::string id;        // Of the log and of X-Request-Id; [A-Za-z0-9._-].
  std::string address;   // Of the client: "127.0.0.1", "unix".
  bool is_local = true;  // From this machine.
  std::string client;    // Whose key it has; by this name it shares the engine with others.
  std::string owner;     // Of what it leaves behind: the key's tenant, by a digest.
  uint64_t tenant = 0;   // Whose cache is used, alone; 0: everybody's.
  std::shared_ptr<const TenantShares> tenants;  // All; null: there is one.
  bool sees_all = true;                         // What the server holds of others too.
  std::vector<Header> reply_headers;            // Of whatever is replied.
  ServerPhase phase = ServerPhase::serving;
  int32_t route = -1;  // The handler's, of its own; -1: it has not found one.
};

struct ReplyHead {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<Header> headers;
  bool is_stream = false;  // Its pieces are sent as they come.
};

// "OK", "Not Found" …
std::string_view reason_of(int status);

}  // namespace cairn::serve::http
