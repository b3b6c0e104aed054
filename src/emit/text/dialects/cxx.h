// What the languages that are C++ share.
#pragma once

#include "emit/text/writer.h"

namespace tern::emit {

// Where nothing but bits is known of halves.
inline constexpr TypeRow kCxxTypes[] = {{kir::b1, "bool"},          {kir::i32, "int"},
                                        {kir::u32, "unsigned int"}, {kir::f32, "float"},
                                        {kir::i64, "long long"},    {kir::u64, "unsigned long long"},
                                        {kir::f64, "double"},       {kir::f16, "unsigned short"},
                                        {kir::i8, "signed char"},   {kir::u8, "unsigned char"},
                                        {kir::i16, "short"},        {kir::u16, "unsigned short"}};

// As c_number; 64-bit integers are long long, infinities and NaN made by tern_as<float>.
std::string cxx_number(kir::Type type, uint64_t bits);
// "uint4" whatever the type's own name.
std::string cxx_vector(std::string_view type, int width);
// Templates tern_as and tern_cut (a float to an integer: toward zero, saturating, NaN gives 0), for functions with
// `words` before them, and what the file needs besides; once in a program.
std::string cxx_prelude(std::string_view words, std::string_view more);
// "const unsigned int* __restrict__ p0, …, unsigned int d0": arguments in order.
std::string cxx_arguments(const Writer& w, std::string_view restrict);
std::string cxx_arrays(const Writer& w, std::string_view shared);

}  // namespace tern::emit
