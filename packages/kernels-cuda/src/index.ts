/** `@opt/kernels-cuda`: importing it registers the device "cuda" ("cuda:1" is the second GPU). */
import { registerBackend } from "@opt/core";
import { CudaBackend, openCudaBackend } from "./backend";
import type { Recording } from "./recording";

export { CudaBackend, openCudaBackend, type Recording };

registerBackend({ name: "cuda", rank: 40, load: async (index) => openCudaBackend(index) });
