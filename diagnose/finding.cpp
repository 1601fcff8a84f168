#include "diagnose/finding.hpp"

namespace bench::diagnose {

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::info:
      return "info";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
  }
  return "error";
}

std::string_view name_of(Confidence confidence) {
  switch (confidence) {
    case Confidence::certain:
      return "certain";
    case Confidence::likely:
      return "likely";
    case Confidence::check:
      return "check";
  }
  return "check";
}

std::string_view name_of(Category category) {
  switch (category) {
    case Category::correctness:
      return "correctness";
    case Category::throughput:
      return "throughput";
    case Category::memory:
      return "memory";
    case Category::hang:
      return "hang";
    case Category::portability:
      return "portability";
    case Category::deprecated:
      return "deprecated";
  }
  return "correctness";
}

}  // namespace bench::diagnose
