/** The native addon: where its binary comes from, and its handful of functions. */
import { createRequire } from "node:module";
import { environmentVariable, loadBinary, platformName } from "@opt/core/backend";

/** How a message ended: `Outcome` of native/mpi/src/transport.h. */
export const MOVED = 0;
export const SHORTER = 1;
export const LONGER = 2;
export const PEER_ENDED = 3;
export const FAILED = 4;

/** What is asked for: `Kind`, `Element` and `Reduction` there. */
export const RECEIVE = 0;
export const SEND = 1;
export const REDUCE = 2;
export const ELEMENTS: readonly string[] = ["f32", "f64", "i32", "u8"];
export const REDUCTIONS: readonly string[] = ["sum", "min", "max"];

export type EndCallback = (id: number, outcome: number, count: number, text: string) => void;

/** Functions of native/mpi/src/addon.cc. */
export interface Addon {
  readonly doorVersion: number;
  /** Opens a library, or with null what this process has already: what it is, or the system's words on why it does not serve. */
  open(path: string | null): { readonly abi: "open-mpi" | "mpich" | "standard" } | string;
  /** MPI_Init on a thread of its own. `ended` is told of that with number 0, then of each message. Messages longer than `piece` bytes are cut. */
  start(piece: number, ended: EndCallback): void;
  place(): { readonly rank: number; readonly size: number; readonly version: string };
  /** A message, or a reduction of elements over all ranks. */
  post(id: number, kind: typeof RECEIVE | typeof SEND, peer: number, tag: number, bytes: Uint8Array): void;
  post(id: number, kind: typeof REDUCE, element: number, reduction: number, bytes: Uint8Array): void;
  /** `ended` is told of each of these before it returns: all, those up to the first that failed, or those of so many milliseconds. */
  wait(ids: Uint32Array, milliseconds: number): void;
  /** `ended` is told when what was sent has left. MPI_Finalize follows when all ranks have come so far. */
  close(id: number): void;
  abort(code: number): void;
  /** Whether the thread has ended within so many seconds. */
  join(seconds: number): boolean;
  /** Whether what is under way keeps the event loop alive. */
  hold(is: boolean): void;
}

/** What this code and the binary agree on. */
const DOOR = 1;

const require = createRequire(import.meta.url);

/**
 * Loads the binary of a platform from its package. `OPT_MPI_BINARY` names a file instead.
 *
 * @throws OptError DEVICE_UNAVAILABLE naming the package that is missing, or of another version than this one
 */
export function loadAddon(platform = platformName(), binary = environmentVariable("OPT_MPI_BINARY")): Addon {
  const name = `@opt/collectives-mpi-${platform}`;
  return loadBinary<Addon>({
    require,
    path: binary || name,
    where: "mpi",
    version: DOOR,
    versionOf: (addon) => addon.doorVersion,
    install: `Install ${name} where it exists (npm leaves it out with --omit=optional); npx opt-run of @opt/parallel serves on one machine.`,
    build: "npx nx native native-mpi",
  });
}
