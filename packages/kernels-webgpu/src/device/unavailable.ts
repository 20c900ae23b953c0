/** Why WebGPU does not open. */
import { OptError } from "@opt/core";

const ADVICE = "`wasm` of @opt/kernels-wasm serves instead.";

export function unavailable(problem: string, cause?: unknown): OptError {
  return new OptError("DEVICE_UNAVAILABLE", "webgpu", problem, ADVICE, { cause });
}
