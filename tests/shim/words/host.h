// What a module of kernels and the program that runs it agree on. Nothing of the standard library is included: its
// headers take longer to compile than the kernels.
#pragma once

namespace tern_shim {

// The lane that is running, and what it may ask for. `line` is where it asks, for messages.
struct Host {
  unsigned lane, lanes, group, groups;
  unsigned subgroup;  // lanes of a subgroup; they are dealt in order, and the last one may have fewer
  void (*barrier)(unsigned line);
  // Waits for all lanes of the subgroup, and gives what each of them gave.
  const unsigned long long* (*gather)(unsigned long long mine, unsigned line);
  void (*stop)(const char* why, unsigned which, unsigned line);  // does not return; $ in `why` stands for `which`
};

}  // namespace tern_shim

#ifdef TERN_SHIM_MODULE

extern "C" {
tern_shim::Host* tern_host;  // set once the module is loaded
}

namespace tern_shim {

inline unsigned first() { return tern_host->lane / tern_host->subgroup * tern_host->subgroup; }
inline unsigned count() {
  const unsigned left = tern_host->lanes - first();
  return left < tern_host->subgroup ? left : tern_host->subgroup;
}
inline unsigned own() { return tern_host->lane - first(); }

template <class T>
unsigned long long bits(T v) {
  unsigned long long out = 0;
  __builtin_memcpy(&out, &v, sizeof v);
  return out;
}
template <class T>
T value(unsigned long long bits) {
  T out;
  __builtin_memcpy(&out, &bits, sizeof out);
  return out;
}
template <class To, class From>
To same_bits(From v) {
  static_assert(sizeof(To) == sizeof(From), "the types differ in size");
  To out;
  __builtin_memcpy(&out, &v, sizeof out);
  return out;
}

// The value of another lane of the subgroup.
template <class T>
T across(T v, unsigned from, unsigned line) {
  const unsigned lanes = count();
  const unsigned long long* all = tern_host->gather(bits(v), line);
  if (from >= lanes) tern_host->stop("reads lane $ of its subgroup, which is not there", from, line);
  return value<T>(all[from]);
}

// What op makes of the whole subgroup, in the order of kir's subgroup_add.
template <class T, class F>
T together(T v, unsigned line, F op) {
  const unsigned long long* all = tern_host->gather(bits(v), line);
  T part[64];
  unsigned left = count();
  for (unsigned i = 0; i < left; ++i) part[i] = value<T>(all[i]);
  while (left > 1) {
    const unsigned half = (left + 1) / 2;
    for (unsigned i = 0; i < left - half; ++i) part[i] = op(part[i], part[i + half]);
    left = half;
  }
  return part[0];
}

// Calls a kernel whose parameters are its bindings and then its sizes.
template <class T>
struct Argument {
  static T take(void* const*&, const unsigned*& dims) { return *dims++; }
};
template <class T>
struct Argument<T*> {
  static T* take(void* const*& bindings, const unsigned*&) { return static_cast<T*>(*bindings++); }
};
template <class... A>
struct Call {
  Call(void (*kernel)(A...), A... arguments) { kernel(arguments...); }
};
template <class... A>
void call(void (*kernel)(A...), void* const* bindings, const unsigned* dims) {
  Call<A...>{kernel, Argument<A>::take(bindings, dims)...};  // braces: in order
}

// With what the kernel gets in front of these.
template <class First, class... A>
struct CallWith {
  CallWith(void (*kernel)(const First&, A...), const First& first, A... arguments) { kernel(first, arguments...); }
};
template <class First, class... A>
void call_with(const First& first, void (*kernel)(const First&, A...), void* const* bindings, const unsigned* dims) {
  CallWith<First, A...>{kernel, first, Argument<A>::take(bindings, dims)...};
}

inline int dot4(int a, unsigned b, unsigned c) {
  unsigned sum = static_cast<unsigned>(a);
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<unsigned>(static_cast<signed char>(b >> i) * static_cast<signed char>(c >> i));
  return static_cast<int>(sum);
}

}  // namespace tern_shim

#endif
