/** Opt on one of its devices in a process of its own, as programs have it and as PyTorch is measured: beside no other device's threads, heap and code. */
import { fileURLToPath } from "node:url";
import type { Contender } from "./contender";
import type { OptimizerWork } from "./optimizer-work";
import { openProcess } from "./process-session";

const PROGRAM = fileURLToPath(new URL("./opt-session.ts", import.meta.url));

/** The step is a compiled function, or AdamW's with the products of the optimizer's. */
export type OptWay = "eager" | "compiled" | "products";

export function optProcess(device: string, way: OptWay = "eager"): Contender<OptimizerWork> {
  const args = [...process.execArgv, PROGRAM, device, way];
  const isProducts = way === "products";
  return {
    name: isProducts ? "AdamW and the products" : `opt ${device}${way === "compiled" ? " compiled" : ""}`,
    tolerance: isProducts ? null : 0,
    open: (work) => openProcess(process.execPath, args, work),
  };
}

/** With one thread, beside loops that have one. */
export function optOneThread(device: "cpu1" | "wasm1"): Contender<OptimizerWork> {
  const contender = optProcess(device);
  const open = (work: OptimizerWork) =>
    work.tensors > 1 ? Promise.resolve("one tensor is enough") : contender.open(work);
  return { ...contender, open };
}
