# The unit and the configuration below the prefix: systemd reads /etc where the prefix is the system's, and nothing of
# the system is touched where it is not.
if(CMAKE_INSTALL_PREFIX MATCHES "^/usr(/local)?$")
  set(configuration /etc/gauntlet)
else()
  set(configuration ${CMAKE_INSTALL_PREFIX}/etc/gauntlet)
endif()
file(READ ${deploy}/gauntlet.service unit)
string(REPLACE "/usr/local/bin/gauntlet" "${CMAKE_INSTALL_PREFIX}/bin/gauntlet" unit "${unit}")
string(REPLACE "/etc/gauntlet" "${configuration}" unit "${unit}")
set(file "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/lib/systemd/system/gauntlet.service")
message(STATUS "Installing: ${file}")
file(WRITE ${file} "${unit}")

set(file "$ENV{DESTDIR}${configuration}/serve.toml")
if(EXISTS ${file})
  message(STATUS "Keeping: ${file}")
else()
  message(STATUS "Installing: ${file}")
  file(INSTALL ${deploy}/serve.toml DESTINATION ${configuration})
endif()

# zsh looks below /usr where packages put theirs, elsewhere where users do.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  file(INSTALL ${pages}/_gauntlet DESTINATION ${CMAKE_INSTALL_PREFIX}/share/zsh/vendor-completions)
else()
  file(INSTALL ${pages}/_gauntlet DESTINATION ${CMAKE_INSTALL_PREFIX}/share/zsh/site-functions)
endif()
