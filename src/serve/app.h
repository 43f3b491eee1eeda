// What a server answers: the table of routes, who may use each, and what is said to
// those who may not. Thread rule: that of http::Handler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "serve/fields.h"
#include "serve/http/origins.h"
#include "serve/http/server.h"
#include "serve/keys.h"
#include "serve/request_log.h"
#include "serve/routes/routes.h"

namespace cairn::serve {

enum class Access : uint8_t {
  anyone,
  user,       // Any key, where there are keys.
  operator_,  // An admin's key, where there are such or several tenants; else any.
};

// A function of either kind: its arguments say whether it is about a model.
struct AnyRoute {
  constexpr AnyRoute(Route route) : of_model(route) {}
  constexpr AnyRoute(PlainRoute route) : plain(route) {}

  Route of_model = nullptr;
  PlainRoute plain = nullptr;
  bool loads = true;       // A POST about a model that is not in memory.
  bool may_stream = true;  // Where its body says so.
  bool is_of_session = false;
};

// What is replied where nothing is wrong: types of serve/reply_types.h; empty: nothing of this
// kind.
struct Replies {
  std::string_view json = {};
  std::string_view events = {};  // Of each event's data, in a stream of events.
  bool ends_with_done = false;   // Whose last data is "[DONE]".
  std::string_view lines = {};   // Of each line, in a stream of lines.
};

struct RouteLine {
  http::Method method;
  std::string_view path;  // With "*" at its end: and all that begins so; "{id}": any one part.
  Access access;
  bool is_quick;  // Takes microseconds.
  AnyRoute route;
  uint32_t endpoint;  // Of the fields of its body; 0: it has none.
  std::string_view doc;
  Replies replies = {};
};

std::span<const RouteLine> all_routes();

struct AppOptions {
  http::OriginRules origins;
  Keys keys;
  int32_t requests_max = 256;                    // That are answered at a time.
  int32_t tenant_share_percent = 100;            // Of an even part.
  size_t waiting_bytes_max = size_t(256) << 20;  // Bodies of those that wait for models, in all.
  // Who asks for others: addresses, or "unix". They are believed when they say for whom.
  std::vector<std::string> proxies = {};
  double request_seconds_max = 0;
  std::string log_path;  // As RequestLog::open() has it.
  SessionLimits sessions = {};
  std::string session_folder = {};  // Where sessions are kept over restarts; empty: nowhere.
};

class App final : public http::Handler {
 public:
  // Of one model, whose service must outlive the app; or of several. Errors: those of
  // RequestLog::open() and SessionFiles::open().
  static Result<std::unique_ptr<App>> make(ServedModel model, AppOptions options);
  static Result<std::unique_ptr<App>> make(std::unique_ptr<ModelRegistry> models,
                                           AppOptions options);

  // For requests from now on; those that are being answered go on. The I/O thread. REQUIRES: there
  // were keys, and there are some.
  void set_keys(Keys keys);

  std::unique_ptr<http::Reply> admit(http::Request& request) override;
  bool is_quick(const http::Request& request) const override;
  std::unique_ptr<http::Reply> answer(http::Request& request) override;
  std::unique_ptr<http::Reply> refuse(const http::RequestHead& head, int status,
                                      std::string_view message) override;
  // Waits until all that was changed in sessions is written.
  void drain_sessions() { context_.sessions->drain(); }
  void ended(const http::Request& request, const http::Reply& reply,
             const Outcome& outcome) override;

 private:
  App(std::unique_ptr<ModelRegistry> models, AppOptions options, std::unique_ptr<RequestLog> log,
      std::unique_ptr<SessionFiles> files);
  std::unique_ptr<http::Reply> check_key(http::Request& request, Access access);
  std::unique_ptr<http::Reply> preflight(const http::RequestHead& head) const;

  AppOptions options_;
  Metrics metrics_;
  ServerContext context_;
  std::unique_ptr<RequestLog> log_;
  FailureCounts failures_;
  std::shared_ptr<const TenantShares> tenants_;  // Null: there are not several.
  std::unique_ptr<ModelRegistry> models_;        // Goes first: its thread makes replies.
};

}  // namespace cairn::serve
