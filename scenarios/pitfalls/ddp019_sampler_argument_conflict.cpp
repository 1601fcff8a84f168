#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/edits.hpp"
#include "scenarios/pitfalls/loaders.hpp"

namespace bench::pitfalls {

using diagnose::Api;
using diagnose::Kind;

void check_sampler_argument_conflict(const Program& program, Report& report) {
  for (const CallRef& loader : program.calls(Api::data_loader)) {
    const Ref shuffle = loader.argument(2, "shuffle");
    const Ref sampler = loader.argument(3, "sampler");
    if (shuffle && shuffle.kind() == Kind::true_literal && sampler &&
        sampler.kind() != Kind::none_literal &&
        (sampler_of(program, loader) || sampler.kind() == Kind::call)) {
      Finding& finding = report.at(
          shuffle, Confidence::certain,
          "shuffle=True together with a sampler: ValueError \"sampler option is mutually exclusive "
          "with shuffle\"");
      finding.help =
          "Drop shuffle: the DistributedSampler shuffles. shuffle=(sampler is None) serves both.";
      if (loader.keyword("shuffle")) remove_argument(loader, "shuffle", "Drop shuffle", finding);
    }
    if (sampler && sampler_of(program, loader) && reads_iterable_dataset(program, loader))
      report
          .at(sampler, Confidence::certain,
              "a sampler for an IterableDataset: ValueError \"expected unspecified sampler "
              "option\"")
          .help = "Split the stream by rank inside the data set.";
  }
}

}  // namespace bench::pitfalls
