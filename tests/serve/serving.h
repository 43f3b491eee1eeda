// For tests: a server of a model in this process, on a port of its own. All that it replies is what
// the OpenAPI document says.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "cli/commands/load.h"
#include "serve/app.h"
#include "session/service.h"
#include "tests/serve/bare_client.h"
#include "tests/serve/schema_check.h"

namespace cairn::serve {

// What the built-in model is asked, and its greedy answer.
inline constexpr char kFrance[] = "What is the capital of France?";
inline constexpr char kParis[] = "The capital of France is Paris.";

class Serving {
 public:
  // The built-in model where `path` is empty, greedy unless a request says otherwise.
  explicit Serving(AppOptions options = {}, const std::string& path = "",
                   EngineOptions engine_options = {}, const http::Limits& limits = {},
                   std::shared_ptr<const tls::ServerIdentity> tls = nullptr,
                   const SchedulerOptions& scheduling = {}) {
    engine_ = cli::load_engine(path, std::move(engine_options)).value();
    service_ = session::Service::start(engine_.get(), scheduling).value();
    ServedModel model{.service = service_.get(), .name = "test-model", .created = 1780000000};
    model.sampling.temperature = 0;
    app_ = App::make(std::move(model), std::move(options)).value();
    listen(limits, std::move(tls));
  }
  // The built-in model for so many at a time.
  explicit Serving(const SchedulerOptions& scheduling) : Serving({}, "", {}, {}, {}, scheduling) {}
  // Of models that are loaded when they are asked for.
  explicit Serving(std::unique_ptr<ModelRegistry> models, AppOptions options = {},
                   const http::Limits& limits = {}) {
    app_ = App::make(std::move(models), std::move(options)).value();
    listen(limits);
  }
  ~Serving() {
    server_->stop();
    server_->stop();
    thread_.join();
    server_.reset();
  }

  session::Service& service() { return *service_; }
  uint16_t port() const { return server_->port(); }
  BareClient client() { return BareClient(server_->port()); }
  BareReply send(std::string_view request) {
    BareClient asking = client();
    EXPECT_TRUE(asking.send(request));
    return asking.read_reply();
  }
  BareReply get(std::string_view path, std::string_view headers = "") {
    return checked("get", path, send(get_request(path, headers)));
  }
  BareReply post(std::string_view path, std::string_view body, std::string_view headers = "") {
    return checked("post", path, send(post_request(path, body, headers)));
  }
  const SchemaCheck& schemas() const { return schemas_; }
  nlohmann::json post_json(std::string_view path, const nlohmann::json& body) {
    const BareReply reply = post(path, body.dump());
    EXPECT_EQ(reply.status, 200) << reply.body;
    return nlohmann::json::parse(reply.body, nullptr, false);
  }
  // The status of a refusal, and the field that it names.
  std::pair<int, std::string> refused(std::string_view path, const nlohmann::json& body) {
    const BareReply reply = post(path, body.dump());
    const nlohmann::json json = nlohmann::json::parse(reply.body, nullptr, false);
    if (!json.contains("error")) return {reply.status, "no error: " + reply.body};
    const nlohmann::json& field = json["error"]["param"];
    return {reply.status, field.is_string() ? field.get<std::string>() : ""};
  }

 private:
  BareReply checked(const char* method, std::string_view path, BareReply reply) const {
    if (reply.status == 200) schemas_.check(method, path, reply);
    return reply;
  }
  void listen(const http::Limits& limits = {},
              std::shared_ptr<const tls::ServerIdentity> tls = nullptr) {
    server_ = http::Server::listen({.port = 0, .tls = std::move(tls)}, limits, app_.get()).value();
    thread_ = std::thread([this] { server_->run(); });
  }

  SchemaCheck schemas_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<session::Service> service_;
  std::unique_ptr<App> app_;
  std::unique_ptr<http::Server> server_;
  std::thread thread_;
};

inline nlohmann::json question(const std::string& text) {
  return {{"messages", {{{"role", "user"}, {"content", text}}}}};
}

}  // namespace cairn::serve
