# Included from tests/CMakeLists.txt. Serial: it compiles, and it times a pair.
add_test(NAME add_a_pair
  COMMAND ${CMAKE_CURRENT_LIST_DIR}/run.sh $<TARGET_FILE:gauntlet> ${CMAKE_BINARY_DIR}
          ${CMAKE_BINARY_DIR}/tests/add_a_pair)
set_tests_properties(add_a_pair PROPERTIES LABELS cpu TIMEOUT 300 RUN_SERIAL ON)
