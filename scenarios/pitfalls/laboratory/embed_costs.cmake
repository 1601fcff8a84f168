# Writes the laboratory's table as a raw string. Usage: cmake -DOUT=x.cpp -DTABLE=x.csv -P embed_costs.cmake
file(READ "${TABLE}" text)
file(WRITE "${OUT}" "// Generated from scenarios/pitfalls/laboratory/laboratory_costs.csv.
#include \"scenarios/pitfalls/laboratory/laboratory_costs.hpp\"

namespace bench::pitfalls {

std::string_view laboratory_costs_csv() {
  return R\"bench_csv(${text})bench_csv\";
}

}  // namespace bench::pitfalls
")
