/** One training run has the same bits in WebAssembly with fused multiply-add: Node 22 and later. */
import { deviceTests } from "./testing";

await deviceTests("wasm");
