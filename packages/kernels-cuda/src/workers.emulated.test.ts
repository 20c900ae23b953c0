/** A worker may end at any moment: what it took from the driver goes back, and copies into its memory have ended before that memory goes. */
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { whyUnavailable } from "@opt/testkit";
import { expect, it } from "vitest";
import { library, openEmulated } from "../testing/emulator";
import { binaryFolder, loadAddon, openDriver } from "./addon";

const why = await whyUnavailable(async () => openEmulated());

/** Takes one of each, twice the context, gives one event back, leaves a copy under way, and never ends by itself. */
const PROGRAM = `
const { parentPort, workerData } = require("node:worker_threads");
const driver = require(workerData.addon).open("driver", workerData.library);
const out = new BigUint64Array(1);
const get = (name, ...args) => {
  if (driver[name](out, ...args) !== 0) throw new Error(name);
  return Number(out[0]);
};
driver.cuInit(0);
for (let i = 0; i < 2; i++) driver.cuCtxSetCurrent(get("cuDevicePrimaryCtxRetain", 0));
const stream = get("cuStreamCreate", 1);
const memory = get("cuMemAlloc_v2", 2 ** 20);
const pinned = get("cuMemAllocHost_v2", 2 ** 20);
get("cuModuleLoadData", new Uint8Array(8));
driver.cuEventDestroy_v2(get("cuEventCreate", 2));
driver.cuEventRecord(get("cuEventCreate", 2), stream);
driver.cuMemcpyDtoHAsync_v2(pinned, memory, 2 ** 20, stream);
parentPort.postMessage("holds all of it");
setInterval(() => {}, 1000);
`;

it.skipIf(why)(`a terminated worker gives back what it held${why ? ` (skipped: ${why})` : ""}`, async () => {
  const driver = openDriver(loadAddon(binaryFolder()), library);
  const free = () => {
    const [bytes, total] = [new BigUint64Array(1), new BigUint64Array(1)];
    driver.cuMemGetInfo_v2(bytes, total);
    return Number(bytes[0]);
  };
  const before = free();
  const workerData = { addon: join(binaryFolder(), "opt_cuda.node"), library };
  const worker = new Worker(PROGRAM, { eval: true, workerData, execArgv: [] });
  await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
  expect(before - free()).toBe(2 ** 20 + 512 * (2 + 1 + 1 + 1));
  await worker.terminate();
  expect(free()).toBe(before);
});
