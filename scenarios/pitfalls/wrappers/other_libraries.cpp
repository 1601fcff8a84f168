#include "scenarios/pitfalls/wrappers/other_libraries.hpp"

#include "scenarios/pitfalls/program/argument_for.hpp"
#include "scenarios/pitfalls/program/facts.hpp"
#include "scenarios/pitfalls/program/words.hpp"

#include <algorithm>
#include <string_view>

namespace bench::pitfalls {

bool is_of_another_library(const Program& program, Ref object) {
  const auto function = program.enclosing_function(object);
  if (!function || !facts::is_parameter(program, object)) return false;
  const auto words = words_of_name(function.function->name);
  // export_onnx(model) is given PyTorch's model.
  if (says_any(function.function->name, {"export", "convert", "save", "to_"})) return false;
  const auto& sites = program.call_sites(function);
  if (std::any_of(sites.begin(), sites.end(), [&](const CallRef& site) {
        const auto given = facts::arguments_of(site);
        return std::any_of(given.begin(), given.end(), [&](Ref each) {
          return !facts::is_parameter(program, each) && program.wrap_of(each) != nullptr;
        });
      }))
    return false;
  return std::any_of(words.begin(), words.end(), [](std::string_view word) {
    for (const std::string_view library :
         {"tf", "tflite", "tensorflow", "keras", "onnx", "onnxruntime", "ort", "trt", "tensorrt",
          "openvino", "coreml", "jax", "flax"})
      if (word == library) return true;
    return false;
  });
}

}  // namespace bench::pitfalls
