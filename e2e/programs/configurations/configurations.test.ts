/** Random training runs on ranks beside the same run on one process. `OPT_CONFIGURATION='{...}'` runs the one that a failure has printed. */
import { useSoftwareVulkan } from "@opt/testkit";
import { type Configuration, draw, textOf } from "@opt/testkit/configurations";
import { expect, it } from "vitest";
import { campaign, drawnOn, faultsOf } from "./campaign";
import { covering } from "./covering";

const given = process.env.OPT_CONFIGURATION;
const seedsFrom = (first: number, count: number) => Array.from({ length: count }, (_, i) => first + i);

// A busy machine takes long; what hangs is ended by the job.
it.runIf(given === undefined)("80 configurations do what one process does", { timeout: 0 }, async () => {
  const drawn = await drawnOn(["js", "wasm", "cpu"]);
  // In 60 of 1,000 more pairs of features meet than in 150 as they come.
  const fixed = covering(
    seedsFrom(1, 1000).map((seed) => draw(seed, drawn)),
    60,
  );
  // Some are new in each run: a failure prints the configuration, and its seed.
  const faults = await campaign([...fixed.map(({ seed }) => seed), ...seedsFrom(Date.now() % 2 ** 31, 20)], drawn);
  expect(faults.join("\n\n")).toBe("");
});

it.runIf(given !== undefined)("the given configuration", async () => {
  const one = JSON.parse(given!) as Configuration;
  console.log(textOf(one));
  if (given!.includes("webgpu")) useSoftwareVulkan(); // ranks inherit it
  expect((await faultsOf([one])).map(([, fault]) => fault).join("\n")).toBe("");
});
