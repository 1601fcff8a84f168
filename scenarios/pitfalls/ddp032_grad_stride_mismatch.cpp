#include "scenarios/pitfalls/checks.hpp"
#include "scenarios/pitfalls/judges.hpp"
#include "scenarios/pitfalls/laboratory/trial_prices.hpp"

namespace bench::pitfalls {

using diagnose::Wrap;
using diagnose::Wrapper;

void check_grad_stride_mismatch(const Program& program, Report& report) {
  for (const CallRef& call : program.calls_named("to")) {
    const Ref format = call.keyword("memory_format");
    if (!format || program.qualified(format) != "torch.channels_last" || !call.receiver()) continue;
    const Wrap* wrap = program.wrap_of(call.receiver(), Wrapper::ddp);
    if (wrap == nullptr || !program.runs_before(wrap->call.ref(), call.ref())) continue;
    report
        .at(call.ref(), Confidence::likely,
            "channels_last after wrapping: DDP's buckets keep the old strides, and every gradient "
            "is copied")
        .help = "Convert before wrapping.";
  }
}

namespace {

constexpr std::string_view kOtherStrides = "Grad strides do not match bucket view strides";

std::string stride_warning(const RunEvidence& run) {
  for (const Json& rank : run.ranks())
    for (const Json& warning : rank.value("warnings", Json::array()))
      if (warning.get<std::string>().find(kOtherStrides) != std::string::npos) return warning;
  return {};
}

}  // namespace

void judge_grad_stride_mismatch(const RunEvidence& run, RunReport& report) {
  const std::string warning = stride_warning(run);
  if (warning.empty()) return;
  Finding& finding = report.add(Confidence::certain,
                                "gradients have other strides than their places in the buckets: "
                                "each is converted when it is copied");
  finding.help = "Change the memory format before wrapping.";
  finding.evidence.emplace_back("warning", warning);
}

Price price_grad_stride_mismatch(const RunEvidence& broken, const RunEvidence& cured) {
  Price price;
  const std::string warning = stride_warning(broken);
  price.reproduced = !warning.empty();
  price.gone = cured.first("weight_bytes") != nullptr && stride_warning(cured).empty();
  price.cost = broken.number("weight_bytes");
  price.unit = "bytes converted per step, there and back";
  price.seen = "UserWarning: " + warning.substr(0, warning.find('.'));
  return price;
}

}  // namespace bench::pitfalls
