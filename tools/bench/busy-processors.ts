/**
 * How many processors steps keep busy: processor time / wall time of AdamW, each time in a process of its own, because a thread that the
 * system puts beside another may stay there for all of a run. Other work on the machine takes its share from the figure:
 * each has in brackets how many processors others kept busy meanwhile.
 *
 *     npx tsx tools/bench/busy-processors.ts [device] [elements] [processes]
 */
import { spawnSync } from "node:child_process";
import { cpus } from "node:os";
import { fileURLToPath } from "node:url";
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import { init, ones, parameter } from "@opt/core";

const [deviceName = "wasm", elements = String(2 ** 23), processes = "20", role] = process.argv.slice(2);
const WARMUP = 5;
const MILLISECONDS = 500;

/** Milliseconds that all processors together have worked. */
function machineTime(): number {
  return cpus().reduce((sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq, 0);
}

async function measure(): Promise<void> {
  const device = await init(deviceName);
  const size = Number(elements);
  const param = parameter(new Float32Array(size).fill(1), { device });
  param.grad = ones([size], { device });
  const optimizer = new AdamW([param]);
  for (let i = 0; i < WARMUP; i++) optimizer.step();
  await device.sync();
  const [before, machineBefore, start] = [process.cpuUsage(), machineTime(), performance.now()];
  while (performance.now() - start < MILLISECONDS) optimizer.step();
  await device.sync();
  const { user, system } = process.cpuUsage(before);
  const [own, wall] = [(user + system) / 1000, performance.now() - start];
  console.log(own / wall, (machineTime() - machineBefore - own) / wall);
}

if (role === "child") {
  await measure();
  process.exit(0);
}
const self = fileURLToPath(import.meta.url);
const figures = Array.from({ length: Number(processes) }, () => {
  const { stdout } = spawnSync(
    process.execPath,
    [...process.execArgv, self, deviceName, elements, processes, "child"],
    {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  return stdout.split(" ").map(Number) as [ratio: number, others: number];
}).toSorted(([a], [b]) => a - b);
const [least, median] = [figures[0]![0], figures[figures.length >> 1]![0]];
console.log(
  `${deviceName}, ${elements} elements, ${processes} processes: processor time / wall time ${least.toFixed(2)} at least, ${median.toFixed(2)} in the middle`,
);
console.log(figures.map(([ratio, others]) => `${ratio.toFixed(2)} (${Math.max(0, others).toFixed(2)})`).join(" "));
