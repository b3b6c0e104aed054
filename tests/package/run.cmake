# cmake -D BUILD= -D SOURCE= -D README= -D CXX= -P run.cmake: installs tern from BUILD, takes the first C++ example out of README,
# builds it as a foreign project and runs it with the shared and with the static library.
set(work "${BUILD}/package")
set(prefix "${work}/prefix")
file(REMOVE_RECURSE "${work}")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${ARGN}\n${out}")
  endif()
  set(out "${out}" PARENT_SCOPE)
endfunction()

run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")
file(READ "${README}" text)
string(REPLACE ";" "\\;" text "${text}")
if(NOT text MATCHES "```cpp\n([^`]*)```")
  message(FATAL_ERROR "${README} holds no C++ example")
endif()
string(REPLACE "\\;" ";" example "${CMAKE_MATCH_1}")
file(WRITE "${work}/example.cpp" "${example}")

run("${CMAKE_COMMAND}" -G Ninja -S "${SOURCE}" -B "${work}/build" "-DEXAMPLE=${work}/example.cpp" "-DCMAKE_PREFIX_PATH=${prefix}"
    "-DCMAKE_CXX_COMPILER=${CXX}")
run("${CMAKE_COMMAND}" --build "${work}/build")
foreach(program with_shared with_static)
  run("${work}/build/${program}")
  if(out STREQUAL "")
    message(FATAL_ERROR "${program} printed nothing")
  endif()
  message("${program}: ${out}")
endforeach()
