/** Our devices with one thread, beside loops that have one. */
import { registerBackend } from "@opt/core";
import type { Backend } from "@opt/core/backend";
import { openCpuBackend } from "@opt/kernels-cpu";
import { openWasmBackend } from "@opt/kernels-wasm";
import type { Contender } from "./contender";
import { opt } from "./opt";
import type { OptimizerWork } from "./optimizer-work";

/** Registered when they are measured: no other benchmark shall list them as devices. */
const OPEN: Readonly<Record<"cpu1" | "wasm1", () => Promise<Backend>>> = {
  cpu1: async () => openCpuBackend({ threads: 1 }),
  wasm1: () => openWasmBackend({ threads: 1 }),
};

export function optOneThread(name: keyof typeof OPEN): Contender<OptimizerWork> {
  const contender = opt(name);
  return {
    ...contender,
    open(work) {
      if (work.tensors > 1) return Promise.resolve("one tensor is enough");
      registerBackend({ name, rank: -1, load: OPEN[name] });
      return contender.open(work);
    },
  };
}
