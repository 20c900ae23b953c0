/** The model's figures are those that communicators count, and the guide's. */
import { readFileSync } from "node:fs";
import { AdamW } from "@opt/adam-amsgrad";
import { describe, expect, it } from "vitest";
import { runInMemory } from "../../testing/memory-job";
import { DataParallel } from "../data-parallel/data-parallel";
import { ShardedOptimizer } from "../sharded/sharded-optimizer";
import { trainingCost } from "./training-cost";

/** Together more than what travels whole. */
const SIZES = [35, 7, 1300, 1];

const PROGRAM = `
const { rank, size } = communicator;
const parameters = ${JSON.stringify(SIZES)}.map((n, i) => [String(i), core.parameter(core.ones([n]))]);
const model = { forward: () => parameters.map(([, w]) => w.mul(rank).sum()).reduce((a, b) => a.add(b)), namedParameters: () => parameters };
const counted = [];
for (const options of [{}, { bucketBytes: 400 }]) {
  const parallel = new DataParallel(model, communicator, options);
  await parallel.ready;
  const before = { ...communicator.traffic };
  parallel.forward().backward();
  await parallel.sync();
  counted.push([communicator.traffic.bytes - before.bytes, communicator.traffic.messages - before.messages]);
  parallel.dispose();
}
const sharded = new ShardedOptimizer(AdamW, parameters, {}, communicator);
await sharded.step(); // the first compares gradients whole
const before = { ...communicator.traffic };
await sharded.step();
counted.push([communicator.traffic.bytes - before.bytes, communicator.traffic.messages - before.messages]);
tell(counted);`;

it("3 ranks send what the model says, to the byte", async () => {
  const told = await runInMemory(3, PROGRAM, { AdamW, DataParallel, ShardedOptimizer });
  expect(told).toHaveLength(3);
  for (const [rank, counted] of told.entries()) {
    const cost = (options: object) => trainingCost({ parameters: SIZES, ranks: 3, rank, ...options });
    const [plain, small, sharded] = [cost({}), cost({ bucketBytes: 400 }), cost({ sharded: true })];
    expect(counted).toEqual([
      [plain.bytes, plain.messages],
      [small.bytes, small.messages],
      [sharded.bytes - plain.bytes, sharded.messages - plain.messages],
    ]);
  }
});

it("the guide's table is the model's", () => {
  const readme = readFileSync(new URL("../../../../docs/guides/data-parallel.md", import.meta.url), "utf8");
  // 100 million parameters in layers of a million.
  const parameters = new Array<number>(100).fill(1e6);
  for (const ranks of [8, 64, 512, 4096]) {
    const [plain, sharded] = [false, true].map((each) => trainingCost({ parameters, ranks, sharded: each }));
    const state = Number((800 / ranks).toPrecision(3));
    const figures = [plain!, sharded!].flatMap(({ bytes, messages, seconds }) => [
      (bytes / 1e6).toFixed(0),
      messages.toLocaleString("en"),
      (1000 * seconds).toFixed(0),
    ]);
    expect(readme).toContain(`| ${ranks.toLocaleString("en")} | ${figures.join(" | ")} | ${state} |`);
  }
});

describe("rejected", () => {
  it.each<[string, object]>([
    ["no ranks", { parameters: [1], ranks: 0 }],
    ["an invalid rank", { parameters: [1], ranks: 2, rank: 2 }],
    ["half an element", { parameters: [0.5], ranks: 2 }],
    ["no speed", { parameters: [1], ranks: 2, bandwidth: 0 }],
    ["an unknown dtype", { parameters: [1], ranks: 2, dtype: "float" }],
    ["an unknown option", { parameters: [1], ranks: 2, world: 1 }],
  ])("%s", (_, options) => {
    expect(() => trainingCost(options as never)).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
  });
});

it("counts wider numbers, and the time of a network that is given", () => {
  const base = { parameters: [4e6], ranks: 2 };
  const [single, double] = (["f32", "f64"] as const).map((dtype) => trainingCost({ ...base, dtype }));
  const heading = trainingCost({ parameters: [0], ranks: 2 }).bytes - 4;
  expect(double!.bytes - heading).toBe(2 * (single!.bytes - heading));
  const slow = trainingCost({ ...base, latency: 1, bandwidth: 1000 });
  expect(slow.seconds).toBe(slow.messages + slow.bytes / 1000);
  expect(trainingCost({ ...base, latency: 0, bandwidth: 1 }).seconds).toBe(slow.bytes);
});
