/** Pieces from sockets die young, and V8 notices late what memory they hold: it is told. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** So many bytes may lie until then. */
const LYING = 8 << 20;

type Collect = (options: { type: "minor" }) => void;

let dropped = 0;
let collect: Collect | null | undefined;

/** Counts memory that has just been dropped, and collects the young generation, about a millisecond, when it is much. */
export function drop(bytes: number): void {
  dropped += bytes;
  if (dropped < LYING) return;
  dropped = 0;
  if (collect === undefined) collect = found();
  collect?.({ type: "minor" });
}

/** V8 gives `gc` to contexts that are made while the flag is up; a context of its own gets it, and nobody else. Null on other engines. */
function found(): Collect | null {
  try {
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc") as Collect;
    setFlagsFromString("--no-expose-gc");
    return gc;
  } catch {
    return null;
  }
}
