/** One rank that saves step after step until it is killed: `endless-ranks <folder> <rank> <life>`. Its parent carries the messages. */

import { once } from "node:events";
import { listSteps } from "../../src/format/steps";
import { localFileSystem } from "../../src/platform/local";
import { communicatorOver } from "../../src/save/ranks/communicator";
import { saveCheckpoint } from "../../src/save/save";

const [, , folder, rank, life] = process.argv;
const communicator = communicatorOver(Number(rank), 3, async (value) => {
  const answer = once(process, "message");
  process.send!({ rank: Number(rank), value });
  return (await answer)[0];
});
const steps = await listSteps(localFileSystem, folder!).catch(() => []);
const [last] = (await communicator.gather(steps.at(-1)?.step ?? -1)) ?? [];
for (let step = (await communicator.broadcast(last)) + 1; ; step++) {
  process.stdout.write("saving\n");
  const data = new Float64Array(1 << 14).fill(Number(life));
  const contents = { step, tensors: { w: { dtype: "F64", shape: [1 << 14], data } }, values: { life } };
  await saveCheckpoint(folder!, contents, { communicator, keep: 1, whole: true, async: step % 2 === 0 });
}
