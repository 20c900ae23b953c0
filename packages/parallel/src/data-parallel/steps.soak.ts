/** 10,000 steps of 4 ranks: none waits for another forever, and no rank's memory grows. */
import { expect, it } from "vitest";
import { runJob } from "../../testing/job";

const IMPORTS = `import { DataParallel } from "${new URL("data-parallel.ts", import.meta.url).href}";
import { AdamW } from "${new URL("../../../optimizers/adam-amsgrad/src/index.ts", import.meta.url).href}";
import { Linear, mseLoss, ReLU, Sequential } from "${new URL("../../../nn/src/index.ts", import.meta.url).href}";
import "${new URL("../../../kernels-cpu/src/index.ts", import.meta.url).href}";`;

const STEPS = 10_000;
/** A look at memory after so many steps; the first looks are of a program that still warms up. */
const EVERY = 500;

it("10,000 steps of 4 ranks", async () => {
  const body = `
    await core.init("cpu");
    const generator = new core.Generator(1);
    const model = new Sequential(new Linear(32, 64, { generator }), new ReLU(), new Linear(64, 8, { generator }));
    const parallel = new DataParallel(model, communicator, { bucketBytes: 5000 });
    const optimizer = new AdamW(model.namedParameters());
    const samples = new core.Generator(10 + communicator.rank);
    const begin = performance.now();
    const memory = [];
    for (let step = 1; step <= ${STEPS}; step++) {
      core.tidy(() => {
        const [x, y] = [core.randn([8, 32], { generator: samples }), core.randn([8, 8], { generator: samples })];
        mseLoss(parallel.forward(x), y).backward();
      });
      await parallel.sync();
      optimizer.step();
      optimizer.zeroGrad();
      if (step % ${EVERY} === 0) memory.push([process.memoryUsage().rss / 2 ** 20, model.parameters()[0].device.memory().bytes]);
    }
    tell({ memory, milliseconds: performance.now() - begin });`;
  const { told, error } = await runJob(4, body, { imports: IMPORTS, patience: 3_000_000 });
  expect(error).toBe("");
  expect(told).toHaveLength(4);
  for (const { memory, milliseconds } of told as { memory: [number, number][]; milliseconds: number }[]) {
    const resident = memory.map(([megabytes]) => megabytes);
    const half = resident.length / 2;
    // How much garbage there is at a look is chance: of many, the middle one tells.
    const median = (part: number[]) => part.sort((a, b) => a - b)[part.length >> 1]!;
    const [early, late] = [resident.slice(2, half), resident.slice(half)].map(median) as [number, number];
    console.log(
      `${STEPS} steps in ${(milliseconds / 1000).toFixed(0)} s, MB: ${resident.map((x) => x.toFixed(0)).join(" ")}`,
    );
    expect(late).toBeLessThan(early + 8);
    expect(new Set(memory.map(([, bytes]) => bytes)).size).toBe(1);
  }
});
