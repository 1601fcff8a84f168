#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/facts.hpp"
#include "scenarios/pitfalls/loaders.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;
using diagnose::Source;

namespace {

bool says_total(std::string_view name) {
  const std::string plain = facts::lowered(name);
  return facts::contains(plain, "batch") &&
         (facts::contains(plain, "total") || facts::contains(plain, "global") ||
          facts::contains(plain, "effective"));
}

}  // namespace

void check_batch_size_not_divided(const Program& program, Report& report) {
  if (!facts::is_distributed(program) || program.framework_distributes()) return;
  for (const CallRef& loader : program.calls(Api::data_loader)) {
    const Ref batch = loader.argument(1, "batch_size");
    if (!batch || !sampler_of(program, loader)) continue;
    if (batch.kind() != Kind::identifier && batch.kind() != Kind::attribute &&
        batch.kind() != Kind::subscript)
      continue;
    if (!says_total(batch.text())) continue;
    bool computed = false;
    for (const Source& source : program.sources(batch))
      computed = computed || source.ref.kind() == Kind::binary;
    if (computed) continue;
    Finding& finding = report.at(batch, Confidence::likely,
                                 "a total batch size is given to every rank's loader: the global "
                                 "batch is world size times larger");
    finding.severity = Severity::warning;
    finding.help = "Divide it by the world size.";
  }
}

}  // namespace bench::pitfalls
