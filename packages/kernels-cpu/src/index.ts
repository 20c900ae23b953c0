/** `@opt/kernels-cpu`: importing it registers the device "cpu". */
import { registerBackend } from "@opt/core";
import { type CpuOptions, openCpuBackend } from "./backend";

export { type CpuOptions, openCpuBackend };

registerBackend({ name: "cpu", rank: 20, load: async () => openCpuBackend() });
