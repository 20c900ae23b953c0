/** A divided parameter of two names: checkpoints hold it whole under both. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadCheckpoint } from "@opt/checkpoint";
import { init } from "@opt/core";
import { afterAll, expect, it } from "vitest";
import { connect } from "../engine/connect";
import "../index";
import { runJob } from "../testing/job";
import { Tied } from "../testing/training";
import { FullyShardedDataParallel } from "./fully-sharded";

const source = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
const IMPORTS = `import { Tied } from ${source("../testing/training.ts")};
import { FullyShardedDataParallel } from ${source("fully-sharded.ts")};
import { SGD } from ${source("../../../optimizers/sgd/src/index.ts")};
import { loadCheckpoint, saveCheckpoint } from ${source("../../../checkpoint/src/index.ts")};`;

const folder = mkdtempSync(join(tmpdir(), "opt-tied-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("two ranks save both names of a tied weight, for one and for three ranks", async () => {
  const make = `const parallel = new FullyShardedDataParallel(new Tied(), communicator);
    const whole = async () => Array.from((await communicator.allGather(parallel.parameters()[0])).dataSync());
    const { layout } = parallel;`;
  const saved = await runJob(
    2,
    `${make}
    const optimizer = new SGD(parallel.namedParameters(), { lr: 0.5 });
    parallel.forward(core.tensor([[0, 5]], { dtype: "i32" })).sum().backward();
    await parallel.sync();
    optimizer.step();
    await saveCheckpoint(${JSON.stringify(folder)}, { step: 1, tensors: parallel.stateDict() }, { communicator, layout });
    tell([layout.tensors, await whole()]);`,
    { imports: IMPORTS },
  );
  expect(saved.error).toBe("");
  const [[tensors, weight]] = saved.told as [[object, number[]]];
  expect(tensors).toEqual({ "table.weight": ["rank", null], "head.weight": ["rank", null], "*": "replicate" });

  const resumed = await runJob(
    3,
    `${make}
    parallel.loadStateDict((await loadCheckpoint(${JSON.stringify(folder)}, { layout, rank: communicator.rank })).tensors);
    tell(await whole());`,
    { imports: IMPORTS },
  );
  expect(resumed.error).toBe("");
  expect(resumed.told).toEqual([weight, weight, weight]);

  await init("js");
  const loaded = await loadCheckpoint(folder);
  for (const name of ["table.weight", "head.weight"]) expect(loaded.tensors[name]!.shape).toEqual([6, 4]);
  const alone = new FullyShardedDataParallel(new Tied(), await connect());
  alone.loadStateDict(loaded.tensors);
  expect(Array.from(alone.module.head.weight.dataSync())).toEqual(weight);
});
