/** What each rank says of a collective to the next one: none goes on with what another did not mean. */
import { OptError, type Tensor } from "@opt/core";
import { digest } from "./digest";

export interface Heading {
  /** The collective, with its root or reduction. */
  readonly what: string;
  readonly dtype?: string;
  readonly shape?: string;
  /** What else is equal on all ranks, in words. */
  readonly more?: readonly string[];
  /** What to do where `more` is not; `NOTED` without it. */
  readonly advice?: string;
}

/** All headings have one length: who receives one knows it. */
export const HEADING_BYTES = 256;
const DIGEST = 16;
export const ADVICE = "All ranks call the same collectives in the same order, with tensors of one dtype and shape.";
/** What ranks call in each step of training: who calls something else there has left the loop. */
const OF_A_STEP = /^(sync of step|gradients of|gathering of) /;
type Call = { readonly what: string; readonly isStep: boolean };
const UNEVEN =
  "Give all ranks as many batches, or call sync() without a backward on those that have fewer; all ranks save.";
/** Of what a group noted. */
const NOTED =
  "All ranks make the same meshes, layers, optimizers and async saves, from one seed, and give them the same inputs.";

/** Of a tensor that all ranks have alike. */
export function headingOf(what: string, { dtype, shape }: Tensor): Heading {
  return { what, dtype, shape: `[${shape}]` };
}

export function written({ what, dtype = "", shape = "", more = [] }: Heading): Uint8Array {
  const text = new TextEncoder().encode([what, dtype, shape, ...more].join("\n"));
  const bytes = new Uint8Array(HEADING_BYTES);
  if (text.length <= HEADING_BYTES) bytes.set(text);
  else {
    bytes.set(text.subarray(0, HEADING_BYTES - DIGEST));
    bytes.set(new TextEncoder().encode(digest(text)), HEADING_BYTES - DIGEST);
  }
  return bytes;
}

/** The rejection of what a rank says otherwise; undefined where it says the same. @param theirs zeros as long as nothing has come */
export function difference(
  where: string,
  heading: Heading,
  ours: Uint8Array,
  theirs: Uint8Array,
  rank: number,
): OptError | undefined {
  if (theirs[0] === 0 || ours.every((byte, i) => byte === theirs[i])) return undefined;
  const lines = (bytes: Uint8Array) => new TextDecoder().decode(bytes).replace(/\0+$/, "").split("\n");
  const [own, other] = [lines(ours), lines(theirs)];
  const at = Array.from({ length: Math.max(own.length, other.length) }, (_, i) => i).find((i) => own[i] !== other[i])!;
  if (at === 0) {
    const [mine, its] = [own, other].map(([what]) => ({ what, isStep: OF_A_STEP.test(what!) })) as [Call, Call];
    const calls = `rank ${rank} calls ${its.what} where this rank calls ${mine.what}.`;
    if (mine.isStep === its.isStep) return new OptError("BAD_STATE", where, calls, ADVICE);
    const who = mine.isStep ? `rank ${rank}` : "this rank";
    const alone = mine.isStep ? its.what : mine.what;
    return new OptError("BAD_STATE", where, `${who} has no more batches, or calls ${alone} alone: ${calls}`, UNEVEN);
  }
  const shown = (line: string | undefined) => (line ? `"${line}"` : "nothing");
  const [mine, its] = at < 3 ? [own, other].map((each) => each.slice(1, 3).join(" ")) : [own[at], other[at]];
  const code = at === 1 ? "BAD_DTYPE" : at === 2 ? "BAD_SHAPE" : "BAD_STATE";
  const problem = `in ${own[0]} rank ${rank} has ${shown(its)} where this rank has ${shown(mine)}.`;
  return new OptError(code, where, problem, at < 3 ? ADVICE : (heading.advice ?? NOTED));
}
