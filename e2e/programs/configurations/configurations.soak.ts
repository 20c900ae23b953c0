/**
 * Random training runs until someone stops it, or OPT_CONFIGURATIONS of them; every run begins elsewhere. OPT_CONFIGURATIONS_WITH
 * passes by those without that text, such as `"q8"`.
 */
import { openWebGpuBackend } from "@opt/kernels-webgpu";
import { useSoftwareVulkan, whyUnavailable } from "@opt/testkit";
import { draw } from "@opt/testkit/configurations";
import { expect, it } from "vitest";
import { campaign, drawnOn } from "./campaign";

const { OPT_CONFIGURATIONS, OPT_CONFIGURATIONS_FIRST, OPT_CONFIGURATIONS_DEVICES = "js,wasm,cpu" } = process.env;
const { OPT_CONFIGURATIONS_WITH = "" } = process.env;
const count = Number(OPT_CONFIGURATIONS ?? Number.POSITIVE_INFINITY);
const first = Number(OPT_CONFIGURATIONS_FIRST ?? Date.now() % 2 ** 31);
const AT_ONCE = 200;

it(`${count} configurations on ${OPT_CONFIGURATIONS_DEVICES}, from seed ${first}`, { timeout: 0 }, async (context) => {
  const devices = OPT_CONFIGURATIONS_DEVICES.split(",");
  useSoftwareVulkan(); // ranks inherit it
  const reason = devices.includes("webgpu") ? await whyUnavailable(() => openWebGpuBackend()) : null;
  if (reason) context.skip(`webgpu: ${reason}`);
  const drawn = await drawnOn(devices);
  const faults: string[] = [];
  const begun = performance.now();
  let next = first;
  for (let done = 0; done < count; ) {
    const seeds: number[] = [];
    for (; seeds.length < Math.min(AT_ONCE, count - done); next++)
      if (JSON.stringify(draw(next, drawn)).includes(OPT_CONFIGURATIONS_WITH)) seeds.push(next);
    const found = await campaign(seeds, drawn);
    for (const fault of found) console.log(fault);
    faults.push(...found);
    done += seeds.length;
    console.log(`${done} configurations, ${faults.length} faults, ${Math.round((performance.now() - begun) / 1000)} s`);
  }
  expect(faults).toEqual([]);
});
