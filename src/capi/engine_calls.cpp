// The functions of cairn.h about engines.
#include <cairn.h>

#include <atomic>
#include <cfenv>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/blocked_signals.h"
#include "capi/border.h"
#include "capi/built_in.h"
#include "capi/convert.h"
#include "capi/engine_options.h"
#include "capi/objects.h"
#include "capi/runtime_engine.h"
#include "runtimes/selection.h"

namespace cairn::capi {

namespace {

// On a thread of its own, whose CPU, signals and floating-point state are the library's, and with
// them those of all threads that it starts. A callback may end the thread, as those of Python do
// when the program ends: that passes here as an exception that is none of the standard library's,
// and that nobody may catch for good. Errors: io: the system gives no thread.
Answer run_apart(const std::function<Answer()>& work) {
  Answer answer = {CAIRN_E_INTERNAL, "engine: a callback has ended the thread"};
  try {
    const BlockedSignals blocked;
    std::thread thread([&] {
      std::fesetenv(FE_DFL_ENV);
      try {
        answer = work();
      } catch (const std::exception&) {
        answer = caught();
      }
    });
    thread.join();
  } catch (const std::system_error& refused) {
    return fail(ErrorCode::io, "engine: the system gives no thread: {}", refused.what());
  }
  return answer;
}

// Asks the caller on the thread that loads; others learn what was said.
class Progress {
 public:
  Progress(const cairn_engine_params& params, EngineOptions& options)
      : call_(params.progress), user_(params.user) {
    if (call_ == nullptr) return;
    options.on_progress = [this](size_t done, size_t total) {
      if (!is_given_up_) tell(total == 0 ? 1.0f : float(double(done) / double(total)));
    };
    options.is_given_up = [this] { return is_given_up_.load(); };
  }

 private:
  void tell(float done) {
    const InCallback here;
    is_given_up_ = !call_(user_, done);
  }

  bool (*call_)(void* user, float done);
  void* user_;
  std::atomic<bool> is_given_up_ = false;
};

Result<std::shared_ptr<EngineObject>> load_built_in(gguf::File file, const EngineTerms& terms) {
  CAIRN_TRY(std::unique_ptr<Engine> engine, Engine::load(std::move(file), terms.engine));
  CAIRN_TRY(std::shared_ptr<BuiltInEngine> made,
            BuiltInEngine::start(std::move(engine), terms.scheduler));
  return std::shared_ptr<EngineObject>(std::move(made));
}

// Other runtimes tell of no progress but the end.
Result<std::shared_ptr<EngineObject>> load_other(std::shared_ptr<ModelObject> model,
                                                 const runtimes::RuntimeType& type,
                                                 const EngineOptions& options) {
  const runtimes::RuntimeOptions wanted{.thread_count = options.thread_count,
                                        .context_tokens = options.context_tokens};
  CAIRN_TRY(std::shared_ptr<RuntimeEngine> made,
            RuntimeEngine::open(std::move(model), type, wanted));
  if (options.on_progress) options.on_progress(1, 1);
  if (options.is_given_up && options.is_given_up()) {
    return fail(ErrorCode::cancelled, "{}: given up", type.name);
  }
  return std::shared_ptr<EngineObject>(std::move(made));
}

Answer load(std::shared_ptr<ModelObject> model, const cairn_engine_params& params,
            std::shared_ptr<EngineObject>& made) {
  Result<EngineTerms> terms = engine_terms_of(params);
  if (!terms) return terms.error();
  Result<gguf::File> file = gguf::File::open(model->path);
  if (!file) return file.error();
  if (file->digest() != model->digest) {
    return {CAIRN_E_MISMATCH, model->path + ": expected the file that was opened, found another"};
  }
  auto type = runtimes::choose(runtimes::runtime_types(), terms->backend,
                               {.path = model->path, .file = &*file}, terms->others_fit);
  if (!type) return type.error();
  const auto progress = std::make_unique<Progress>(params, terms->engine);
  Result<std::shared_ptr<EngineObject>> loaded =
      *type == nullptr ? load_built_in(std::move(*file), *terms)
                       : load_other(std::move(model), **type, terms->engine);
  if (!loaded) return loaded.error();
  made = std::move(*loaded);
  return {};
}

Answer open_engine(const cairn_model* m, const cairn_engine_params* p, cairn_engine** out) {
  if (out == nullptr) return invalid("out: expected a place, found NULL");
  *out = nullptr;
  auto model = object_of<ModelObject>(m);
  if (model == nullptr) return no_handle("model");
  cairn_engine_params params{};
  if (p != nullptr) {
    if (Status taken = take_struct(p, "params", params); !taken) return taken;
  }
  std::shared_ptr<EngineObject> made;
  const Answer answer = run_apart([&] { return load(std::move(model), params, made); });
  if (answer.status != CAIRN_OK) return answer;
  return hand_out(std::move(made), out);
}

Status check_ids(const EngineObject& engine, std::span<const cairn_token> ids) {
  const int32_t count = engine.traits().vocabulary_count;
  for (const cairn_token id : ids) {
    if (id >= 0 && id < count) continue;
    return fail(ErrorCode::invalid_argument, "tokens: expected ids below {}, found {}", count, id);
  }
  return Ok{};
}

Answer check_makes_text(const EngineObject& object, std::string_view what) {
  if (!object.traits().makes_vectors) return {};
  return {CAIRN_E_UNSUPPORTED,
          std::string(what) + ": expected an engine that makes text, found one with pooling"};
}

Answer plan_prompt(EngineObject& object, const cairn_token* tokens, size_t count, cairn_plan* out) {
  if (Status checked = check_out(out, "plan"); !checked) return checked;
  auto ids = list_of(tokens, count, "tokens");
  if (!ids) return ids.error();
  if (Answer checked = check_makes_text(object, "plan"); checked.status != CAIRN_OK) return checked;
  if (Status checked = check_ids(object, *ids); !checked) return checked;
  const std::vector<Token> prompt = tokens_of(*ids);
  fill(out, prompt.empty() ? cairn_plan{} : object.plan_prompt(prompt));
  return {};
}

Answer embed(EngineObject& object, const cairn_token* tokens, size_t count, float* out,
             size_t capacity, size_t* floats) {
  if (floats == nullptr) return invalid("floats: expected a place, found NULL");
  *floats = 0;
  auto ids = list_of(tokens, count, "tokens");
  if (!ids) return ids.error();
  if (!object.traits().makes_vectors) {
    return {CAIRN_E_UNSUPPORTED,
            "vectors: expected an engine with pooling, found one that makes "
            "text"};
  }
  if (Status checked = check_ids(object, *ids); !checked) return checked;
  auto made = object.embed(tokens_of(*ids));
  if (!made) return made.error();
  return hand_out_list(std::span<const float>(*made), out, out == nullptr ? 0 : capacity, floats);
}

Answer score(EngineObject& object, const cairn_token* tokens, size_t count, float* logprobs,
             cairn_token* likeliest, size_t capacity) {
  auto ids = list_of(tokens, count, "tokens");
  if (!ids) return ids.error();
  if (Answer checked = check_makes_text(object, "score"); checked.status != CAIRN_OK)
    return checked;
  if (count == 0) return invalid("tokens: expected at least one, found none");
  if (Status checked = check_ids(object, *ids); !checked) return checked;
  if (capacity < count - 1) {
    return fail(ErrorCode::no_room, "buffer: expected room for {}, found {}", count - 1, capacity);
  }
  if (count > 1 && logprobs == nullptr) return invalid("logprobs: expected a buffer, found NULL");
  auto made = object.score(tokens_of(*ids));
  if (!made) return made.error();
  for (size_t index = 0; index < made->size(); ++index) {
    const sample::LogProbabilities& each = (*made)[index];
    logprobs[index] = each.chosen.log_probability;
    if (likeliest != nullptr) likeliest[index] = index_of(each.top.front().token);
  }
  return {};
}

}  // namespace

}  // namespace cairn::capi

