// What most sources of the modules that run once for a command or a request read besides.
#pragma once

#include "base/file.h"
#include "base/printable.h"
#include "base/quantities.h"
#include "cmake/precompiled.h"
#include "engine/engine.h"
#include "json/value.h"
#include "session/service.h"
#include "terminal/terminal.h"
