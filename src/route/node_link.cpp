// A coroutine for each request, and one that looks after the nodes.
#include "route/node_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/process.h"
#include "base/threads/blocked_signals.h"
#include "route/connection_headers.h"
#include "route/node_metrics.h"
#include "route/reply_figures.h"
#include "route/wire.h"
#include "serve/http/ascii.h"
#include "serve/refusal.h"

namespace cairn::route {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = serve::http;
using boost::system::error_code;

namespace {

constexpr size_t kPieceBytes = size_t(32) << 10;
// Of a reply that its client has not taken; then the node waits.
constexpr size_t kAheadBytesMax = size_t(256) << 10;
// Replies of a known length that are told it again; longer ones come in chunks.
constexpr uint64_t kWholeBytesMax = uint64_t(8) << 20;
constexpr size_t kCheckBytesMax = size_t(4) << 20;
constexpr int kHeadBytesMax = 64 << 10;
// Of what has come and is not understood yet: a head, or a line of a chunk; and what came with it.
constexpr size_t kUnreadBytesMax = size_t(192) << 10;
// Checks for which a node that does not tell its metrics is not asked for them again.
constexpr int kChecksWithoutMetrics = 60;

// Made anew for whoever asked.
constexpr std::string_view kOwnHeaders[] = {"content-type", "x-content-type-options",
                                            "x-request-id"};
// Which pages may read a reply, the router says.
constexpr std::string_view kPageHeaders = "access-control-";

// What passes between the link's thread and the connection's.
struct Flow {
  std::mutex mutex;
  std::string ready;  // Bytes of the body.
  std::optional<http::ReplyHead> head;
  Decision decision;  // The last one.
  http::Reply::State state = http::Reply::State::waiting;
  std::function<void()> wake;
  bool is_unwanted = false;
  // Of the link's thread alone.
  std::weak_ptr<Wire> wire;
  std::weak_ptr<asio::steady_timer> room;

  // What has changed is told to whoever waits.
  template <class Change>
  void change(Change change) {
    const std::lock_guard lock(mutex);
    change();
    if (wake) wake();
  }
  // Nothing comes any more. What was shown by then is seen to break off; before that the refusal
  // is the reply.
  void lose(const serve::Refusal& refusal) {
    change([&] {
      if (state != http::Reply::State::waiting) return;
      if (head && head->is_stream) {
        state = http::Reply::State::broken;
        return;
      }
      head = serve::refusal_head(refusal);
      ready = serve::refusal_json(refusal);
      state = http::Reply::State::ended;
    });
  }
  void end() {
    change([&] { state = http::Reply::State::ended; });
  }
  void note(const Decision& made) {
    const std::lock_guard lock(mutex);
    decision = made;
  }
  bool is_wanted() {
    const std::lock_guard lock(mutex);
    return !is_unwanted;
  }
  size_t ready_bytes() {
    const std::lock_guard lock(mutex);
    return ready.size();
  }
};

serve::Refusal lost(std::string message) {
  return {.status = 502,
          .type = "unavailable_error",
          .code = "node_lost",
          .message = std::move(message)};
}

serve::Refusal unavailable(std::string_view message) {
  return {.status = 503,
          .type = "unavailable_error",
          .message = std::string(message),
          .headers = {{"retry-after", "1"}}};
}

class NodeReply final : public http::Reply {
 public:
  NodeReply(std::shared_ptr<Flow> flow, asio::io_context* io) : flow_(std::move(flow)), io_(io) {}
  ~NodeReply() override {
    {
      const std::lock_guard lock(flow_->mutex);
      flow_->wake = nullptr;
      flow_->is_unwanted = true;
      if (flow_->state != State::waiting) return;
    }
    asio::post(*io_, [flow = flow_] {
      if (const std::shared_ptr<Wire> wire = flow->wire.lock()) wire->close();
      if (const auto room = flow->room.lock()) room->cancel();
    });
  }

