// The functions of cairn.h about conversations, snapshots and logits.
#include <cairn.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/border.h"
#include "capi/conversation.h"
#include "capi/convert.h"
#include "capi/objects.h"
#include "capi/sampling.h"
#include "session/receipt_text.h"

namespace cairn::capi {

namespace {

// A conversation and the right to use it, as long as the call lasts.
struct Used {
  std::shared_ptr<Conversation> object;
  std::unique_lock<std::mutex> right;

  Conversation* operator->() const { return object.get(); }
};

// Runs `body` with the conversation, or says why not.
template <class Body>
cairn_status with_conversation(const cairn_conversation* c, cairn_error* e, bool may_stream,
                               Body body) {
  return guarded(e, [&]() -> Answer {
    auto object = object_of<Conversation>(c);
    if (object == nullptr) return no_handle("conversation");
    auto right = object->use(may_stream);
    if (!right) {
      return {CAIRN_E_BUSY,
              "conversation: expected no other call and no answer that is being "
              "made, found one"};
    }
    const Used used{std::move(object), std::move(right)};
    return body(used);
  });
}

Answer check_place(const void* out) {
  return out != nullptr ? Answer() : invalid("out: expected a place, found NULL");
}

// The tokens before and these, read; `done` is filled.
Answer read_behind(const Used& c, std::vector<Token> all, const cairn_token* tokens, size_t count,
                   cairn_plan* done) {
  if (Status checked = check_out(done, "done", true); !checked) return checked;
  auto ids = list_of(tokens, count, "tokens");
  if (!ids) return ids.error();
  if (Status checked = c->check(*ids, all.size()); !checked) return checked;
  const std::vector<Token> added = tokens_of(*ids);
  all.insert(all.end(), added.begin(), added.end());
  cairn_plan plan{};
  Answer answer = c->read(std::move(all), nullptr, plan);
  if (answer.status == CAIRN_OK) fill(done, plan);
  return answer;
}

Answer check_position(const Used& c, uint32_t position) {
  if (position <= c->tokens().size()) return {};
  return fail(ErrorCode::invalid_argument, "position: expected at most {}, found {}",
              c->tokens().size(), position);
}

Answer rewind(const Used& c, uint32_t position, cairn_plan* done) {
  if (Answer checked = check_position(c, position); checked.status != CAIRN_OK) return checked;
  if (Status checked = check_out(done, "done", true); !checked) return checked;
  const std::vector<Token>& tokens = c->tokens();
  cairn_plan plan{};
  Answer answer = c->read({tokens.begin(), tokens.begin() + position}, nullptr, plan);
  if (answer.status == CAIRN_OK) fill(done, plan);
  return answer;
}

Answer check_snapshot(const Used& c, const SnapshotObject* snapshot) {
  if (snapshot == nullptr) return no_handle("snapshot");
  if (snapshot->engine == c->engine()) return {};
  return {CAIRN_E_MISMATCH, "snapshot: expected one of this engine, found one of another"};
}

Answer rewind_to(const Used& c, const cairn_snapshot* s, cairn_plan* done) {
  const auto snapshot = object_of<SnapshotObject>(s);
  if (Answer checked = check_snapshot(c, snapshot.get()); checked.status != CAIRN_OK) {
    return checked;
  }
  if (Status checked = check_out(done, "done", true); !checked) return checked;
  cairn_plan plan{};
  Answer answer = c->read(snapshot->tokens, snapshot.get(), plan);
  if (answer.status == CAIRN_OK) fill(done, plan);
  return answer;
}

Answer hand_out_conversation(std::shared_ptr<Conversation> made, cairn_conversation** out) {
  if (Status done = hand_out(made, out); !done) return done;
  made->set_handle(reinterpret_cast<uintptr_t>(*out));
  return {};
}

Answer fork(const Used& c, const cairn_snapshot* s, cairn_conversation** out) {
  if (Answer checked = check_place(out); checked.status != CAIRN_OK) return checked;
  *out = nullptr;
  std::shared_ptr<SnapshotObject> snapshot;
  if (s != nullptr) {
    snapshot = object_of<SnapshotObject>(s);
    if (Answer checked = check_snapshot(c, snapshot.get()); checked.status != CAIRN_OK) {
      return checked;
    }
  }
  auto made = c->fork(snapshot.get());
  if (!made) return made.error();
  return hand_out_conversation(std::move(*made), out);
}

// Errors: unsupported: no store; invalid: no such name.
Answer check_name(const Used& c, const char* name) {
  if (!c->engine()->traits().has_store) {
    return {CAIRN_E_UNSUPPORTED,
            "store: expected an engine that was opened with store_path, found "
            "one without"};
  }
  constexpr size_t kBytesMax = 64;
  const std::string_view text = name == nullptr ? std::string_view() : std::string_view(name);
  const auto is_letter_or_digit = [](char each) {
    return (each >= 'a' && each <= 'z') || (each >= 'A' && each <= 'Z') ||
           (each >= '0' && each <= '9');
  };
  bool is_right = !text.empty() && text.size() <= kBytesMax && is_letter_or_digit(text[0]);
  for (const char each : text) {
    is_right = is_right && (is_letter_or_digit(each) || each == '.' || each == '_' || each == '-');
  }
  if (is_right) return {};
  return invalid(
      "name: expected up to 64 letters, digits, \".\", \"_\" and \"-\", the first a "
      "letter or digit, found others");
}

Answer next_event(const Used& c, cairn_event* out, bool may_wait) {
  if (Status checked = check_out(out, "event"); !checked) return checked;
  if (!may_wait && !c->is_streaming()) {
    return invalid("poll: expected an answer that is made in the background, found none");
  }
  Answer answer = c->next(may_wait);
  cairn_event event{};
  if (answer.status == CAIRN_OK || answer.status == CAIRN_DONE) c->show_event(event);
  fill(out, event);
  return answer;
}

Answer sample(const Used& c, const float* logits, size_t count, cairn_token* out) {
  if (Answer checked = check_place(out); checked.status != CAIRN_OK) return checked;
  auto given = list_of(logits, logits == nullptr ? 0 : count, "logits");
  if (!given) return given.error();
  if (logits != nullptr && count == 0) return invalid("logits: expected floats, found none");
  Token token{};
  Answer answer = c->sample(*given, token);
  if (answer.status == CAIRN_OK) *out = index_of(token);
  return answer;
}

Answer set_logits(const Used& c, const float* logits, size_t count) {
  auto given = list_of(logits, count, "logits");
  if (!given) return given.error();
  return c->give_logits(*given);
}

Answer receipt(const Used& c, char* out, size_t capacity, size_t* bytes) {
  if (Answer checked = check_place(bytes); checked.status != CAIRN_OK) return checked;
  *bytes = 0;
  if (out == nullptr && capacity > 0) return invalid("out: expected a buffer, found NULL");
  const std::shared_ptr<const session::Receipt> receipt = c->receipt();
  if (receipt == nullptr) {
    return invalid(
        "receipt: expected an answer that has ended and was begun with CAIRN_SAMPLING_RECEIPT, "
        "found none");
  }
  Result<std::string> text = session::receipt_text(*receipt);
  if (!text) return text.error();
  return hand_out_list(std::span<const char>(*text), out, capacity, bytes);
}

}  // namespace

}  // namespace cairn::capi

