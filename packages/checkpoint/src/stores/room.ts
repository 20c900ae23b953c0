/** Room for one more open file, where the system lets a process have only so many: those of pools that nobody uses give way. */
import { goOn, pools, waiting } from "./file-pool";

/** What the system says to a process, or itself, when all are taken. */
const FULL = new Set(["EMFILE", "ENFILE"]);

/** Calls that the system has not answered. */
let opening = 0;

/** Calls `open`, again when there may be room. Who uses a file of a pool must not: it could wait for itself. */
export async function withRoom<T>(open: () => Promise<T>): Promise<T> {
  for (;;) {
    opening++;
    const answer = await open().then(
      (value) => ({ value }),
      (error: NodeJS.ErrnoException) => ({ error }),
    );
    opening--;
    if ("error" in answer && FULL.has(answer.error.code ?? "") && (await makeRoom())) continue;
    goOn();
    if ("error" in answer) throw answer.error;
    return answer.value;
  }
}

/** Closes files, or waits until one is free; false where nobody of this process has any to give. */
async function makeRoom(): Promise<boolean> {
  const closed = await Promise.all([...pools].map((pool) => pool.shrink()));
  if (closed.some((count) => count > 0)) return true;
  const open = [...pools].flatMap((pool) => pool.open);
  if (open.length === 0 && opening === 0) return false;
  if (open.every(({ users }) => users > 0)) await new Promise<void>((goOn) => waiting.push(goOn));
  return true;
}
