/**
 * How many processors steps keep busy: processor time / wall time of AdamW, each time in a process of its own, because a thread that the
 * system puts beside another may stay there for all of a run. Other work on the machine takes its share from the figure.
 *
 *     npx tsx tools/bench/busy-processors.ts [device] [elements] [processes]
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import { init, ones, parameter } from "@opt/core";

const [deviceName = "wasm", elements = String(2 ** 23), processes = "20", role] = process.argv.slice(2);
const WARMUP = 5;
const MILLISECONDS = 500;

async function measure(): Promise<void> {
  const device = await init(deviceName);
  const size = Number(elements);
  const param = parameter(new Float32Array(size).fill(1), { device });
  param.grad = ones([size], { device });
  const optimizer = new AdamW([param]);
  for (let i = 0; i < WARMUP; i++) optimizer.step();
  await device.sync();
  const [before, start] = [process.cpuUsage(), performance.now()];
  while (performance.now() - start < MILLISECONDS) optimizer.step();
  await device.sync();
  const { user, system } = process.cpuUsage(before);
  console.log((user + system) / 1000 / (performance.now() - start));
}

if (role === "child") {
  await measure();
  process.exit(0);
}
const self = fileURLToPath(import.meta.url);
const ratios = Array.from({ length: Number(processes) }, () => {
  const { stdout } = spawnSync(
    process.execPath,
    [...process.execArgv, self, deviceName, elements, processes, "child"],
    {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  return Number(stdout);
}).toSorted((a, b) => a - b);
const median = ratios[ratios.length >> 1]!;
console.log(
  `${deviceName}, ${elements} elements, ${processes} processes: processor time / wall time ${ratios[0]!.toFixed(2)} at least, ${median.toFixed(2)} in the middle`,
);
console.log(ratios.map((ratio) => ratio.toFixed(2)).join(" "));
