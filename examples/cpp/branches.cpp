// Several answers to one question, made at the same time: branches MODEL.gguf QUESTION [COUNT]
// The prompt is read once; each branch is a fork of the conversation that shares its memory, and
// all of them share the reading of the weights at every step.
#include <cairn.h>
#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// What a function of the header said, as an exception.
class Checked {
 public:
  operator cairn_error*() { return &error_; }
  void operator()(cairn_status status, const char* what) const {
    if (status < 0) throw std::runtime_error(std::string(what) + ": " + error_.message);
  }

 private:
  cairn_error error_{.struct_size = sizeof error_, .code = 0, .message = {}};
};

template <auto close>
struct Closer {
  template <class Handle>
  void operator()(Handle* handle) const {
    close(handle);
  }
};
using Model = std::unique_ptr<cairn_model, Closer<cairn_model_close>>;
using Engine = std::unique_ptr<cairn_engine, Closer<cairn_engine_close>>;
using Conversation = std::unique_ptr<cairn_conversation, Closer<cairn_conversation_close>>;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char each : text) {
    if (each == '"' || each == '\\') out += '\\';
    if (each >= 0 && each < ' ') {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", unsigned(each));
      out += code;
    } else {
      out += each;
    }
  }
  return out + '"';
}

std::vector<cairn_token> prompt_of(cairn_model* model, const std::string& question) {
  Checked check;
  const std::string request = R"([{"role": "user", "content": )" + quoted(question) + "}]";
  size_t count = 0;
  // Asked for their number first.
  (void)cairn_chat_render(model, request.data(), request.size(), nullptr, 0, &count, nullptr);
  std::vector<cairn_token> tokens(count);
  check(cairn_chat_render(model, request.data(), request.size(), tokens.data(), tokens.size(),
                          &count, check),
        "question");
  return tokens;
}

struct Branch {
  Conversation conversation;
  std::string text = {};
  bool is_done = false;
};

void take_events(Branch& branch) {
  Checked check;
  cairn_event event{};
  event.struct_size = sizeof event;
  cairn_status status = CAIRN_OK;
  while (status == CAIRN_OK) {
    status = cairn_poll(branch.conversation.get(), &event, check);
    check(status, "answer");
    if (status == CAIRN_OK) branch.text.append(event.text, event.text_bytes);
  }
  branch.is_done = status != CAIRN_AGAIN;
}

// Until all of them have ended.
void wait_for(std::vector<Branch>& branches) {
  for (;;) {
    std::vector<pollfd> waits;
    for (Branch& branch : branches) {
      if (!branch.is_done) take_events(branch);
      if (branch.is_done) continue;
      waits.push_back({cairn_wait_fd(branch.conversation.get()), POLLIN, 0});
    }
    if (waits.empty()) return;
    (void)::poll(waits.data(), nfds_t(waits.size()), -1);
  }
}

void run(const std::string& path, const std::string& question, int count) {
  Checked check;
  cairn_model* model_handle = nullptr;
  check(cairn_model_open(path.c_str(), &model_handle, check), "model");
  const Model model(model_handle);
  cairn_engine* engine_handle = nullptr;
  check(cairn_engine_open(model.get(), nullptr, &engine_handle, check), "engine");
  const Engine engine(engine_handle);
  cairn_conversation* asked_handle = nullptr;
  check(cairn_conversation_open(engine.get(), &asked_handle, check), "conversation");
  const Conversation asked(asked_handle);

  const std::vector<cairn_token> prompt = prompt_of(model.get(), question);
  check(cairn_sync(asked.get(), prompt.data(), prompt.size(), nullptr, check), "prompt");
  std::vector<Branch> branches;
  for (int index = 0; index < count; ++index) {
    cairn_conversation* fork = nullptr;
    check(cairn_fork(asked.get(), nullptr, &fork, check), "fork");
    branches.push_back({Conversation(fork)});
    cairn_sampling sampling{};
    cairn_sampling_init(model.get(), &sampling, sizeof sampling);
    sampling.flags = CAIRN_SAMPLING_SEED;
    sampling.seed = uint64_t(index);
    sampling.max_tokens = 200;
    check(cairn_set_sampling(fork, &sampling, check), "sampling");
    check(cairn_start(fork, check), "start");
  }
  wait_for(branches);
  for (const Branch& branch : branches) std::printf("%s\n", branch.text.c_str());
}

}  // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 3 && argument_count != 4) {
    std::fprintf(stderr, "branches MODEL.gguf QUESTION [COUNT]\n");
    return 1;
  }
  try {
    run(arguments[1], arguments[2], argument_count == 4 ? std::atoi(arguments[3]) : 3);
    return 0;
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    return 1;
  }
}