  void listen(std::function<void()> wake) override {
    const std::lock_guard lock(flow_->mutex);
    flow_->wake = std::move(wake);
  }
  // A head is shown with what it belongs to: all of a whole reply.
  State read(std::string& out) override {
    State state = State::waiting;
    bool was_full = false;
    {
      const std::lock_guard lock(flow_->mutex);
      const bool is_shown =
          flow_->head && (flow_->head->is_stream || flow_->state != State::waiting);
      if (!is_shown) return flow_->state;
      shown_ = &*flow_->head;
      was_full = flow_->ready.size() > kAheadBytesMax;
      out += flow_->ready;
      flow_->ready.clear();
      state = flow_->state;
    }
    if (!was_full) return state;
    asio::post(*io_, [flow = flow_] {
      if (const auto room = flow->room.lock()) room->cancel();
    });
    return state;
  }
  const http::ReplyHead* head() const override { return shown_; }
  std::vector<std::pair<std::string, int64_t>> figures() const override {
    const std::lock_guard lock(flow_->mutex);
    const Decision& decision = flow_->decision;
    return {{"node", decision.node},
            {"known_bytes", int64_t(decision.known_bytes)},
            {"prompt_bytes", int64_t(decision.prompt_bytes)},
            {"cost_ms", int64_t(decision.cost_ms)}};
  }

 private:
  std::shared_ptr<Flow> flow_;
  asio::io_context* io_;
  const http::ReplyHead* shown_ = nullptr;
};

std::string head_text(const Order& order, const client::ServerUrl& url) {
  std::string text =
      fmt::format("{} {} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", order.method, order.target,
                  url.host.empty() ? "localhost" : name_of(url));
  for (const http::Header& header : order.headers) {
    text += fmt::format("{}: {}\r\n", header.name, header.value);
  }
  if (order.method == "POST" || !order.body.empty()) {
    text += fmt::format("content-length: {}\r\n", order.body.size());
  }
  return text + "\r\n";
}

std::string route_text(const Decision& decision, const client::ServerUrl& url) {
  return fmt::format("node={}; why={}; known={}; of={}; cost_ms={:.1f}; queue_ms={:.1f}",
                     name_of(url), name_of(decision.why), decision.known_bytes,
                     decision.prompt_bytes, decision.cost_ms, decision.queue_ms);
}

template <class Fields>
http::ReplyHead head_of(const Fields& fields, int status) {
  http::ReplyHead head{.status = status, .content_type = ""};
  std::string connection;
  for (const auto& field : fields) {
    if (field.name() == boost::beast::http::field::connection) {
      connection += std::string(field.value()) + ",";
    }
  }
  for (const auto& field : fields) {
    std::string name = http::lower({field.name_string().data(), field.name_string().size()});
    std::string value(field.value().data(), field.value().size());
    if (name == "content-type") head.content_type = value;
    if (is_passed_on(name, kOwnHeaders, connection) && !name.starts_with(kPageHeaders)) {
      head.headers.push_back({std::move(name), std::move(value)});
    }
  }
  return head;
}

// Why this reply cannot be said again; empty: it can be.
template <class Fields>
std::string_view refusal_of(const Fields& fields, int status) {
  // 101: the connection speaks another protocol from here on, which nobody asked for.
  if (status < 200) return "a status of 200 at least";
  std::string codings;
  for (const auto& field : fields) {
    if (field.name() != boost::beast::http::field::transfer_encoding) continue;
    codings += (codings.empty() ? "" : ",") + std::string(field.value());
    if (http::lower(codings) != "chunked") return "no transfer coding but chunked";
  }
  return {};
}

// A request that was sent, whatever becomes of it.
class SentRequest {
 public:
  SentRequest(Fleet* fleet, uint64_t number) : fleet_(*fleet), number_(number) {}
  ~SentRequest() { end(std::nullopt, false); }
  SentRequest(const SentRequest&) = delete;
  SentRequest& operator=(const SentRequest&) = delete;

  void begin() { fleet_.begun(number_); }
  void end(const std::optional<ReplyFigures>& figures, bool was_read) {
    if (!std::exchange(has_ended_, true)) fleet_.ended(number_, figures, was_read);
  }

 private:
  Fleet& fleet_;
  uint64_t number_;
  bool has_ended_ = false;
};

// What goes on over a connection ends with this.
class Closing {
 public:
  explicit Closing(Wire* wire) : wire_(*wire) {}
  ~Closing() { wire_.close(); }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

