/** `@opt/kernels-cpu`: importing it registers the device "cpu". */
import { enableQ8, enableStochasticRounding, registerBackend } from "@opt/core";
import { type CpuOptions, openCpuBackend } from "./backend";

export { type CpuOptions, openCpuBackend };

enableQ8();
enableStochasticRounding();
registerBackend({ name: "cpu", rank: 20, load: async () => openCpuBackend() });
