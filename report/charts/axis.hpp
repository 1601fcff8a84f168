// Round tick values for an axis that starts at zero, and how they are written.
#pragma once

#include <string>
#include <vector>

namespace bench::report {

// 0 and multiples of 1, 2 or 5 times a power of ten, the last at or above `most`; about `wanted`.
std::vector<double> nice_ticks(double most, int wanted);
// The same in powers of two (of bytes), so that 4 GiB is a tick and 3.73 GiB is not.
std::vector<double> binary_ticks(double most_bytes, int wanted);

// "12.5 ms", "4.00 GiB", and zero as "0": of ticks and of what stands beside the axis.
std::string axis_ms(double ms);
std::string axis_bytes(double bytes);

}  // namespace bench::report
