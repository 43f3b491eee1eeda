// Keeps the headers of this module compiling by themselves.
#include "device/backend.h"
