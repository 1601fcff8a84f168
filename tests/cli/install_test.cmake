# Installs `bench` under PREFIX and runs it there, away from the sources: scenarios and machines are
# compiled in, so it must answer all the same.
file(REMOVE_RECURSE ${PREFIX})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${PREFIX} --component bench
                OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${PREFIX}/bin/bench --scenario dp_vs_ddp --machine 4xv100-sxm2 --dry-run
                WORKING_DIRECTORY / OUTPUT_VARIABLE plan COMMAND_ERROR_IS_FATAL ANY)
if(NOT plan MATCHES "strategy:distributed/gpus:4")
  message(FATAL_ERROR "the installed program plans:\n${plan}")
endif()
