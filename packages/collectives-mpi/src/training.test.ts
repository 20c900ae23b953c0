/** Training over MPI has the bits of one process that takes the same batches, whichever library carries the gradients. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { runJob } from "../../parallel/src/testing/job";
import { type Run, trainAlone } from "../../parallel/src/testing/training";
import { IMPORTS, launchers } from "./testing/launchers";

const TRAINING = new URL("../../parallel/src/testing/training.ts", import.meta.url).pathname;
const imports = `${IMPORTS}\nimport { trainOnRanks } from "${TRAINING}";`;

const RUNS: readonly Run[] = [
  { algorithm: "NAdam", device: "cpu", steps: 50, options: { bucketBytes: 150 } },
  { algorithm: "AMSGrad", device: "wasm", steps: 50 },
  { algorithm: "AdamW", device: "cpu", steps: 50, sharded: true },
];

describe.each(launchers)("$name", ({ missing, launcher }) => {
  it.skipIf(missing).each([2, 3, 4])(`%d ranks have the bits of one process${missing ?? ""}`, async (ranks) => {
    const body = `const results = [];
      for (const run of ${JSON.stringify(RUNS)}) results.push(await trainOnRanks(run, communicator));
      const { createHash } = await import("node:crypto");
      // Long lines of ranks come in pieces, one among another's.
      tell(createHash("sha256").update(JSON.stringify(results)).digest("hex"));`;
    const { told, error } = await runJob(ranks, body, { imports, launcher });
    expect(error).toBe("");
    const alone: unknown[] = [];
    for (const run of RUNS) alone.push(await trainAlone(run, ranks));
    const digest = createHash("sha256").update(JSON.stringify(alone)).digest("hex");
    expect(told).toEqual(new Array(ranks).fill(digest));
  });
});
