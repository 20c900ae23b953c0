/** A program that saves step after step until it is killed: `endless-saves <folder> <first step>`. */
import { saveCheckpoint } from "../save/save";
import { randomBytes } from "./random";

const [, , folder, first] = process.argv;
for (let step = Number(first); ; step++) {
  const w = { dtype: "U8", shape: [1 << 18], data: randomBytes(1 << 18, step) };
  if (step === Number(first)) process.stdout.write("saving\n");
  await saveCheckpoint(folder!, { step, tensors: { w } }, { world: 4, keep: 2 });
}
