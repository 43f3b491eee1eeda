// Which hosts a server is asked by, and which pages may ask it: against pages that reach a local
// server by a name of their own (DNS rebinding) or by the browser of whoever visits them.
// Thread-safe: pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/http/message.h"

namespace cairn::serve::http {

struct OriginRules {
  std::vector<std::string> hosts;    // Further names, without ports; compared without case.
  std::vector<std::string> origins;  // Further origins, exactly as browsers send them.
  bool allows_local_origins = true;  // Of this machine, and of desktop programs.
};

// Whether the value of `Host` is localhost, an address, or one of the names; any port.
bool is_host_allowed(std::string_view host, const OriginRules& rules);

// Whether the value of `Origin` is this server's own, this machine's, of a scheme that no web page
// can have, or one of the list.
bool is_origin_allowed(std::string_view origin, std::string_view own_host,
                       const OriginRules& rules);

// Why the request is refused (403); empty: it is not. Looks at Host, Origin and Sec-Fetch-Site.
std::string_view refuse_origin(const RequestHead& head, const OriginRules& rules);

// What a page that may ask may send: the names of headers that its browser asks for, as far as they
// are names and there are not too many; those of `otherwise` where it asks for none.
std::string sendable_headers(const RequestHead& head, std::string_view otherwise);

// Whether the body's type is one that no form of a page can send, or no browser is asking.
bool is_type_allowed(const RequestHead& head);

}  // namespace cairn::serve::http
