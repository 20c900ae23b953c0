/** Stored rows have the same checksums on js and in native code. */
import "@opt/kernels-cpu";
import { repeats } from "./testing";

await repeats("js", [["poisson", "AdamW"]]);
await repeats("cpu", [
  ["sonnets", "Muon"],
  ["digits", "SOAP"],
  ["clicks", "SparseAdam"],
]);
