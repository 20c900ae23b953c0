/** Training over MPI has the bits of one process that takes the same batches, whichever library carries the gradients. */
import { triesAll } from "@opt/testkit";
import { describe, it } from "vitest";
import { checkTraining } from "../../parallel/testing/check-training";
import type { Run } from "../../parallel/testing/training";
import { IMPORTS, launchers } from "../testing/launchers";

const TRAINING = new URL("../../parallel/testing/training.ts", import.meta.url).pathname;
const imports = `${IMPORTS}\nimport { trainOnRanks } from "${TRAINING}";`;

const RUNS: readonly Run[] = [
  { algorithm: "NAdam", device: "cpu", steps: 10, options: { bucketBytes: 150 } },
  { algorithm: "AMSGrad", device: "wasm", steps: 10 },
  { algorithm: "AdamW", device: "cpu", steps: 10, sharded: true },
  { algorithm: "AdamW", device: "cpu", steps: 10, fully: true, clip: { norm: 0.5 } },
];

describe.each(launchers)("$name", ({ name, missing, launcher }) => {
  it.skipIf(missing).each(triesAll ? [2, 4] : [name === "MPICH" ? 3 : 2])(
    `%d ranks have the bits of one process${missing ?? ""}`,
    (ranks) => checkTraining(ranks, RUNS, { imports, launcher }),
  );
});