 private:
  Wire& wire_;
};

// A node that refuses a body may do so before all of it is sent: whoever sends does not wait for
// the reply, nor the other way round. What is left when the connection is closed goes nowhere.
asio::awaitable<void> write_all(std::shared_ptr<Wire> wire, std::string head, std::string body,
                                std::shared_ptr<void> room) {
  const std::array<asio::const_buffer, 2> bytes = {asio::buffer(head), asio::buffer(body)};
  co_await asio::async_write(*wire, bytes, kAwait);
  std::string().swap(body);
  room.reset();
}

// The first reply that is no interim one (RFC 9110, 15.2): those are about how a request is sent,
// and there may be any number of them. Why there is none; empty: there is one.
template <class Parser>
asio::awaitable<std::string> read_reply_head(Wire& wire, beast::flat_buffer& buffer,
                                             std::optional<Parser>& parser,
                                             uint64_t body_bytes_max) {
  for (int status = 100; status / 100 == 1 && status != 101;) {
    parser.emplace();
    parser->header_limit(kHeadBytesMax);
    parser->body_limit(body_bytes_max);
    const auto [error, count] =
        co_await beast::http::async_read_header(wire, buffer, *parser, kAwait);
    const bool is_form = error.category() == error_code(beast::http::error::bad_status).category();
    if (error && is_form && error != beast::http::error::end_of_stream &&
        error != beast::http::error::partial_message) {
      co_return fmt::format("expected a reply in HTTP/1.1 from the node, found another: {}",
                            error.message());
    }
    if (error) co_return "the node ended before it replied; it may have begun the answer";
    status = int(parser->get().result_int());
  }
  const std::string_view why = refusal_of(parser->get().base(), int(parser->get().result_int()));
  co_return why.empty() ? std::string()
                        : fmt::format("the node's reply: expected {}, found another", why);
}

}  // namespace

struct NodeLink::State {
  using Parser = beast::http::response_parser<beast::http::buffer_body>;

  State(Fleet* all, LinkOptions given)
      : fleet(*all), options(std::move(given)), names(options.find_addresses) {}

  asio::awaitable<void> carry(std::shared_ptr<Flow> flow, Order order);
  asio::awaitable<void> exchange(const std::shared_ptr<Flow>& flow,
                                 const std::shared_ptr<Wire>& wire, Order& order,
                                 const Decision& decision, const client::ServerUrl& url,
                                 SentRequest& request);
  // Whether all of the body has come.
  asio::awaitable<bool> pass_body(const std::shared_ptr<Flow>& flow, Wire& wire, Parser& parser,
                                  beast::flat_buffer& buffer, ReplyReader& reader,
                                  SentRequest& request);
  asio::awaitable<void> look_after();
  asio::awaitable<void> check(Fleet::Node node);
  // The status and body; status 0: none came, kNotAsked: this machine could not ask.
  static constexpr int kNotAsked = -1;
  asio::awaitable<std::pair<int, std::string>> fetch(const client::ServerUrl& url,
                                                     std::string_view path);

