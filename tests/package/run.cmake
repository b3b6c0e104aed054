# cmake -D BUILD= -D SOURCE= -D README= -D CXX= -P run.cmake: installs tern from BUILD, takes the two C++ examples out of README, builds
# them as a foreign project and runs the first with the shared and with the static library.
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

set(ENV{XDG_CACHE_HOME} "${work}/cache")  # kernels are compiled here: the plug-in must be found where it was installed
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")
include("${CMAKE_CURRENT_LIST_DIR}/examples.cmake")
tern_readme_examples("${README}" "${work}")

run("${CMAKE_COMMAND}" -G Ninja -S "${SOURCE}" -B "${work}/build" "-DEXAMPLES=${work}" "-DCMAKE_PREFIX_PATH=${prefix}"
    "-DCMAKE_CXX_COMPILER=${CXX}" "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
run("${CMAKE_COMMAND}" --build "${work}/build")
foreach(program graph_shared graph_static)
  run("${work}/build/${program}")
  if(NOT out MATCHES "64 rows: 3")
    message(FATAL_ERROR "${program} printed '${out}'")
  endif()
endforeach()

# Packs are found where they were installed, by the program and by what it says.
if(EXISTS "${BUILD}/bin/tern-packs/x86-64-v2.pack" AND EXISTS "${prefix}/bin/tern")
  run("${prefix}/bin/tern" info --build)
  if(NOT out MATCHES "pack +x86-64-v2 +[0-9]+ kernels")
    message(FATAL_ERROR "the installed program does not find its packs:\n${out}")
  endif()
endif()