using cairn::capi::Answer;
using cairn::capi::Conversation;
using cairn::capi::guarded;
using cairn::capi::guarded_value;
using cairn::capi::LogitsObject;
using cairn::capi::object_of;
using cairn::capi::SnapshotObject;
using cairn::capi::take_object;
using cairn::capi::Used;
using cairn::capi::with_conversation;

cairn_status cairn_conversation_open(cairn_engine* g, cairn_conversation** out, cairn_error* e) {
  return guarded(e, [&]() -> Answer {
    if (Answer checked = cairn::capi::check_place(out); checked.status != CAIRN_OK) return checked;
    *out = nullptr;
    auto engine = object_of<cairn::capi::EngineObject>(g);
    if (engine == nullptr) return cairn::capi::no_handle("engine");
    auto made = Conversation::open(std::move(engine));
    if (!made) return made.error();
    return cairn::capi::hand_out_conversation(std::move(*made), out);
  });
}

// A call that uses it at the moment sees the mark, and is the last that holds it.
void cairn_conversation_close(cairn_conversation* c) {
  guarded_value(0, [&] {
    cairn::capi::handles::set_mark(reinterpret_cast<uintptr_t>(c));
    take_object<Conversation>(c);
    return 0;
  });
}

const cairn_token* cairn_tokens(const cairn_conversation* c, size_t* count) {
  if (count != nullptr) *count = 0;
  return guarded_value<const cairn_token*>(nullptr, [&]() -> const cairn_token* {
    auto object = object_of<Conversation>(c);
    if (object == nullptr) return nullptr;
    const auto right = object->use(true);
    if (!right || object->tokens().empty()) return nullptr;
    const auto ids = cairn::capi::ids_of(object->tokens());
    if (count != nullptr) *count = ids.size();
    return ids.data();
  });
}

