# What `make install` puts where: the program, its manual pages and completion (made by the program of its own options), the
# systemd unit, a configuration that is never overwritten, and the papers. The unit and the configuration follow the
# prefix that is given when installing.
set(pages ${CMAKE_BINARY_DIR}/pages)
add_custom_command(OUTPUT ${pages}/made
  COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:gauntlet> -DFOLDER=${pages} -P ${CMAKE_CURRENT_LIST_DIR}/CommandPages.cmake
  DEPENDS gauntlet ${CMAKE_CURRENT_LIST_DIR}/CommandPages.cmake VERBATIM)
add_custom_target(command_pages DEPENDS ${pages}/made)

install(TARGETS gauntlet RUNTIME DESTINATION bin COMPONENT program)
install(DIRECTORY ${pages}/man1 DESTINATION share/man)
install(FILES ${pages}/gauntlet DESTINATION share/bash-completion/completions)
install(FILES ${pages}/_gauntlet DESTINATION share/zsh/vendor-completions)
install(FILES README.md CHANGELOG.md LICENSE docs/serving.md docs/running-models.md DESTINATION share/doc/gauntlet)
install(FILES deploy/grafana-dashboard.json deploy/prometheus.yml DESTINATION share/doc/gauntlet/examples)
install(CODE "set(deploy ${PROJECT_SOURCE_DIR}/deploy)")
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/InstallService.cmake)
