/** `@opt/kernels-cuda`: importing it registers the device "cuda" ("cuda:1" is the second GPU). */
import { enableQ8, enableStochasticRounding, registerBackend } from "@opt/core";
import { type CudaBackend, openCudaBackend } from "./backend";

export { type CudaBackend, openCudaBackend };

enableQ8();
enableStochasticRounding();
registerBackend({ name: "cuda", rank: 40, several: true, load: async (index) => openCudaBackend(index) });
