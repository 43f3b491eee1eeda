// A view of something callable: two pointers, no ownership, no allocation. For parameters that are
// called before the function returns; never for storage beyond the life of what it refers to.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace cairn {

template <class Signature>
class FunctionRef;

template <class Return, class... Args>
class FunctionRef<Return(Args...)> {
 public:
  // Implicit, so that a lambda can be passed where a FunctionRef is asked for.
  template <class Callable>
  requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef> &&
           std::is_invocable_r_v<Return, Callable&, Args...>) FunctionRef(Callable&& callable)
      : object_(address_of(callable)), call_([](void* object, Args... args) -> Return {
          using Pointer = std::add_pointer_t<std::remove_reference_t<Callable>>;
          return (*reinterpret_cast<Pointer>(object))(std::forward<Args>(args)...);
        }) {}

  Return operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  template <class Callable>
  static void* address_of(Callable& callable) {
    // A function is no object; POSIX promises that its address fits a void* all the same.
    if constexpr (std::is_function_v<Callable>)
      return reinterpret_cast<void*>(&callable);
    else
      return const_cast<void*>(static_cast<const void*>(std::addressof(callable)));
  }

  void* object_;
  Return (*call_)(void* object, Args... args);
};

}  // namespace cairn
