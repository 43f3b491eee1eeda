// `cairn inspect --security`: what somebody looks at before trusting a file of a stranger: its
// digests, why cairn would refuse it, what is unusual in its metadata and vocabulary, its chat
// template. Whatever comes from the file is made harmless for a terminal. Thread rule: pure.
#pragma once

#include <string>

#include "gguf/gguf.h"

namespace cairn::cli {

// The report on a file that was opened for inspection; JSON: one object. `path` is read for the
// digests; of a split model all parts are.
std::string security_report(const gguf::File& file, const std::string& path, bool json);

}  // namespace cairn::cli
