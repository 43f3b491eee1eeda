// From a request to the model that it is about, and to its route: at once where the model is in
// memory, else as soon as it is loaded. Thread rule: that of http::Handler.
#pragma once

#include <cstdint>
#include <memory>

#include "serve/http/message.h"
#include "serve/http/reply.h"
#include "serve/refusal.h"
#include "serve/routes/routes.h"

namespace cairn::serve {

struct ModelRoute {
  Route route;
  uint32_t endpoint;           // Of the fields of the body; 0: it has none.
  bool loads = true;           // Else it is refused where the model is not in memory.
  bool may_stream = true;      // Where the body asks for it.
  bool is_of_session = false;  // The model is that of the session which the path names.
  ErrorForm form = ErrorForm::openai;
};

// The model is named by the query (?model=), else by the body; without a name it is the one that
// was used last. With one model that stays, nobody looks at names.
std::unique_ptr<http::Reply> answer_about_model(const ServerContext& context,
                                                const ModelRoute& route, http::Request& request);

}  // namespace cairn::serve
