#include "bench/plan/ddp_sweep.hpp"

#include "bench/core/strategy.hpp"

#include <cstdio>

namespace bench {
namespace {

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

struct BoolOption {
  const char* tag;
  bool pytorch_default;
  const std::vector<bool> Settings::*values;
  void (*set)(Case& work, bool value);
};

constexpr BoolOption kOptions[] = {
    {"find_unused_parameters", false, &Settings::find_unused_parameters,
     [](Case& c, bool value) { c.ddp.find_unused_parameters = value; }},
    {"static_graph", false, &Settings::static_graph,
     [](Case& c, bool value) { c.ddp.static_graph = value; }},
    {"gradient_as_bucket_view", false, &Settings::gradient_as_bucket_view,
     [](Case& c, bool value) { c.ddp.gradient_as_bucket_view = value; }},
    {"broadcast_buffers", true, &Settings::broadcast_buffers,
     [](Case& c, bool value) { c.ddp.broadcast_buffers = value; }},
};

std::vector<Case> vary(const std::vector<Case>& cases, const std::vector<bool>& values,
                       const char* tag, bool pytorch_default, void (*set)(Case&, bool)) {
  std::vector<Case> varied;
  for (const Case& work : cases) {
    for (const bool value : values) {
      Case variant = work;
      set(variant, value);
      if (values.size() > 1 || value != pytorch_default) {
        variant.tags.emplace_back(tag, value ? "true" : "false");
      }
      varied.push_back(std::move(variant));
    }
  }
  return varied;
}

std::vector<Case> vary_bucket_cap(const Case& work, const std::vector<double>& caps_mb) {
  if (caps_mb.empty()) return {work};
  std::vector<Case> varied;
  for (const double cap_mb : caps_mb) {
    Case variant = work;
    variant.ddp.bucket_cap_mb = cap_mb;
    variant.tags.emplace_back("bucket_mb", number_text(cap_mb));
    varied.push_back(std::move(variant));
  }
  return varied;
}

}  // namespace

std::vector<Case> ddp_variants(const Case& work, const Settings& settings) {
  Case base = work;
  if (settings.accumulations.size() > 1 || work.accumulation != 1) {
    base.tags.emplace_back("accumulation", std::to_string(work.accumulation));
  }
  if (work.strategy != Strategy::distributed) return {base};
  std::vector<Case> cases = vary_bucket_cap(base, settings.bucket_caps_mb);
  for (const BoolOption& option : kOptions) {
    cases = vary(cases, settings.*option.values, option.tag, option.pytorch_default, option.set);
  }
  if (work.accumulation == 1) return cases;
  return vary(cases, settings.no_sync, "no_sync", true,
              [](Case& c, bool value) { c.no_sync = value; });
}

}  // namespace bench
