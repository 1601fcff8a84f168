#include "report/charts/timeline_strip.hpp"

#include "bench/core/units.hpp"
#include "report/charts/axis.hpp"
#include "report/charts/stacked_bars.hpp"
#include "report/charts/svg.hpp"

#include "profiling/analysis.hpp"
#include "profiling/interval_set.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace bench::report {
namespace {

using profiling::Interval;
using profiling::IntervalKind;
using profiling::IntervalSet;
using profiling::Span;
using profiling::Timeline;
using profiling::TracedStep;
using simulator::Phase;

constexpr double kWidth = 960;
constexpr double kLeft = 64;
constexpr double kRight = 70;
constexpr double kLane = 11;    // height of one lane
constexpr double kDevice = 30;  // two lanes and the room below them
constexpr double kTitle = 28;
constexpr double kAxis = 26;
constexpr double kMsPerNs = 1e-6;
constexpr int kTicks = 8;

// What a lane distinguishes by colour; the order is the legend's.
struct Paint {
  const char* title;
  const char* css_class;
};
constexpr std::array<Paint, 6> kPaints{{{"forward and loss", "t-forward"},
                                        {"backward", "t-backward"},
                                        {"optimizer", "t-optimizer"},
                                        {"other compute", "t-other"},
                                        {"communication between GPUs", "t-comm"},
                                        {"copy from or to the host", "t-copy"}}};
constexpr std::size_t kCommunication = 4;
constexpr std::size_t kHostCopy = 5;

std::size_t paint_of(const Interval& interval) {
  if (profiling::is_communication(interval)) return kCommunication;
  if (interval.kind == IntervalKind::copy) return kHostCopy;
  switch (interval.phase) {
    case Phase::forward:
    case Phase::loss:
      return 0;
    case Phase::backward:
      return 1;
    case Phase::optimizer:
      return 2;
    default:
      return 3;
  }
}

// Spans closer than a fraction of a pixel are one span to the eye; joining them keeps files small.
std::vector<Span> joined(std::vector<Span> spans, std::int64_t gap_ns) {
  for (Span& span : spans) span.end_ns += gap_ns;
  std::vector<Span> result = IntervalSet(std::move(spans)).spans();
  for (Span& span : result) span.end_ns -= gap_ns;
  return result;
}

struct Strip {
  Svg& svg;
  double ns_per_pixel;

  double x(std::int64_t ns) const { return kLeft + static_cast<double>(ns) / ns_per_pixel; }
};

void draw_lane(const Strip& strip, const std::vector<Span>& spans, double y,
               const char* css_class) {
  std::string path;
  for (const Span& span : joined(spans, static_cast<std::int64_t>(strip.ns_per_pixel * 0.25))) {
    // Nothing thinner than a third of a pixel, or short kernels would vanish.
    const double width = std::max(strip.x(span.end_ns) - strip.x(span.begin_ns), 0.33);
    path += "M" + svg_number(strip.x(span.begin_ns)) + "," + svg_number(y) + "h" +
            svg_number(width) + "v" + svg_number(kLane) + "h-" + svg_number(width) + "z";
  }
  if (!path.empty()) strip.svg.path(path, css_class);
}

using DevicePaints = std::array<std::vector<Span>, kPaints.size()>;

// The devices of a step in order; symmetric ranks that are stored once are repeated.
std::vector<DevicePaints> paints_by_device(const Timeline& timeline) {
  std::map<std::int32_t, DevicePaints> stored;
  for (const Interval& interval : timeline.intervals) {
    if (interval.device < 0 || interval.kind == IntervalKind::wait) continue;
    stored[interval.device][paint_of(interval)].push_back({interval.begin_ns, interval.end_ns});
  }
  std::vector<DevicePaints> devices;
  const std::int32_t times = timeline.ranks_collapsed ? timeline.ranks : 1;
  for (std::int32_t rank = 0; rank < times; ++rank) {
    for (const auto& [device, paints] : stored) {
      if (devices.size() < static_cast<std::size_t>(kMaxStripDevices)) devices.push_back(paints);
    }
  }
  return devices;
}

double draw_step(const Strip& strip, const TracedStep& step, double y) {
  const Timeline& timeline = step.timeline;
  const auto devices = paints_by_device(timeline);
  std::string title = step.title;
  if (devices.size() < static_cast<std::size_t>(timeline.devices)) {
    title += " (" + std::to_string(devices.size()) + " of " + std::to_string(timeline.devices) +
             " GPUs drawn)";
  }
  strip.svg.text(0, y + 18, title, "striptitle");
  y += kTitle;
  const double top = y;
  const double end = strip.x(timeline.step_ns);
  for (std::size_t device = 0; device < devices.size(); ++device) {
    strip.svg.text(kLeft - 10, y + kLane + 4, "GPU " + std::to_string(device), "rowlabel",
                   Anchor::end);
    strip.svg.rect({kLeft, y, end - kLeft, 2 * kLane + 1}, "lane");
    for (std::size_t paint = 0; paint < kPaints.size(); ++paint) {
      const double lane = paint >= kCommunication ? y + kLane + 1 : y;
      draw_lane(strip, devices[device][paint], lane, kPaints[paint].css_class);
    }
    y += kDevice;
  }
  strip.svg.line(end, top - 4, end, y - 4, "stepend");
  strip.svg.text(end + 6, top + kLane + 4, format_duration_ns(timeline.step_ns), "value");
  return y;
}

double total_height(const std::vector<TracedStep>& steps) {
  double height = kAxis;
  for (const TracedStep& step : steps) {
    height += kTitle + kDevice * static_cast<double>(paints_by_device(step.timeline).size());
  }
  return height;
}

std::vector<BarSeries> used_paints(const std::vector<TracedStep>& steps) {
  std::array<bool, kPaints.size()> used{};
  for (const TracedStep& step : steps) {
    for (const Interval& interval : step.timeline.intervals) {
      if (interval.device >= 0 && interval.kind != IntervalKind::wait) {
        used[paint_of(interval)] = true;
      }
    }
  }
  std::vector<BarSeries> series;
  for (std::size_t i = 0; i < kPaints.size(); ++i) {
    if (used[i]) series.push_back({kPaints[i].title, kPaints[i].css_class});
  }
  return series;
}

}  // namespace

std::string draw_timelines(const std::vector<TracedStep>& steps) {
  std::int64_t longest = 0;
  for (const TracedStep& step : steps) longest = std::max(longest, step.timeline.step_ns);
  if (longest <= 0) return {};
  const double height = total_height(steps);
  Svg svg(kWidth, height, "One training step of each strategy, stream by stream, on one time axis");
  const Strip strip{svg, static_cast<double>(longest) / (kWidth - kLeft - kRight)};
  for (const double tick : nice_ticks(static_cast<double>(longest) * kMsPerNs, kTicks)) {
    const auto ns = static_cast<std::int64_t>(tick / kMsPerNs);
    if (ns > longest) break;
    svg.line(strip.x(ns), 8, strip.x(ns), height - kAxis, "grid");
    svg.text(strip.x(ns), height - kAxis + 16, ns == 0 ? "0" : format_duration_ns(ns), "tick",
             Anchor::middle);
  }
  double y = 0;
  for (const TracedStep& step : steps) y = draw_step(strip, step, y);
  return legend(used_paints(steps)) + svg.take();
}

}  // namespace bench::report
