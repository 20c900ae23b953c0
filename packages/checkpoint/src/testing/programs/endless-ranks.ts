/** One rank that saves step after step until it is killed, under a name that never changes: `endless-ranks <folder> <rank> <life>`. */

import { listSteps } from "../../format/steps";
import { localFileSystem } from "../../platform/local";
import { saveCheckpoint } from "../../save/save";

const [, , folder, rank, life] = process.argv;
export const WORLD = 3;
const steps = await listSteps(localFileSystem, folder!).catch(() => []);
for (let step = (steps.at(-1)?.step ?? -1) + 1; ; step++) {
  process.stdout.write("saving\n");
  const data = new Float64Array(1 << 14).fill(Number(life));
  const options = { rank: Number(rank), world: WORLD, attempt: "job", keep: 1, async: step % 2 === 0 };
  await saveCheckpoint(
    folder!,
    { step, tensors: { w: { dtype: "F64", shape: [1 << 14], data } }, values: { life } },
    options,
  );
}
