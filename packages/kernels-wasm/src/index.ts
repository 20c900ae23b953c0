/** Importing this package makes the device "wasm" known to `init`. */
import { registerBackend } from "@opt/core";
import type { Backend } from "@opt/core/backend";
import { openWasmBackend as open, type WasmOptions } from "./backend";

export { enableQ8 } from "./q8";
export { enableStochasticRounding } from "./stochastic-rounding";
export type { WasmOptions };

/**
 * Opens the device with a number of threads of your own: `registerBackend({ name: "wasm", rank: 10, load: () => openWasmBackend({ threads: 2 }) })` before `init`, with `registerBackend` of `@opt/core`.
 *
 * @throws OptError DEVICE_UNAVAILABLE without WebAssembly SIMD; BAD_ARGUMENT for unknown options, and if the number of threads is not 1 to 256
 */
export const openWasmBackend: (options?: WasmOptions) => Promise<Backend> = open;

registerBackend({ name: "wasm", rank: 10, load: () => open() });
