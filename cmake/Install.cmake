# What `cmake --install` copies: `bench` on the PATH, its worker where bench looks for it.
install(TARGETS bench RUNTIME DESTINATION bin COMPONENT bench)
if(TARGET bench-worker)
  # LibTorch stays in the Python environment it was built against.
  set_target_properties(bench-worker PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS bench-worker RUNTIME DESTINATION libexec COMPONENT worker)
endif()