  Fleet& fleet;
  LinkOptions options;
  std::atomic<size_t> bodies_bytes = 0;
  std::set<int32_t> in_check;
  std::map<int32_t, int> without_metrics;  // Checks to come without them.
  // Requests that end with it use the others.
  asio::io_context io{1};
  NameLookup names;  // Says what it finds to `io`, and so goes first.
  std::thread thread;
};

NodeLink::NodeLink(Fleet* fleet, LinkOptions options)
    : state_(std::make_unique<State>(fleet, std::move(options))) {
  State* const state = state_.get();
  asio::co_spawn(state->io, state->look_after(), asio::detached);
  const BlockedSignals blocked;
  state->thread = std::thread([state] {
    for (;;) {
      try {
        state->io.run();
        return;
      } catch (const std::exception&) {
        log::error("a node: {}", exception_text());
      }
    }
  });
}

NodeLink::~NodeLink() {
  state_->io.stop();
  state_->thread.join();
}

std::unique_ptr<http::Reply> NodeLink::send(Order order) {
  State* const state = state_.get();
  const size_t bytes = order.body.size();
  if (state->bodies_bytes.fetch_add(bytes) + bytes > state->options.bodies_bytes_max) {
    state->bodies_bytes -= bytes;
    return serve::refusal_reply(unavailable("the router is sending too many requests at a time"));
  }
  order.body_room.reset(static_cast<void*>(nullptr),
                        [state, bytes](void*) { state->bodies_bytes -= bytes; });
  const auto flow = std::make_shared<Flow>();
  auto reply = std::make_unique<NodeReply>(flow, &state->io);
  asio::post(state->io, [state, flow, order = std::move(order)]() mutable {
    asio::co_spawn(state->io, state->carry(flow, std::move(order)),
                   [flow](const std::exception_ptr& failure) {
                     if (failure) flow->lose(unavailable("the router could not send it"));
                   });
  });
  return reply;
}

asio::awaitable<void> NodeLink::State::carry(std::shared_ptr<Flow> flow, Order order) {
  std::vector<int32_t> avoid;
  while (flow->is_wanted()) {
    const Decision decision = fleet.choose(order.keys, avoid);
    if (decision.node < 0) {
      flow->lose(unavailable("expected a node that answers, found none"));
      co_return;
    }
    flow->note(decision);
    const client::ServerUrl url = fleet.url_of(decision.node);
    SentRequest request(&fleet, fleet.sent(order.keys, decision));
    const auto wire = std::make_shared<Wire>(&io);
    flow->wire = wire;
    const std::string why =
        co_await wire->open(url, options.trust.get(), &names, options.connect_seconds);
    // Whoever does not want it any more may have said so before there was a wire to close.
    if (!flow->is_wanted()) co_return;
    if (why.empty()) {
      co_await exchange(flow, wire, order, decision, url, request);
      co_return;
    }
    request.end(std::nullopt, false);
    log::warning("{}: cannot be reached: {}", name_of(url), why);
    // Another node could be reached as little.
    if (wire->lacks_means()) {
      flow->lose(unavailable("the router has no room for another connection"));
      co_return;
    }
    fleet.failed(decision.node);
    avoid.push_back(decision.node);
  }
}

asio::awaitable<void> NodeLink::State::exchange(const std::shared_ptr<Flow>& flow,
                                                const std::shared_ptr<Wire>& wire, Order& order,
                                                const Decision& decision,
                                                const client::ServerUrl& url,
                                                SentRequest& request) {
  const Closing closing(wire.get());
  std::string head = head_text(order, url);
  asio::co_spawn(io,
                 write_all(wire, std::move(head), std::exchange(order.body, {}),
                           std::exchange(order.body_room, nullptr)),
                 asio::detached);
  beast::flat_buffer buffer(kUnreadBytesMax);
  std::optional<Parser> parser;
  const std::string why =
      co_await read_reply_head(*wire, buffer, parser, std::numeric_limits<uint64_t>::max());
  if (!why.empty()) {
    request.end(std::nullopt, false);
    if (flow->is_wanted()) fleet.add_reply(decision.node, 0);
    flow->lose(lost(why));
    co_return;
  }
  const int status = int(parser->get().result_int());
  http::ReplyHead reply = head_of(parser->get().base(), status);
  reply.headers.push_back({"x-cairn-route", route_text(decision, url)});
  const auto length = parser->content_length();
  const bool has_body = !parser->is_done();
  reply.is_stream = has_body && (!length || *length > kWholeBytesMax);
  flow->change([&] { flow->head = std::move(reply); });
  ReplyReader reader;
  const bool is_whole = co_await pass_body(flow, *wire, *parser, buffer, reader, request);
  const bool is_wanted = flow->is_wanted();
  if (is_wanted || is_whole) fleet.add_reply(decision.node, is_whole ? status : 0);
  // An answer that was given up has read its prompt.
  const bool was_read = status == 200 && (is_whole || !reader.begin().empty());
  request.end(reader.figures(), was_read);
  if (is_whole && status == 200 && order.makes_owned) {
    if (std::string name = first_id(reader.begin()); !name.empty()) fleet.own(name, decision.node);
  }
  if (is_whole) {
    flow->end();
  } else {
    flow->lose(lost("the node ended within its reply"));
  }
}

asio::awaitable<bool> NodeLink::State::pass_body(const std::shared_ptr<Flow>& flow, Wire& wire,
                                                 Parser& parser, beast::flat_buffer& buffer,
                                                 ReplyReader& reader, SentRequest& request) {
  std::string piece(kPieceBytes, '\0');
  const auto room = std::make_shared<asio::steady_timer>(io);
  flow->room = room;
  bool is_stream = false;
  {
    const std::lock_guard lock(flow->mutex);
    is_stream = flow->head->is_stream;
  }
  while (!parser.is_done()) {
    parser.get().body().data = piece.data();
    parser.get().body().size = piece.size();
    const auto [error, count] = co_await beast::http::async_read_some(wire, buffer, parser, kAwait);
    if (error && error != beast::http::error::need_buffer) co_return false;
    const std::string_view bytes(piece.data(), piece.size() - parser.get().body().size);
    if (bytes.empty()) continue;
    request.begin();
    reader.add(bytes);
    flow->change([&] { flow->ready += bytes; });
    while (is_stream && flow->ready_bytes() > kAheadBytesMax) {
      if (!flow->is_wanted()) co_return false;
      room->expires_after(std::chrono::seconds(1));
      co_await room->async_wait(kAwait);
    }
  }
  co_return true;
}

asio::awaitable<void> NodeLink::State::look_after() {
  asio::steady_timer timer(io);
  const auto pause = std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(options.check_seconds));
  for (;;) {
    for (const Fleet::Node& node : fleet.nodes()) {
      if (in_check.insert(node.number).second) {
        asio::co_spawn(io, check(node), [this, number = node.number](const std::exception_ptr&) {
          in_check.erase(number);
        });
      }
    }
    timer.expires_after(pause);
    co_await timer.async_wait(kAwait);
  }
}

