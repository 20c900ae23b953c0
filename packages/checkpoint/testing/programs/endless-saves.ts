/** A program that saves step after step, or one step again and again, until it is killed: `endless-saves <folder> <life> <mode>`. Large files pass by the system's cache. */
import { listSteps } from "../../src/format/steps";
import { localFileSystem } from "../../src/platform/local";
import { saveCheckpoint } from "../../src/save/save";

const [, , folder, life, mode] = process.argv;
const count = mode === "large" ? 3 << 20 : 1 << 15;
const steps = await listSteps(localFileSystem, folder!).catch(() => []);
for (let step = (steps.at(-1)?.step ?? -1) + 1; ; step++) {
  process.stdout.write("saving\n");
  const data = new Float64Array(count).fill(Number(life));
  const contents = { tensors: { w: { dtype: "F64", shape: [count], data } }, values: { life: Number(life) } };
  const options = { world: 4, keep: 1, async: mode === "async" };
  if (mode !== "overwrite") await saveCheckpoint(folder!, { step, ...contents }, options);
  else await saveCheckpoint(folder!, { step: 1, ...contents }, { ...options, overwrite: true });
}
