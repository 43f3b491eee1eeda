// Calls of cairn.h by a program that nobody sane would write: the input chooses functions, handles
// (open, closed and of other kinds), sizes of structs, numbers and texts, on two threads. Each call
// answers as the header says, and afterwards the engine computes the bits that it computed first.
#include <cairn.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"

namespace {

constexpr cairn_token kPrompt[] = {5, 17, 3, 40, 22, 9};
constexpr uint32_t kSizes[] = {0, 4, 8, 1u << 20, UINT32_MAX};

// The model and the engine of all inputs.
struct Opened {
  Opened() {
    CHECK(cairn_model_open(CAIRN_SOURCE "/assets/nano.gguf", &model, nullptr) == CAIRN_OK);
    cairn_engine_params params;
    cairn_engine_params_init(&params, sizeof params);
    params.thread_count = 1;
    params.context_tokens = 64;
    params.memory_budget_bytes = uint64_t(8) << 20;
    CHECK(cairn_engine_open(model, &params, &engine, nullptr) == CAIRN_OK);
    first_row = row();
  }
  ~Opened() {
    cairn_engine_close(engine);
    cairn_model_close(model);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  // Behind the prompt, in a new conversation.
  std::vector<float> row() const {
    cairn_conversation* c = nullptr;
    cairn_logits* logits = nullptr;
    size_t count = 0;
    CHECK(cairn_conversation_open(engine, &c, nullptr) == CAIRN_OK);
    CHECK(cairn_sync(c, kPrompt, std::size(kPrompt), nullptr, nullptr) == CAIRN_OK);
    CHECK(cairn_logits_acquire(c, &logits, nullptr) == CAIRN_OK);
    const float* const data = cairn_logits_data(logits, &count);
    std::vector<float> copy(data, data + count);
    cairn_logits_release(logits);
    cairn_conversation_close(c);
    return copy;
  }

  cairn_model* model = nullptr;
  cairn_engine* engine = nullptr;
  std::vector<float> first_row;
};

class Caller {
 public:
  Caller(const Opened* opened, const uint8_t* data, size_t size)
      : opened_(*opened), data_(data), size_(size) {
    handles_.fill(nullptr);
    handles_[0] = opened->engine;
    handles_[1] = opened->model;
  }
  ~Caller() {
    for (void* each : made_) {
      cairn_conversation_close(static_cast<cairn_conversation*>(each));
      cairn_snapshot_release(static_cast<cairn_snapshot*>(each));
      cairn_logits_release(static_cast<cairn_logits*>(each));
    }
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void run() {
    // Small enough that an input takes milliseconds.
    for (int count = 0; count < 48 && at_ < size_; ++count) {
      cairn_error error{.struct_size = sizeof error, .code = 0, .message = {}};
      const cairn_status status = call(error);
      CHECK(status >= CAIRN_E_MISMATCH && status <= CAIRN_CANCELLED);
      CHECK((status < 0) == (error.message[0] != '\0') || status >= 0);
      CHECK(std::memchr(error.message, 0, sizeof error.message) != nullptr);
    }
  }

 private:
  uint8_t byte() { return at_ < size_ ? data_[at_++] : 0; }
  uint32_t number() {
    const uint8_t first = byte();
    if (first < 200) return first % 70;
    return uint32_t(byte()) << 24 | uint32_t(byte()) << 16 | uint32_t(byte()) << 8 | byte();
  }
  std::string text() {
    const size_t count = std::min<size_t>(byte(), size_ - at_);
    const std::string taken(reinterpret_cast<const char*>(data_ + at_), count);
    at_ += count;
    return taken;
  }
  // Mostly as it should be.
  template <class Struct>
  Struct sized() {
    Struct value{};
    const uint8_t choice = byte();
    value.struct_size = choice < 230 ? sizeof value : kSizes[choice % std::size(kSizes)];
    // What the struct does not have, nobody may write.
    if (value.struct_size > sizeof value) value.struct_size = sizeof value - 1;
    return value;
  }
  template <class Handle>
  Handle* any() {
    return static_cast<Handle*>(handles_[byte() % handles_.size()]);
  }
  cairn_status keep(cairn_status status, void* made) {
    CHECK((status == CAIRN_OK) == (made != nullptr));
    if (made == nullptr) return status;
    made_.push_back(made);
    handles_[2 + byte() % (handles_.size() - 2)] = made;
    return status;
  }

  cairn_status call(cairn_error& e) {
    switch (byte() % 4) {
      case 0:
        return make(e);
      case 1:
        return read(e);
      case 2:
        return answer(e);
      default:
        return ask(e);
    }
  }

  cairn_status make(cairn_error& e) {
    cairn_conversation* c = nullptr;
    cairn_snapshot* snapshot = nullptr;
    cairn_logits* row = nullptr;
    switch (byte() % 8) {
      case 0:
      case 1:
      case 2:
        return keep(cairn_conversation_open(any<cairn_engine>(), &c, &e), c);
      case 3:
        return keep(cairn_snapshot_take(any<cairn_conversation>(), &snapshot, &e), snapshot);
      case 4:
        return keep(cairn_fork(any<cairn_conversation>(), any<cairn_snapshot>(), &c, &e), c);
      case 5:
        return keep(cairn_logits_acquire(any<cairn_conversation>(), &row, &e), row);
      case 6:
        cairn_conversation_close(any<cairn_conversation>());
        return CAIRN_OK;
      default:
        cairn_snapshot_release(any<cairn_snapshot>());
        cairn_logits_release(any<cairn_logits>());
        return CAIRN_OK;
    }
  }

  cairn_status read(cairn_error& e) {
    auto plan = sized<cairn_plan>();
    std::vector<cairn_token> tokens;
    switch (byte() % 6) {
      case 0:
        for (uint32_t count = number() % 20; count > 0; --count) {
          tokens.push_back(cairn_token(number()));
        }
        return cairn_prefill(any<cairn_conversation>(), tokens.data(), tokens.size(), &plan, &e);
      case 1:
        return cairn_sync(any<cairn_conversation>(), kPrompt, number() % 7, &plan, &e);
      case 2:
        return cairn_rewind(any<cairn_conversation>(), number(), &plan, &e);
      case 3:
        return cairn_plan_rewind(any<cairn_conversation>(), number(), &plan, &e);
      case 4:
        return cairn_rewind_to(any<cairn_conversation>(), any<cairn_snapshot>(), &plan, &e);
      default:
        return cairn_reset(any<cairn_conversation>(), &e);
    }
  }

  cairn_status answer(cairn_error& e) {
    auto event = sized<cairn_event>();
    cairn_token token = 0;
    std::array<char, 512> out{};
    size_t bytes = 0;
    switch (byte() % 8) {
      case 7: {
        const std::vector<float> row(byte() % 2 == 0 ? opened_.first_row.size() : byte(),
                                     float(byte()));
        return cairn_set_logits(any<cairn_conversation>(), row.data(), row.size(), &e);
      }
      case 0:
        return cairn_start(any<cairn_conversation>(), &e);
      case 1:
        return cairn_poll(any<cairn_conversation>(), &event, &e);
      case 2:
        return cairn_sample(any<cairn_conversation>(), nullptr, 0, &token, &e);
      case 3:
        return set_sampling(e);
      case 4:
        cairn_cancel(any<cairn_conversation>());
        return CAIRN_OK;
      case 5:
        return cairn_receipt(any<cairn_conversation>(), out.data(), out.size(), &bytes, &e);
      default:
        return cairn_next(any<cairn_conversation>(), &event, &e);
    }
  }

  // All answers are short, whatever else is asked for.
  cairn_status set_sampling(cairn_error& e) {
    auto sampling = sized<cairn_sampling>();
    if (sampling.struct_size == sizeof sampling) {
      cairn_sampling_init(opened_.model, &sampling, sizeof sampling);
    }
    sampling.max_tokens = int32_t(number() % 6);
    sampling.flags = byte();
    const std::string form = text();
    float* const reals[] = {&sampling.temperature,  &sampling.top_p,    &sampling.typical_p,
                            &sampling.mirostat_eta, &sampling.dry_base, &sampling.min_p};
    const uint32_t bits = number();
    std::memcpy(reals[byte() % std::size(reals)], &bits, sizeof bits);
    const char** const texts[] = {&sampling.grammar, &sampling.json_schema, &sampling.stop_json,
                                  &sampling.logit_bias_json, &sampling.samplers};
    if (byte() % 2 == 0) *texts[byte() % std::size(texts)] = form.c_str();
    return cairn_set_sampling(any<cairn_conversation>(), &sampling, &e);
  }

  cairn_status ask(cairn_error& e) {
    auto facts = sized<cairn_engine_facts>();
    auto memory = sized<cairn_memory>();
    auto plan = sized<cairn_plan>();
    std::array<cairn_token, 32> tokens{};
    std::array<char, 64> written{};
    size_t count = 0;
    const std::string given = text();
    switch (byte() % 7) {
      case 0:
        return cairn_engine_get_facts(any<cairn_engine>(), &facts, &e);
      case 1:
        return cairn_engine_get_memory(any<cairn_engine>(), &memory, &e);
      case 2:
        return cairn_plan_prompt(any<cairn_engine>(), kPrompt, number() % 7, &plan, &e);
      case 3:
        return cairn_tokenize(any<cairn_model>(), given.data(), given.size(), byte(), tokens.data(),
                              tokens.size(), &count, &e);
      case 4:
        for (cairn_token& each : tokens) each = cairn_token(number());
        return cairn_detokenize(any<cairn_model>(), tokens.data(), number() % 33, byte(),
                                written.data(), written.size(), &count, &e);
      case 5:
        return cairn_chat_render(any<cairn_model>(), given.data(), given.size(), tokens.data(),
                                 tokens.size(), &count, &e);
      default:
        return cairn_save(any<cairn_conversation>(), given.c_str(), &e);
    }
  }

  const Opened& opened_;
  const uint8_t* data_;
  size_t size_, at_ = 0;
  std::array<void*, 12> handles_;
  std::vector<void*> made_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Opened opened;
  Caller first(&opened, data, size / 2), second(&opened, data + size / 2, size - size / 2);
  std::thread other([&] { second.run(); });
  first.run();
  other.join();
  const std::vector<float> row = opened.row();
  CHECK(row.size() == opened.first_row.size());
  CHECK(std::memcmp(row.data(), opened.first_row.data(), row.size() * sizeof(float)) == 0);
  return 0;
}
