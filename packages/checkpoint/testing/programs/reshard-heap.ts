/** Re-slices a checkpoint for 3 ranks and prints by how many bytes the old heap grew: `reshard-heap <from> <to>`. */
import { getHeapSpaceStatistics } from "node:v8";
import { reshardCheckpoint } from "../../src/rewrite/reshard";

/** What only slow collections free; how much of the young waits for a quick one differs from Node to Node. */
function oldBytes(): number {
  const old = getHeapSpaceStatistics().filter(({ space_name }) => !space_name.startsWith("new_"));
  return old.reduce((sum, { space_used_size }) => sum + space_used_size, 0);
}

const [, , from, to] = process.argv;
let least = Infinity;
let grown = 0;
const progress = () => {
  const held = oldBytes();
  least = Math.min(least, held);
  grown = Math.max(grown, held - least);
};
await reshardCheckpoint(from!, to!, { ranks: 3, progress });
console.log(grown);
