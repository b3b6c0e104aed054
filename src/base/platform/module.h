// Where the code that runs lies. module_posix.cpp implements this; CMake chooses the file.
#pragma once

#include <string>

namespace tern {

// The folder of the file that holds this code: the library, or the program where it is linked in. Empty: unknown.
std::string module_folder();

}  // namespace tern
