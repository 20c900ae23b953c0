/** The runs in a page, on WebAssembly. */
import "@opt/kernels-wasm";
import { init } from "@opt/core";
import { trainedLedger } from "./run";

declare global {
  var sameRun: { portable: boolean; trainedLedger: typeof trainedLedger };
}
const { portable } = await init("wasm");
globalThis.sameRun = { portable, trainedLedger };
