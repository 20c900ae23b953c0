/** Importing this package makes the device "webgpu" known to `init`. */
import { enableQ8, enableStochasticRounding, registerBackend } from "@opt/core";
import { openWebGpuBackend } from "./device/open";

export type { WebGpuBackend } from "./backend";
export type { Counters } from "./device/commands";
export { type OpenDevice, openWebGpuBackend, type WebGpuOptions } from "./device/open";

enableQ8();
enableStochasticRounding();
registerBackend({ name: "webgpu", rank: 30, load: () => openWebGpuBackend() });
