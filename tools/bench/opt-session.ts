/**
 * The program of opt-process.ts: optimizer steps on one device, which is all that there is in the process. Speaks as process-session.ts
 * expects.
 *
 *     opt-session.ts <device, or cpu1 or wasm1: with one thread> eager|compiled|products
 */
import { createInterface } from "node:readline";
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { registerBackend } from "@opt/core";
import { openCpuBackend } from "@opt/kernels-cpu";
import { openWasmBackend } from "@opt/kernels-wasm";
import type { Session } from "./contender";
import { opt } from "./opt";
import { adamwAndProducts } from "./products";

registerBackend({ name: "cpu1", rank: -1, load: async () => openCpuBackend({ threads: 1 }) });
registerBackend({ name: "wasm1", rank: -1, load: () => openWasmBackend({ threads: 1 }) });

const [device, way] = process.argv.slice(2) as [string, string];
let session: Session | undefined;
for await (const line of createInterface({ input: process.stdin })) {
  const { command, steps, count, ...work } = JSON.parse(line);
  let answer = {};
  if (command === "open") {
    const contender = way === "products" ? adamwAndProducts(device) : opt(device, way === "compiled");
    const opened = await contender.open(work);
    if (typeof opened === "string") answer = { error: opened };
    else session = opened;
  } else if (command === "run") answer = { milliseconds: await session!.run(steps) };
  else answer = { values: await session!.result(count) };
  console.log(JSON.stringify(answer));
}
process.exit(0); // a pool's threads would keep the process alive