cairn_status cairn_prefill(cairn_conversation* c, const cairn_token* tokens, size_t count,
                           cairn_plan* done, cairn_error* e) {
  return with_conversation(c, e, false, [&](const Used& used) {
    return cairn::capi::read_behind(used, used->tokens(), tokens, count, done);
  });
}

cairn_status cairn_sync(cairn_conversation* c, const cairn_token* tokens, size_t count,
                        cairn_plan* done, cairn_error* e) {
  return with_conversation(c, e, false, [&](const Used& used) {
    return cairn::capi::read_behind(used, {}, tokens, count, done);
  });
}

cairn_status cairn_rewind(cairn_conversation* c, uint32_t position, cairn_plan* done,
                          cairn_error* e) {
  return with_conversation(
      c, e, false, [&](const Used& used) { return cairn::capi::rewind(used, position, done); });
}

cairn_status cairn_plan_rewind(cairn_conversation* c, uint32_t position, cairn_plan* out,
                               cairn_error* e) {
  return with_conversation(c, e, false, [&](const Used& used) -> Answer {
    if (auto checked = cairn::capi::check_out(out, "plan"); !checked) return checked;
    Answer checked = cairn::capi::check_position(used, position);
    if (checked.status != CAIRN_OK) return checked;
    cairn::capi::fill(out, used->plan(position));
    return {};
  });
}

cairn_status cairn_reset(cairn_conversation* c, cairn_error* e) {
  return with_conversation(c, e, false, [](const Used& used) -> Answer {
    used->reset();
    return {};
  });
}

cairn_status cairn_set_sampling(cairn_conversation* c, const cairn_sampling* p, cairn_error* e) {
  return with_conversation(c, e, false, [&](const Used& used) -> Answer {
    if (p == nullptr) return cairn::capi::invalid("sampling: expected a struct, found NULL");
    cairn_sampling sampling{};
    if (auto taken = cairn::capi::take_struct(p, "sampling", sampling); !taken) return taken;
    auto terms = cairn::capi::terms_of(sampling, *used->engine());
    if (!terms) return terms.error();
    used->set_terms(std::move(*terms));
    return {};
  });
}

cairn_status cairn_sample(cairn_conversation* c, const float* logits, size_t count,
                          cairn_token* out, cairn_error* e) {
  return with_conversation(
      c, e, false, [&](const Used& used) { return cairn::capi::sample(used, logits, count, out); });
}

cairn_status cairn_set_logits(cairn_conversation* c, const float* logits, size_t count,
                              cairn_error* e) {
  return with_conversation(
      c, e, false, [&](const Used& used) { return cairn::capi::set_logits(used, logits, count); });
}

cairn_status cairn_next(cairn_conversation* c, cairn_event* out, cairn_error* e) {
  return with_conversation(
      c, e, true, [&](const Used& used) { return cairn::capi::next_event(used, out, true); });
}

cairn_status cairn_start(cairn_conversation* c, cairn_error* e) {
  return with_conversation(c, e, false, [](const Used& used) { return used->start(); });
}

cairn_status cairn_poll(cairn_conversation* c, cairn_event* out, cairn_error* e) {
  return with_conversation(
      c, e, true, [&](const Used& used) { return cairn::capi::next_event(used, out, false); });
}