asio::awaitable<void> NodeLink::State::check(Fleet::Node node) {
  const auto health = co_await fetch(node.url, "/health");
  if (health.first == kNotAsked) co_return;
  fleet.checked(node.number, health.first == 200);
  int& pause = without_metrics[node.number];
  if (health.first != 200 || pause-- > 0) co_return;
  fleet.asked(node.number);
  const auto [status, text] = co_await fetch(node.url, "/metrics");
  pause = status == 200 ? 0 : kChecksWithoutMetrics;
  if (status != 200) {
    fleet.told(node.number, 0, 0);
    co_return;
  }
  fleet.told(node.number, gauge_sum(text, "cairn_num_requests_waiting"),
             gauge_sum(text, "cairn_num_requests_running"));
}

asio::awaitable<std::pair<int, std::string>> NodeLink::State::fetch(const client::ServerUrl& url,
                                                                    std::string_view path) {
  std::pair<int, std::string> reply;
  const auto wire = std::make_shared<Wire>(&io);
  const std::string why =
      co_await wire->open(url, options.trust.get(), &names, options.connect_seconds);
  if (wire->lacks_means()) reply.first = kNotAsked;
  if (!why.empty()) co_return reply;
  wire->arm(options.connect_seconds);
  Order order{.method = "GET", .target = std::string(path)};
  if (!options.key.empty()) order.headers.push_back({"authorization", "Bearer " + options.key});
  const std::string head = head_text(order, url);
  co_await asio::async_write(*wire, asio::buffer(head), kAwait);
  beast::flat_buffer buffer(kUnreadBytesMax);
  std::optional<beast::http::response_parser<beast::http::string_body>> parser;
  const std::string refusal = co_await read_reply_head(*wire, buffer, parser, kCheckBytesMax);
  if (!refusal.empty()) co_return reply;
  const auto [error, count] = co_await beast::http::async_read(*wire, buffer, *parser, kAwait);
  if (error) co_return reply;
  reply.first = int(parser->get().result_int());
  reply.second = std::move(parser->get().body());
  co_return reply;
}

}  // namespace cairn::route
