// A shared library that may not be there, opened at run time. Owns its handle.
#pragma once

#include <string>

namespace bench {

class DynamicLibrary {
 public:
  explicit DynamicLibrary(const char* name);
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;
  ~DynamicLibrary();

  bool loaded() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }

  // Sets `function` to the symbol's address; false when the library does not have it.
  template <class Function>
  bool find(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(address(symbol));
    return function != nullptr;
  }

 private:
  void* address(const char* symbol) const;

  void* handle_ = nullptr;
  std::string error_;
};

}  // namespace bench
