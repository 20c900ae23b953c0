/** What a run records for `opt-run --prove-resume`: the whole state of each step, by name. */
import { check, OptError, show } from "@opt/core";
import { environmentVariable } from "@opt/core/backend";
import { isTensor, type PlainTensor, type SavedTensor } from "../format/tensors";
import type { LedgerValue } from "./compare";
import { ledger } from "./ledger";

/** A run as `opt-run --prove-resume` sees it. */
export interface RecordedRun {
  /** Where the run saves and resumes: a fresh one in each proof. */
  readonly folder: string;
  /** The proof breaks the run behind this step: save it. Infinity where it does not. */
  readonly breakAt: number;
  /**
   * Records the state as it is after a step, and also once after loading. `state` is a tree of tensors, typed arrays, numbers and texts;
   * members named `seconds` are left out. True: end the run here.
   * @throws OptError BAD_ARGUMENT for functions and the like; BAD_STATE after it returned true; IO
   */
  record(step: number, state: object): Promise<boolean>;
}

/** See `recordedRun` in operations.ts. */
export async function recordedRun(folder: string): Promise<RecordedRun> {
  check(
    typeof folder === "string" && folder !== "",
    "BAD_ARGUMENT",
    "recordedRun",
    () => `folder must be a path, got ${show(folder)}.`,
  );
  const place = environmentVariable("OPT_RUN_LEDGER");
  if (place === undefined) return { folder, breakAt: Number.POSITIVE_INFINITY, record: async () => false };
  const book = await ledger(`${place}-${environmentVariable("OPT_RUN_RANK") ?? 0}.jsonl`);
  const breakAt = Number(environmentVariable("OPT_RUN_BREAK") ?? Number.POSITIVE_INFINITY);
  let end = Number.POSITIVE_INFINITY;
  return {
    folder: environmentVariable("OPT_RUN_FOLDER") ?? folder,
    breakAt,
    async record(step, state) {
      const problem = () => `the run must end where record() returns true, got one more step, ${step}.`;
      check(!(step > end), "BAD_STATE", "record", problem, "if (await run.record(step, state)) break;");
      await book.append(step, ...flat(state));
      // One step more than it saves: whatever is wrong with that save has then happened, and the step is trained again.
      if (step > breakAt) end = step;
      return step > breakAt;
    },
  };
}

/** The tensors of a tree and its plain values, under dotted names. */
function flat(state: object): [Record<string, SavedTensor>, Record<string, LedgerValue>] {
  const tensors: Record<string, SavedTensor> = {};
  const values: Record<string, LedgerValue> = {};
  const add = (value: unknown, name: string, depth: number): void => {
    if (isTensor(value) || isSaved(value)) tensors[name] = value;
    else if (ArrayBuffer.isView(value)) tensors[name] = bytesOf(value);
    else if (typeof value === "number")
      values[name] = Number.isFinite(value) && !Object.is(value, -0) ? value : `${Object.is(value, -0) ? "-0" : value}`;
    else if (value === null || typeof value === "string" || typeof value === "boolean") values[name] = value;
    else if (Array.isArray(value) && value.every(isPrimitive)) values[name] = JSON.stringify(value.map(String));
    else if (typeof value === "object" && depth < 100)
      for (const [key, item] of Object.entries(value)) {
        if (key !== "seconds" && item !== undefined) add(item, name === "" ? key : `${name}.${key}`, depth + 1);
      }
    else
      throw new OptError(
        "BAD_ARGUMENT",
        "record",
        `${name || "state"} must be tensors and plain values, got ${show(value)}.`,
        "Pass what stateDict() returns.",
      );
  };
  add(state, "", 0);
  return [tensors, values];
}

const isPrimitive = (value: unknown) => value === null || ["number", "string", "boolean"].includes(typeof value);

const isSaved = (value: unknown): value is SavedTensor =>
  typeof value === "object" && value !== null && ("tensor" in value || ("dtype" in value && "shape" in value));

function bytesOf({ buffer, byteOffset, byteLength }: ArrayBufferView): PlainTensor {
  return { dtype: "u8", shape: [byteLength], data: new Uint8Array(buffer, byteOffset, byteLength) };
}
