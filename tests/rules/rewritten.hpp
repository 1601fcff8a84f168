// bench diagnose --to-ddp on files in text, of which train.py is the script.
#pragma once

#include "diagnose/driver/diagnose.hpp"
#include "diagnose/to_ddp/rewrite.hpp"

#include <map>
#include <string>

namespace bench::diagnose {

using RewrittenFiles = std::map<std::string, std::string>;

inline Rewrite rewritten(const RewrittenFiles& files, const std::string& script = "train.py") {
  Rewrite out;
  DiagnoseOptions options;
  options.follows_look_ups = true;
  for_each_program_of_texts(files, script, options, [&](const Program& program) {
    out = rewrite_to_ddp(program, [&](const RewrittenFiles& texts, const RewrittenVisit& visit) {
      RewrittenFiles changed = files;
      for (const auto& [file, text] : texts) changed[file] = text;
      const auto found = diagnose_texts(changed, script, options);
      for_each_program_of_texts(changed, script, options,
                                [&](const Program& made) { visit(made, found); });
    });
  });
  return out;
}

}  // namespace bench::diagnose
