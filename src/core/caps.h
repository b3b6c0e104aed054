// What a device can do, as plain data. Part of every kernel's cache key.
#pragma once

#include <cstdint>
#include <string>

namespace tern {

struct SubgroupCaps {
  uint16_t min = 1, max = 1;
  bool can_pin = false;  // a kernel may demand one size
};

enum class Dot4 : uint8_t { none, slow, fast };

// How kernels for this device are built and handed over.
enum class KernelForm : uint8_t { llvm, interpreter, text, spirv };

struct Caps {
  std::string device;  // "cpu", "mean", "vulkan:lavapipe": for messages
  std::string isa;  // CPU: sorted feature names; GPUs: architecture; part of the numerics tag where order depends on it
  KernelForm form = KernelForm::llvm;
  std::string language;     // form text: a row of emit/dialect_list.inc
  uint32_t lanes = 16;      // natural vector width in f32 (CPU) or the subgroup size
  uint32_t max_lanes = 64;  // lanes of a workgroup at most
  uint32_t workers = 1;     // threads or compute units that run groups side by side
  uint32_t workgroup_bytes = 32 * 1024;
  SubgroupCaps subgroup;
  Dot4 dot4 = Dot4::none;
  uint8_t dot4_code_bits =
      7;  // codes that dot4 takes: 7, or 8 where the instruction multiplies u8 with s8 without saturating
  bool byte_lookup = false;  // four entries of a table of 16 bytes at once
  bool lockstep = false;     // a workgroup is one vector: barriers are free, workgroup memory is a stack array
  bool f16_storage = true;   // 16-bit loads and stores; else words are unpacked
  bool byte_storage = true;  // 8-bit loads and stores; else bytes come out of words and cannot be stored one by one
  bool fma = true;           // multiply-add with one rounding
  bool i64 = true, f64 = true;
  bool mixed_access = true;  // one buffer may be bound for reading and for writing in one launch
  bool host_visible = true;  // host() of buffers works
  uint64_t max_binding_bytes = ~uint64_t{0};
  uint32_t max_bindings = 64;
  uint32_t offset_alignment = 4;  // of a binding's byte offset
  uint64_t max_groups =
      0xffffffffu;  // in one dimension of a grid; linear groups are folded into two where they exceed it
  uint64_t memory_limit = ~uint64_t{0};
  double read_bytes_per_s = 20e9, flop_per_s = 100e9, int8_op_per_s = 300e9, launch_s = 3e-7;  // for estimates only
};

}  // namespace tern
