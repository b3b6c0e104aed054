/* The C entry table of libtern-llvm.so: the only code of tern that links LLVM.
 *
 * The plug-in turns one kernel of the kernel IR (kir/serial.h) into one relocatable ELF object. The object
 * defines `kernel` (kir::CpuEntry) and refers to nothing outside itself: no libm, no memcpy, no GOT. Relocations are
 * PC-relative into its own sections (AArch64: ADRP and the low 12 bits). Equal requests give equal bytes. All functions
 * are thread-safe. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TERN_LLVM_PLUGIN_VERSION 2u
#define TERN_LLVM_CODEGEN_REVISION 3u
#define TERN_LLVM_PLUGIN_SYMBOL "tern_llvm_plugin_table"
#define TERN_LLVM_ENTRY "kernel"

/* NOLINTBEGIN(modernize-use-using): C reads this, too */
typedef struct tern_llvm_request {
  const void* kir; /* serial form of a kernel */
  size_t kir_bytes;
  const char* triple; /* "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"; null or "": the plug-in's own */
  const char*
      cpu; /* LLVM's name of the processor: "sapphirerapids", "x86-64-v2"; null or "": the least of its architecture */
  const char* features; /* "+avx2,+fma,-avx512f"; null or "": what the processor name implies */
  uint32_t vector_bits; /* widest registers used: 128, 256, 512; 0: the widest that the features have */
  uint32_t want;        /* tern_llvm_want */
} tern_llvm_request;

typedef enum tern_llvm_want { TERN_LLVM_OBJECT = 0, TERN_LLVM_IR = 1, TERN_LLVM_ASSEMBLY = 2 } tern_llvm_want;

/* Exactly one of data and error is set. */
typedef struct tern_llvm_result {
  const void* data;
  size_t bytes;
  const char* error; /* one sentence */
  void* owner;
} tern_llvm_result;

typedef struct tern_llvm_plugin {
  uint32_t version;         /* TERN_LLVM_PLUGIN_VERSION; other versions share no further field */
  uint32_t revision;        /* of the code generator: changes when equal kernels may give other bytes */
  const char* llvm_version; /* "19.1.7": part of cache keys */
  const char* host_cpu;     /* of the running machine, in LLVM's words */
  const char* host_features;
  void (*compile)(const tern_llvm_request* request, tern_llvm_result* result);
  void (*release)(tern_llvm_result* result);
} tern_llvm_plugin;

/* The type of the symbol TERN_LLVM_PLUGIN_SYMBOL. The table lives as long as the library is loaded. */
typedef const tern_llvm_plugin* (*tern_llvm_plugin_fn)(void);
/* NOLINTEND(modernize-use-using) */

#ifdef __cplusplus
}
#endif
