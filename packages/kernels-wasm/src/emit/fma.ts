/** Fused multiply-add on vectors: the machine's own where it is fused, else emulated, to the same bits. */
import type { ComputeDType } from "@opt/core/backend";
import { type FunctionBuilder, f32x4, f64x2, type ModuleBuilder } from "../assembler";
import type { Target } from "../kernel";
import type { Fma } from "./emulated-fma";

let emulation: typeof import("./emulated-fma") | undefined;

/** Loads the emulation for engines that need it, before any kernel is written. */
export async function loadFma({ fused }: Target): Promise<void> {
  if (!(fused.f32 && fused.f64)) emulation ??= await import("./emulated-fma");
}

/** Emulation adds functions to the module. What comes back is for use inside one function, at whose entry it keeps its constants. */
export function emitFma(module: ModuleBuilder, dtype: ComputeDType, target: Target): (f: FunctionBuilder) => Fma {
  if (target.fused[dtype]) return () => (dtype === "f32" ? f32x4 : f64x2).relaxedMadd;
  if (dtype === "f32") return emulation!.emulate32(module);
  const emulated = emulation!.emulate64(module);
  return () => emulated;
}
