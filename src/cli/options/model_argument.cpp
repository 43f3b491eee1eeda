#include "cli/options/model_argument.h"

namespace cairn::cli {

namespace {

constexpr const char* kNames = "MODEL,-m,--model";
constexpr const char* kDoc =
    "a GGUF file (of a split model, its first part), hf:OWNER/REPO:QUANT, ollama:NAME:TAG, a URL, "
    "or an alias";

}  // namespace

void add_model(command_line::Options& command, std::string& path) {
  command.add(kNames, path, std::string(kDoc) + "; default: the built-in model").takes("FILE");
}

void add_required_model(command_line::Options& command, std::string& path) {
  command.add(kNames, path, kDoc).takes("FILE").required();
}

}  // namespace cairn::cli
