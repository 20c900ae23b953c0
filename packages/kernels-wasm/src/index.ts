/** Importing this package makes the device "wasm" known to `init`. */
import { registerBackend } from "@opt/core";
import { openWasmBackend } from "./backend";

export { openWasmBackend, type WasmOptions } from "./backend";
export { enableQ8 } from "./q8";
export { enableStochasticRounding } from "./stochastic-rounding";

registerBackend({ name: "wasm", rank: 10, load: () => openWasmBackend() });