int cairn_wait_fd(const cairn_conversation* c) {
  return guarded_value(-1, [&] {
    const auto object = object_of<Conversation>(c);
    return object == nullptr ? -1 : object->descriptor();
  });
}

// Takes no lock and changes no state of the thread.
void cairn_cancel(cairn_conversation* c) {
  cairn::capi::handles::set_mark(reinterpret_cast<uintptr_t>(c));
}

cairn_status cairn_receipt(cairn_conversation* c, char* out, size_t capacity, size_t* bytes,
                           cairn_error* e) {
  return with_conversation(c, e, false, [&](const Used& used) {
    return cairn::capi::receipt(used, out, capacity, bytes);
  });
}

cairn_status cairn_logits_acquire(cairn_conversation* c, cairn_logits** out, cairn_error* e) {
  return with_conversation(c, e, false, [&](const Used& used) -> Answer {
    if (Answer checked = cairn::capi::check_place(out); checked.status != CAIRN_OK) return checked;
    *out = nullptr;
    auto made = std::make_shared<LogitsObject>();
    if (Answer found = used->logits(made->row); found.status != CAIRN_OK) return found;
    return cairn::capi::hand_out(std::move(made), out);
  });
}

const float* cairn_logits_data(const cairn_logits* l, size_t* count) {
  if (count != nullptr) *count = 0;
  return guarded_value<const float*>(nullptr, [&]() -> const float* {
    const auto object = object_of<LogitsObject>(l);
    if (object == nullptr) return nullptr;
    if (count != nullptr) *count = object->row.size();
    return object->row.data();
  });
}

void cairn_logits_release(cairn_logits* l) {
  guarded_value(0, [&] {
    take_object<LogitsObject>(l);
    return 0;
  });
}

cairn_status cairn_snapshot_take(cairn_conversation* c, cairn_snapshot** out, cairn_error* e) {
  return with_conversation(c, e, false, [&](const Used& used) -> Answer {
    if (Answer checked = cairn::capi::check_place(out); checked.status != CAIRN_OK) return checked;
    *out = nullptr;
    auto made = used->snapshot();
    if (!made) return made.error();
    return cairn::capi::hand_out(std::move(*made), out);
  });
}

uint32_t cairn_snapshot_position(const cairn_snapshot* s) {
  return guarded_value(uint32_t(0), [&] {
    const auto object = object_of<SnapshotObject>(s);
    return object == nullptr ? 0 : uint32_t(object->tokens.size());
  });
}

void cairn_snapshot_release(cairn_snapshot* s) {
  guarded_value(0, [&] {
    take_object<SnapshotObject>(s);
    return 0;
  });
}

cairn_status cairn_rewind_to(cairn_conversation* c, const cairn_snapshot* s, cairn_plan* done,
                             cairn_error* e) {
  return with_conversation(c, e, false,
                           [&](const Used& used) { return cairn::capi::rewind_to(used, s, done); });
}

cairn_status cairn_fork(cairn_conversation* c, const cairn_snapshot* s, cairn_conversation** out,
                        cairn_error* e) {
  return with_conversation(c, e, false,
                           [&](const Used& used) { return cairn::capi::fork(used, s, out); });
}

cairn_status cairn_save(cairn_conversation* c, const char* name, cairn_error* e) {
  return with_conversation(c, e, false, [&](const Used& used) -> Answer {
    if (Answer checked = cairn::capi::check_name(used, name); checked.status != CAIRN_OK) {
      return checked;
    }
    return used->save(name);
  });
}

cairn_status cairn_restore(cairn_conversation* c, const char* name, cairn_plan* done,
                           cairn_error* e) {
  return with_conversation(c, e, false, [&](const Used& used) -> Answer {
    if (Answer checked = cairn::capi::check_name(used, name); checked.status != CAIRN_OK) {
      return checked;
    }
    if (auto checked = cairn::capi::check_out(done, "done", true); !checked) return checked;
    cairn_plan plan{};
    Answer answer = used->restore(name, plan);
    if (answer.status == CAIRN_OK) cairn::capi::fill(done, plan);
    return answer;
  });
}
