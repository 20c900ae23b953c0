/** Stored rows have the same checksums in WebAssembly with fused multiply-add: Node 22 and later. */
import "@opt/kernels-wasm";
import { repeats } from "./testing";

await repeats("wasm", [
  ["digits", "AdamW"],
  ["poisson", "SOAP"],
]);
