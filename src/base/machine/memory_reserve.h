// Memory that is put aside for when the system gives no more: what is under way then ends as it
// should, while what would begin is refused. For programs: the handler that `operator new` asks
// (std::set_new_handler) belongs to the host of a library. Thread rule: any.
#pragma once

namespace cairn {

// From now on `operator new` takes of the reserve where the system refuses, and throws only when
// this is used up as well.
void keep_memory_reserve();

// True where the reserve is whole, or could be made whole again; the first time after a use it says
// so in the log. Where none is kept: true.
bool has_memory_reserve();

}  // namespace cairn
