// The numbers of SPIR-V that are written here; names are those of its specification.
#pragma once

#include <cstdint>

namespace tern::emit::spv {

inline constexpr uint32_t kMagic = 0x07230203, kVersion = 0x00010300;

using Op = uint32_t;
inline constexpr Op OpExtension = 10, OpExtInstImport = 11, OpExtInst = 12, OpMemoryModel = 14, OpEntryPoint = 15,
                    OpExecutionMode = 16, OpCapability = 17, OpTypeVoid = 19, OpTypeBool = 20, OpTypeInt = 21,
                    OpTypeFloat = 22, OpTypeVector = 23, OpTypeImage = 25, OpTypeArray = 28, OpTypeRuntimeArray = 29,
                    OpTypeStruct = 30, OpTypePointer = 32, OpTypeFunction = 33, OpConstantTrue = 41,
                    OpConstantFalse = 42, OpConstant = 43, OpFunction = 54, OpFunctionEnd = 56, OpVariable = 59,
                    OpLoad = 61, OpStore = 62, OpAccessChain = 65, OpDecorate = 71, OpMemberDecorate = 72,
                    OpCompositeConstruct = 80, OpCompositeExtract = 81, OpImageFetch = 95, OpConvertFToU = 109,
                    OpConvertFToS = 110, OpConvertSToF = 111, OpConvertUToF = 112, OpUConvert = 113, OpSConvert = 114,
                    OpFConvert = 115, OpBitcast = 124, OpSNegate = 126, OpFNegate = 127, OpIAdd = 128, OpFAdd = 129,
                    OpISub = 130, OpFSub = 131, OpIMul = 132, OpFMul = 133, OpUDiv = 134, OpSDiv = 135, OpFDiv = 136,
                    OpUMod = 137, OpLogicalEqual = 164, OpLogicalNotEqual = 165, OpLogicalOr = 166, OpLogicalAnd = 167,
                    OpLogicalNot = 168, OpSelect = 169, OpIEqual = 170, OpINotEqual = 171, OpUGreaterThan = 172,
                    OpSGreaterThan = 173, OpULessThan = 176, OpSLessThan = 177, OpULessThanEqual = 178,
                    OpSLessThanEqual = 179, OpFOrdEqual = 180, OpFUnordNotEqual = 183, OpFOrdLessThan = 184,
                    OpFOrdGreaterThan = 186, OpFOrdLessThanEqual = 188, OpFOrdGreaterThanEqual = 190,
                    OpShiftRightLogical = 194, OpShiftRightArithmetic = 195, OpShiftLeftLogical = 196,
                    OpBitwiseOr = 197, OpBitwiseXor = 198, OpBitwiseAnd = 199, OpControlBarrier = 224,
                    OpLoopMerge = 246, OpSelectionMerge = 247, OpLabel = 248, OpBranch = 249, OpBranchConditional = 250,
                    OpReturn = 253, OpGroupNonUniformBroadcast = 337, OpGroupNonUniformIAdd = 349,
                    OpGroupNonUniformFAdd = 350, OpGroupNonUniformSMin = 353, OpGroupNonUniformUMin = 354,
                    OpGroupNonUniformFMin = 355, OpGroupNonUniformSMax = 356, OpGroupNonUniformUMax = 357,
                    OpGroupNonUniformFMax = 358, OpSDot = 4450, OpSUDot = 4452;

using Capability = uint32_t;
inline constexpr Capability Shader = 1, Float64 = 10, Int64 = 11, SampledBuffer = 46, GroupNonUniform = 61,
                            GroupNonUniformArithmetic = 63, GroupNonUniformBallot = 64, StorageBuffer16BitAccess = 4433,
                            StorageBuffer8BitAccess = 4448, SignedZeroInfNanPreserve = 4466,
                            DotProductInput4x8BitPacked = 6018, DotProduct = 6019;

enum StorageClass : uint32_t {
  UniformConstant = 0,
  Input = 1,
  Workgroup = 4,
  Function = 7,
  PushConstant = 9,
  StorageBuffer = 12
};

using Decoration = uint32_t;
inline constexpr Decoration Block = 2, ArrayStride = 6, BuiltIn = 11, Aliased = 20, Coherent = 23, NonWritable = 24,
                            BindingNumber = 33, DescriptorSet = 34, Offset = 35, NoContraction = 42;

using BuiltInName = uint32_t;
inline constexpr BuiltInName WorkgroupId = 26, LocalInvocationIndex = 29, NumSubgroups = 38, SubgroupId = 40,
                             SubgroupLocalInvocationId = 41;

enum ExecutionMode : uint32_t { LocalSize = 17, PreserveSignedZeroInfNan = 4461 };
enum Scope : uint32_t { ScopeWorkgroup = 2, ScopeSubgroup = 3 };
// Of a barrier: acquire and release of storage buffers and workgroup memory.
inline constexpr uint32_t kBarrierSemantics = 0x8 | 0x40 | 0x100;

inline constexpr uint32_t kBufferImage = 5;

// GLSL.std.450
enum Extended : uint32_t { RoundEven = 2, FAbs = 4, Floor = 8, Sqrt = 31, Fma = 50, UnpackHalf2x16 = 62 };

}  // namespace tern::emit::spv
