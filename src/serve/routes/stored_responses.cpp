// GET and DELETE /v1/responses/ID, GET /v1/responses/ID/input_items.
#include <algorithm>
#include <charconv>
#include <utility>

#include "json/reader.h"
#include "serve/http/head.h"
#include "serve/response_table.h"
#include "serve/routes/answering.h"

namespace cairn::serve {

namespace {

using Made = Checked<std::unique_ptr<http::Reply>>;

constexpr int64_t kItemsMax = 100, kItemsDefault = 20;

// ID of "/v1/responses/ID/…".
std::string response_id(const http::Request& request) {
  const std::string& path = request.head.path;
  const size_t begin = std::string_view("/v1/responses/").size();
  return path.substr(begin, path.find('/', begin) - begin);
}

Refusal unknown_response() {
  return {.status = 404,
          .type = "not_found_error",
          .code = "response_not_found",
          .message = "response: expected one of this key's that is kept, found none"};
}

Made show(const ServerContext& context, const http::Request& request) {
  if (http::query_value(request.head.query, "stream") == "true") {
    Refusal refusal = refuse_field("stream", "expected false: events are told once");
    refusal.code = "unsupported_value";
    return refusal;
  }
  const ResponseTable::Kept kept = context.responses->find(response_id(request), request.client);
  if (kept == nullptr) return unknown_response();
  return json_reply(kept->object);
}

Checked<int64_t> read_limit(const std::string& query) {
  const std::optional<std::string> text = http::query_value(query, "limit");
  if (!text) return kItemsDefault;
  int64_t limit = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), limit);
  const bool is_whole = error == std::errc() && end == text->data() + text->size();
  if (is_whole && limit >= 1 && limit <= kItemsMax) return limit;
  return refuse_field("limit", "expected a whole number from 1 to {}, found {}", kItemsMax,
                      json::quoted(*text));
}

Checked<bool> is_descending(const std::string& query) {
  const std::string order = http::query_value(query, "order").value_or("desc");
  if (order == "desc" || order == "asc") return order == "desc";
  return refuse_field("order", "expected asc or desc, found {}", json::quoted(order));
}

// The last item first, unless the query says otherwise; those behind the one that it names.
Made list_items(const ServerContext& context, const http::Request& request) {
  const std::string& query = request.head.query;
  CAIRN_TRY(const int64_t limit, read_limit(query));
  CAIRN_TRY(const bool descends, is_descending(query));
  const ResponseTable::Kept kept = context.responses->find(response_id(request), request.client);
  if (kept == nullptr) return unknown_response();
  std::vector<const InputItem*> items;
  for (const InputItem& item : kept->input) items.push_back(&item);
  if (descends) std::reverse(items.begin(), items.end());
  size_t begin = 0;
  if (const auto after = http::query_value(query, "after")) {
    const auto found = std::find_if(items.begin(), items.end(),
                                    [&](const InputItem* item) { return item->id == *after; });
    if (found == items.end()) {
      return refuse_field("after", "expected the id of an item of the input, found another");
    }
    begin = size_t(found - items.begin()) + 1;
  }
  const size_t end = std::min(items.size(), begin + size_t(limit));
  std::string data;
  for (size_t index = begin; index < end; ++index) {
    if (index > begin) data += ',';
    data += items[index]->text;
  }
  const auto id_at = [&](size_t index) {
    return begin < end ? json::quoted(items[index]->id) : std::string("null");
  };
  return json_reply(
      fmt::format(R"({{"object":"list","data":[{}],"first_id":{},"last_id":{},"has_more":{}}})",
                  data, id_at(begin), id_at(end - 1), end < items.size()));
}

Made forget(const ServerContext& context, const http::Request& request) {
  const std::string id = response_id(request);
  if (!context.responses->remove(id, request.client)) return unknown_response();
  return json_reply(json::to_text({{"id", id}, {"object", "response"}, {"deleted", true}}));
}

}  // namespace

std::unique_ptr<http::Reply> get_response(const ServerContext& context, http::Request& request) {
  return reply_of(show(context, request));
}

std::unique_ptr<http::Reply> get_response_items(const ServerContext& context,
                                                http::Request& request) {
  return reply_of(list_items(context, request));
}

std::unique_ptr<http::Reply> delete_response(const ServerContext& context, http::Request& request) {
  return reply_of(forget(context, request));
}

}  // namespace cairn::serve