using cairn::capi::Answer;
using cairn::capi::EngineObject;
using cairn::capi::guarded;
using cairn::capi::guarded_value;
using cairn::capi::object_of;

void cairn_engine_params_init(cairn_engine_params* p, uint32_t struct_size) {
  guarded_value(0, [&] {
    cairn::capi::initialise(p, struct_size, cairn_engine_params{});
    return 0;
  });
}

cairn_status cairn_engine_open(cairn_model* m, const cairn_engine_params* p, cairn_engine** out,
                               cairn_error* e) {
  return guarded(e, [&] { return cairn::capi::open_engine(m, p, out); });
}

void cairn_engine_close(cairn_engine* g) {
  guarded_value(0, [&] {
    cairn::capi::take_object<EngineObject>(g);
    return 0;
  });
}

cairn_status cairn_engine_get_facts(const cairn_engine* g, cairn_engine_facts* out,
                                    cairn_error* e) {
  return guarded(e, [&]() -> Answer {
    const auto engine = object_of<EngineObject>(g);
    if (engine == nullptr) return cairn::capi::no_handle("engine");
    if (auto checked = cairn::capi::check_out(out, "facts"); !checked) return checked;
    cairn::capi::fill(out, engine->facts());
    return {};
  });
}

cairn_status cairn_engine_get_memory(const cairn_engine* g, cairn_memory* out, cairn_error* e) {
  return guarded(e, [&]() -> Answer {
    const auto engine = object_of<EngineObject>(g);
    if (engine == nullptr) return cairn::capi::no_handle("engine");
    if (auto checked = cairn::capi::check_out(out, "memory"); !checked) return checked;
    cairn::capi::fill(out, engine->memory());
    return {};
  });
}

cairn_status cairn_plan_prompt(cairn_engine* g, const cairn_token* tokens, size_t count,
                               cairn_plan* out, cairn_error* e) {
  return guarded(e, [&]() -> Answer {
    const auto engine = object_of<EngineObject>(g);
    if (engine == nullptr) return cairn::capi::no_handle("engine");
    return cairn::capi::plan_prompt(*engine, tokens, count, out);
  });
}

cairn_status cairn_embed(cairn_engine* g, const cairn_token* tokens, size_t count, float* out,
                         size_t capacity, size_t* floats, cairn_error* e) {
  return guarded(e, [&]() -> Answer {
    const auto engine = object_of<EngineObject>(g);
    if (engine == nullptr) return cairn::capi::no_handle("engine");
    return cairn::capi::embed(*engine, tokens, count, out, capacity, floats);
  });
}

cairn_status cairn_score(cairn_engine* g, const cairn_token* tokens, size_t count, float* logprobs,
                         cairn_token* likeliest, size_t capacity, cairn_error* e) {
  return guarded(e, [&]() -> Answer {
    const auto engine = object_of<EngineObject>(g);
    if (engine == nullptr) return cairn::capi::no_handle("engine");
    return cairn::capi::score(*engine, tokens, count, logprobs, likeliest, capacity);
  });
}
