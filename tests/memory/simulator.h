// Runs programs of operations on a toy model's memory and looks, after each of them, at every
// live sequence: it must see what its tokens alone would show, hold what its protection demands and
// nothing else, and the pools must count exactly the references that there are. An operation is
// three numbers that are read against the state they meet, so that any part of a program is a
// program.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/memory/inspector.h"
#include "tests/memory/toy_alone.h"
#include "tests/memory/toy_model.h"

namespace cairn::memory::toy {

enum class Action : uint8_t {
  append,
  sample,
  rewind,
  fork,
  edit,
  close,
  speculate,
  cancel,
  replay,
  rest,
  keep_anchor,
  drop_anchor,
  protect,
  partners,
  out_of_memory,
  trim,
  archive,
};
inline constexpr int32_t kActionCount = int32_t(Action::archive) + 1;
std::string_view name(Action action);

struct Operation {
  Action action = Action::append;
  uint32_t a = 0, b = 0, c = 0;
};

struct Program {
  size_t model = 0;  // Of toy_models().
  Options options;
  std::vector<Operation> operations;
};

// Every kind and the mixtures that models have, with windows around page and run borders.
const std::vector<ToyModel>& toy_models();

Program random_program(uint32_t seed, int32_t operation_count);

// What went wrong, and after which operation; nothing if all is well.
std::optional<std::string> run_program(const Program& program);

// The shortest program found that fails still, by leaving out ever smaller parts.
Program shrunk(Program program);
std::string show(const Program& program);

}  // namespace cairn::memory::toy
