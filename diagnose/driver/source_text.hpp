// The bytes of a file as the UTF-8 text that everything else reads, decoded as Python would: a byte
// order mark, then a coding comment (PEP 263), else UTF-8. What Python would refuse is read all the
// same, and said.
#pragma once

#include "diagnose/driver/source_files.hpp"

#include <string>

namespace bench::diagnose {

struct SourceText {
  std::string text;
  // The text has the offsets of the file, so that an edit of one is an edit of the other.
  bool same_offsets = true;
  // Why the file is not what Python accepts, or why it could not be decoded; empty when there is
  // nothing to say.
  std::string problem;
  bool readable = true;  // false: the text is not the file's
};

SourceText to_source_text(std::string bytes, FileType type);

}  // namespace bench::diagnose
