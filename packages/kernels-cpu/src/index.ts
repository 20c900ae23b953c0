/** `@opt/kernels-cpu`: importing it registers the device "cpu", and native code for files. */
import { enableQ8, enableStochasticRounding, registerBackend, registerHostIo } from "@opt/core";
import { type CpuOptions, openCpuBackend } from "./backend";
import { openHostIo } from "./host-io";

export { type CpuOptions, openCpuBackend };

enableQ8();
enableStochasticRounding();
registerBackend({ name: "cpu", rank: 20, load: async () => openCpuBackend() });
registerHostIo(openHostIo);
