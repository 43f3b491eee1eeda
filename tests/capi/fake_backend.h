// The fake runtime as a backend of cairn.h, by the name "fake": a table of runtimes with it alone,
// in the library's place. Its engines are made as the settings have it when they are opened.
#pragma once

#include <atomic>

#include "tests/runtimes/fake_runtime.h"

namespace cairn::test {

struct FakeSettings {
  FakeSwitches switches;
  bool is_available = true;
  FakeRuntime* last = nullptr;  // That which was loaded last.
};

FakeSettings& fake_settings();

}  // namespace cairn::test
